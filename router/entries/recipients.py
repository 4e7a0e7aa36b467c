"""Who receives what is processed in a place: the entities of the catalog, for log and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from regions.catalog import Catalog
from regions.places import Area, Atom, Region, Unknown

NOT_KNOWN: Final = "not known"
SELF: Final = "operator of the router"


def recipients(catalog: Catalog, places: Iterable[Atom]) -> tuple[str, ...]:
    """Who runs these places: name and country of each entity, once, `everywhere` first."""
    return tuple(dict.fromkeys(name for atom in places for name in _operators(catalog, atom)))


def _operators(catalog: Catalog, atom: Atom) -> Iterator[str]:
    if isinstance(atom, Unknown):
        yield NOT_KNOWN
        return
    if atom.partition.name == "self":
        yield SELF
        return
    row = catalog.operators.get(atom.partition.name)
    if row is None:
        yield f"{NOT_KNOWN} ({atom.partition.id})"
        return
    country = atom.country if isinstance(atom, Region | Area) else None
    local = [one for one in row.by_country if country in one.countries]
    yield from (f"{one.name} ({one.country})" for one in (*row.everywhere, *local))
