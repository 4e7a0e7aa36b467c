"""Applying a vendor's offer: what its data file says of one selector, to a draft."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from regions.facts import OfferRow, Promise
from regions.footprints.draft import Draft
from regions.model import Axis, Fact
from regions.places import Elsewhere, PlaceSet, Region

ZERO_RETENTION = "zdr"


@dataclass(frozen=True, slots=True)
class _Offer:
    """One row of a vendor's file with what it inherits from the file."""

    vendor: str
    key: str
    partition: str
    row: OfferRow
    source: str
    checked_on: dt.date


def offered(draft: Draft, vendor: str, key: str, region: Region | None = None) -> bool:
    """Add an offer's places to the draft; `False` when the vendor has no such offer.

    `region` is where the endpoint is called, for offers that process there. A setting the
    offer needs and the endpoint doesn't declare leaves the offer's places *and* the unknown.
    """
    file = draft.catalog.offers[vendor]
    row = file.offers.get(key)
    if row is None:
        known = ", ".join(f"`{name}`" for name in file.offers)
        draft.process_unknown(f"what {vendor} promises for `{key}`; in the catalog: {known}")
        return False
    source, checked_on = row.source or file.source, row.checked_on or file.checked_on
    offer = _Offer(vendor, key, file.partition, row, source, checked_on)
    unmet = [f"`{k}: {v}`" for k, v in row.needs.items() if not _declared(draft, k, v)]
    if unmet:
        draft.process_unknown(
            f"{' and '.join(unmet)} of the endpoint, without which `{key}` promises nothing"
        )
    _process(draft, offer, region)
    _retain(draft, offer, region, bool(unmet))
    return True


def zero_retention(draft: Draft, vendor: str) -> bool:
    """Whether zero data retention is declared, as `retention: zdr` or an assurance `zdr`."""
    stated = draft.setting("retention") == ZERO_RETENTION
    return (stated or _assured(draft, ZERO_RETENTION)) and bool(
        draft.catalog.offers[vendor].zero_retention
    )


def operated(draft: Draft, partition: str, region: Region | None = None) -> None:
    """The operators of a partition, for the places the draft holds so far."""
    places = PlaceSet(draft.catalog.atlas, draft.process)
    here = places.countries | ({region.country} if region else frozenset())
    open_ended = not places.is_known or any(isinstance(a, Elsewhere) for a in places)
    draft.operated_by(partition, here, open_ended)


def _process(draft: Draft, offer: _Offer, region: Region | None) -> None:
    promise = offer.row.process
    places = _places(draft, offer, promise, region)
    if promise.unknown:
        draft.process_unknown(f"where `{offer.key}` processes: {promise.unknown}")
    if places is not None:
        note = f" ({offer.row.note})" if offer.row.note else ""
        statement = f"{offer.vendor} `{offer.key}` processes in {_named(places)}{note}"
        draft.processed_in(places, statement, offer.source, offer.checked_on)


def _retain(draft: Draft, offer: _Offer, region: Region | None, unmet: bool) -> None:
    if zero_retention(draft, offer.vendor):
        file = draft.catalog.offers[offer.vendor]
        statement = "zero data retention is declared"
        draft.retains_nothing(statement, file.zero_retention, offer.checked_on)
        draft.forgets = frozenset(file.zero_retention_forgets)
        return
    promise = offer.row.retain
    if promise is None:
        return
    places = _places(draft, offer, promise, region)
    if promise.unknown or unmet or places is None:
        draft.retain_unknown(promise.unknown or f"where `{offer.key}` keeps data")
    if places is not None:
        statement = f"{offer.vendor} `{offer.key}` keeps data in {_named(places)}"
        draft.retained_in(places, statement, offer.source, offer.checked_on)
        draft.storage = draft.catalog.atlas.unknown | places if unmet else places


def _places(
    draft: Draft, offer: _Offer, promise: Promise, region: Region | None
) -> PlaceSet | None:
    partitions = {p.name: p.id for p in draft.catalog.atlas.partitions}
    ids = [f"area:{partitions[offer.partition]}:{c}" for c in promise.countries]
    ids += [f"elsewhere:{partitions[name]}" for name in promise.elsewhere]
    if promise.at_source and region is not None:
        ids.append(region.id)
    return draft.catalog.atlas.place(*ids) if ids else None


def _declared(draft: Draft, name: str, value: str) -> bool:
    return draft.setting(name) == value or _assured(draft, f"{name}:{value}")


def _assured(draft: Draft, name: str) -> bool:
    """Whether an assurance of this name is held now; its end ends the footprint too."""
    for assurance in draft.endpoint.assurances:
        if assurance.name == name and assurance.held(draft.now):
            statement = f"assurance `{name}`, approved by {assurance.approved_by}"
            fact = Fact(Axis.PROCESS, statement, assurance.evidence, "", assurance.until)
            if fact not in draft.facts:
                draft.facts.append(fact)
            return True
    return False


def _named(places: PlaceSet) -> str:
    names = sorted({getattr(atom, "country", atom.id) for atom in places})
    return ", ".join(names)
