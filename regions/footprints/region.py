"""A bare region of a provider: not an endpoint yet, but a question anyone may ask."""

from __future__ import annotations

from regions.footprints.draft import Draft, Vendor


def describe(draft: Draft) -> None:
    """The region itself and who operates it; what a service keeps there depends on the service."""
    found = draft.own_region(draft.endpoint.provider)
    if found is None:
        return
    places = draft.catalog.atlas.place(found.id)
    draft.processed_in(places, f"{found.id} is in {found.country}", "the catalog's regions")
    draft.operated_by(found.partition.name, (found.country,))
    draft.retain_unknown("the service: what is retained depends on it")


VENDOR = Vendor(describe)
