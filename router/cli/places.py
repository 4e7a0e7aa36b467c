"""Boundaries in few words: the shortest built-in word that means the same, else countries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regions.atlas import Atlas
    from regions.countries import Countries
    from regions.places import Boundary


def boundary_json(found: Boundary) -> dict[str, object]:
    """A boundary as data: a word for it if there is one, its countries, and its places."""
    return {
        "word": word_for(found),
        "countries": sorted(found.places.countries),
        "places": list(found.places.ids) if found.sure else [],
    }


def boundary_text(found: Boundary) -> str:
    """A boundary in words."""
    if found.is_empty:
        return "nowhere"
    countries = sorted(found.places.countries)
    return word_for(found) or f"{len(found.places)} places in {', '.join(countries)}"


def countries_text(found: Countries) -> str:
    """Countries in words; the axis without bounds is `any`."""
    return "any" if found.is_any else ", ".join(found.codes) or "nobody"


def word_for(found: Boundary) -> str | None:
    """The built-in word that means exactly this boundary."""
    atlas = found.atlas
    if _same(found, atlas.worldwide()):
        return "worldwide"
    named = (word for word in sorted(atlas.jurisdictions) if _same(found, atlas.jurisdiction(word)))
    return next(named, None) or _country(found, atlas)


def _country(found: Boundary, atlas: Atlas) -> str | None:
    countries = found.places.countries if found.sure else frozenset[str]()
    one = next(iter(countries)) if len(countries) == 1 else None
    return one if one is not None and _same(found, atlas.country(one)) else None


def _same(one: Boundary, other: Boundary) -> bool:
    return (one.sure, one.possible) == (other.sure, other.possible)
