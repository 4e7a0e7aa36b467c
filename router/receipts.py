"""The receipt of an answer: headers built from what was called, never from what was asked."""

from __future__ import annotations

from functools import lru_cache

from regions.model import Tier
from regions.places import PlaceSet, Region
from router.dispatch import Dispatched
from router.exchange import Headers
from router.opening import OpenedStream


def receipt_headers(dispatched: Dispatched) -> Headers:
    """Answer headers: the media type, our request id, and the receipt.

    `x-domicile-region` stands only where the footprint of the endpoint called is one
    region. Elsewhere the vendor chose among several and doesn't say which, so the whole
    `x-domicile-footprint` stands instead.
    """
    stream = isinstance(dispatched.opened, OpenedStream)
    receipt = dispatched.committed.receipt
    plan, candidacy = dispatched.plan, dispatched.candidacy
    endpoint, arrival = candidacy.endpoint, plan.arrival
    shown = [
        *_fixed(endpoint.name, endpoint.model, candidacy.tier, candidacy.footprint.process, stream),
        (b"x-request-id", arrival.id.encode()),
        (b"x-domicile-record", receipt.record.encode()),
        (b"x-domicile-head", receipt.head.encode()),
        (b"x-domicile-attempts", b"%d" % len(dispatched.attempts)),
        (b"x-domicile-policy", arrival.snapshot.policy.digest[:16].encode()),
    ]
    reservation = plan.admitted.lease.reservation
    if reservation is not None:
        shown += [(name.encode(), value.encode()) for name, value in reservation.headers.items()]
    return shown


@lru_cache(2048)
def _fixed(
    name: str, model: str, tier: Tier, process: PlaceSet, stream: bool
) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that every answer of an endpoint has in common."""
    media = "text/event-stream; charset=utf-8" if stream else "application/json"
    shown = {
        "content-type": media,
        **place_headers(process),
        "x-domicile-endpoint": name,
        "x-domicile-model": model,
        "x-domicile-tier": tier.label,
    }
    if stream:
        shown |= {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return tuple((n.encode(), value.encode("latin-1", "replace")) for n, value in shown.items())


def forget() -> None:
    """Keep no headers of places that a replaced snapshot numbered."""
    _fixed.cache_clear()


def place_headers(process: PlaceSet) -> dict[str, str]:
    """One region when it is certain, else the footprint it ran within."""
    atoms = tuple(process)
    if len(atoms) == 1 and isinstance(atoms[0], Region):
        return {"x-domicile-region": atoms[0].id}
    return {"x-domicile-footprint": ",".join(process.ids)}
