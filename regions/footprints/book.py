"""Footprints, remembered: equal movers, equal footprint, until a fact it relied on ends.

One book belongs to one snapshot's endpoints and catalog. Of a call only its movers decide, so
that clients can't fill the book with parameters of their own making.
"""

from __future__ import annotations

from regions.catalog import Catalog
from regions.footprints.base import footprint
from regions.model import Call, Endpoint, Footprint

MAX_ENTRIES = 20_000


class FootprintBook:
    """Footprints by endpoint name and movers. Not for threads: one event loop, one book.

    Args:
        catalog: where the facts are; endpoints must have unique names.
    """

    __slots__ = ("_catalog", "_known")

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[tuple[str, frozenset[str]], tuple[Endpoint, Footprint, float]] = {}

    def of(self, endpoint: Endpoint, call: Call, now: float) -> Footprint:
        """The footprint of this call of this endpoint at `now`, in seconds since the epoch.

        A remembered one is good from the time it was made until its `good_until`.
        """
        key = (endpoint.name, call.movers)
        entry = self._known.get(key)
        if entry is not None:
            known, found, since = entry
            ends = found.good_until
            if known is endpoint and since <= now and (ends is None or now < ends):
                return found
        found = footprint(endpoint, call, self._catalog, now)
        if len(self._known) >= MAX_ENTRIES:
            self._known.clear()
        self._known[key] = (endpoint, found, now)
        return found
