"""A question anyone can ask: does this endpoint stay inside that boundary, as far as we know?

The answer on an axis is *inside*; *outside*, naming the members that are; or *unknown*,
naming what is missing. A place that is known to be outside decides, whatever else is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from regions.boundaries import boundary, operators
from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.selectors import parse_selector
from regions.model import Axis, Call, Endpoint, Fact, Footprint
from regions.places import UNKNOWN_BIT, Atom, PlaceSet


class Verdict(StrEnum):
    """The answer on one axis."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


EXIT_CODES: Mapping[Verdict, int] = {Verdict.INSIDE: 0, Verdict.OUTSIDE: 3, Verdict.UNKNOWN: 4}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One axis against one boundary.

    Attributes:
        outside: the members that are not surely inside, with their countries.
        missing: what would have to be known, when the verdict is unknown.
    """

    axis: Axis
    boundary: str
    verdict: Verdict
    outside: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An endpoint's footprint, and how it stands to the boundaries asked about.

    `aged` are the facts too old to rely on at the time asked about.
    """

    endpoint: Endpoint
    footprint: Footprint
    judgements: tuple[Judgement, ...]
    aged: tuple[Fact, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the judgements: outside before unknown before inside."""
        found = {j.verdict for j in self.judgements}
        if Verdict.OUTSIDE in found:
            return Verdict.OUTSIDE
        return Verdict.UNKNOWN if Verdict.UNKNOWN in found else Verdict.INSIDE

    @property
    def exit_code(self) -> int:
        """0 inside, 3 outside, 4 unknown."""
        return EXIT_CODES[self.verdict]


def question(
    about: str | Endpoint,
    catalog: Catalog,
    at: float,
    within: str | None = None,
    retain_within: str | None = None,
    operated_by: str | None = None,
    call: Call = PLAIN_CALL,
) -> Answer:
    """The footprint of an endpoint, or of what a selector names, judged on the axes asked about.

    Args:
        at: the time for which facts must not have aged, in seconds since the epoch.
        within, retain_within: boundary expressions; operated_by: an expression of countries.

    Raises:
        SelectorError: the selector can't be read.
        BoundaryError: a boundary can't be read.
    """
    endpoint = parse_selector(about) if isinstance(about, str) else about
    found = footprint(endpoint, call, catalog, at)
    judgements = []
    if within is not None:
        judgements.append(_process(found, within))
    if retain_within is not None:
        judgements.append(_retain(found, catalog, retain_within))
    if operated_by is not None:
        judgements.append(_operate(found, catalog, operated_by))
    aged = tuple(f for f in found.facts if f.until is not None and f.until <= at)
    return Answer(endpoint, found, tuple(judgements), aged)


def _process(found: Footprint, text: str) -> Judgement:
    limit = boundary(text, found.process.atlas)
    outside = PlaceSet(limit.atlas, limit.outside(found.process).mask & ~UNKNOWN_BIT)
    # Not knowing where a call is processed is never inside, not even of `worldwide`.
    return _judged(found, Axis.PROCESS, text, _members(outside), found.process.is_known)


def _retain(found: Footprint, catalog: Catalog, text: str) -> Judgement:
    limit = boundary(text, catalog.atlas)
    if found.retain.is_nothing:
        return Judgement(Axis.RETAIN, text, Verdict.INSIDE)
    outside = limit.outside(found.retain.places(catalog.atlas))
    known = not outside.mask & UNKNOWN_BIT
    members = _members(PlaceSet(catalog.atlas, outside.mask & ~UNKNOWN_BIT))
    return _judged(found, Axis.RETAIN, text, members, known)


def _operate(found: Footprint, catalog: Catalog, text: str) -> Judgement:
    limit = operators(text, catalog.atlas)
    outside = tuple(c for c in found.operate.codes if c != "unknown")
    inside = set(limit.codes)
    members = () if limit.is_any else tuple(c for c in outside if c not in inside)
    return _judged(found, Axis.OPERATE, text, members, limit.is_any or found.operate.is_known)


def _judged(
    found: Footprint, axis: Axis, text: str, outside: tuple[str, ...], known: bool
) -> Judgement:
    if outside:
        return Judgement(axis, text, Verdict.OUTSIDE, outside=outside)
    if known:
        return Judgement(axis, text, Verdict.INSIDE)
    return Judgement(axis, text, Verdict.UNKNOWN, missing=found.missing_on(axis))


def _members(places: PlaceSet) -> tuple[str, ...]:
    return tuple(sorted(_member(atom) for atom in places))


def _member(atom: Atom) -> str:
    country = getattr(atom, "country", None)
    return f"{atom.id} ({country})" if country and not atom.id.startswith("area:") else atom.id
