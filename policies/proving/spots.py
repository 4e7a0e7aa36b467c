"""Every way a request can be served: endpoint, tier, kind of call, router; and what one loses.

Calls differ only by what moves bytes. A mover that stores adds where the endpoint stores, any
other makes the place unknown, which no endpoint outlives; so a plain call and one with each
storing mover stand for all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.conditions import Candidate
from policies.eligibility import Excluded, judge
from policies.engine import Allowed, Ask, Decision
from policies.model import Policy
from policies.obligations import NO_OBLIGATIONS, AnyObligation
from regions.catalog import Catalog
from regions.countries import Countries
from regions.footprints.base import PLAIN_CALL, STORING, footprint
from regions.model import Call, Endpoint, Footprint
from regions.places import Area, Atom, Boundary, Elsewhere, Region

Facts = Callable[[Endpoint, float], Sequence[tuple[Call, Footprint]]]
"""An endpoint's kinds of calls with their footprints at a time; the plain call comes first."""


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """An endpoint of a tier, for one kind of call, behind one router (`None`: behind any).

    `process` is the mask of where the call is processed, by the router too.
    """

    candidate: Candidate
    endpoint: Endpoint
    models: frozenset[str]
    call: Call
    footprint: Footprint
    router: str | None
    process: int

    @property
    def is_plain(self) -> bool:
        """Whether it is a call without anything that moves bytes."""
        return not self.call.movers


def catalog_facts(catalog: Catalog) -> Facts:
    """Footprints as the catalog tells them."""
    calls = (PLAIN_CALL, *(replace(PLAIN_CALL, movers=frozenset({m})) for m in sorted(STORING)))

    def facts(endpoint: Endpoint, now: float) -> Sequence[tuple[Call, Footprint]]:
        found: dict[tuple[int, int, int], tuple[Call, Footprint]] = {}
        for call in calls:
            one = footprint(endpoint, call, catalog, now)
            key = (one.process.mask, one.retain.mask, one.operate.mask)
            found.setdefault(key, (call, one))
        return tuple(found.values())

    return facts


def spots(policy: Policy, facts: Facts, routers: Iterable[str], now: float) -> tuple[Spot, ...]:
    """Every way a request can be served at `now`, impossible ones left out."""
    places: Mapping[str | None, int] = {r: policy.atlas.place(r).mask for r in routers} or {None: 0}
    found = []
    for candidate, models in _candidates(policy).items():
        endpoint = policy.endpoints[candidate.endpoint]
        for call, where in facts(endpoint, now):
            for router, mask in places.items():
                process = where.process.mask | mask
                spot = Spot(candidate, endpoint, models, call, where, router, process)
                if not excluded(spot, now):
                    found.append(spot)
    return tuple(found)


def _candidates(policy: Policy) -> Mapping[Candidate, frozenset[str]]:
    found: dict[Candidate, frozenset[str]] = {}
    for model in policy.models:
        for tier, endpoint in policy.candidates(model):
            one = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
            found[one] = found.get(one, frozenset()) | {model}
    return found


def excluded(
    spot: Spot,
    now: float,
    obligation: AnyObligation | None = None,
    require: frozenset[str] = frozenset(),
) -> bool:
    """Whether this alone, with every place allowed, excludes the endpoint: by the reference."""
    atlas = spot.footprint.process.atlas
    every = Boundary(atlas, (1 << len(atlas)) - 1, (1 << len(atlas)) - 1)
    asked = NO_OBLIGATIONS if obligation is None else NO_OBLIGATIONS.add(obligation)
    allowed = Allowed(every, every, Countries.any(), require, asked)
    decision = Decision(Ask(""), allowed, (), (), "", "", now, None)
    # The router's place is in the spot's own mask: any region stands for it here.
    region = atlas.regions[0].id
    verdict = judge(decision, spot.candidate, spot.endpoint, spot.footprint, region, now)
    return isinstance(verdict, Excluded)


def ends(found: Iterable[Spot]) -> Iterator[float]:
    """When something that spots rely on ends: facts and assurances."""
    for spot in found:
        if spot.footprint.good_until is not None:
            yield spot.footprint.good_until
        yield from (one.until for one in spot.endpoint.assurances if one.until is not None)


# -- what one may lose -------------------------------------------------------------------


def losses(unit: str, found: Sequence[Spot]) -> Iterator[tuple[str, frozenset[Spot]]]:
    """Each region, provider, operator or country, with the spots left when it is lost.

    First `nothing`, with all of them.
    A profile of several regions outlives one of them, but not the one it is called in. As an
    operator counts each country whose law reaches one, as for `quarantine operator`.
    """
    yield "nothing", frozenset(found)
    if unit == "nothing":
        return
    touched = {spot: frozenset(_units(unit, spot)) for spot in found}
    for name in sorted({name for units in touched.values() for name in units}):
        yield name, frozenset(spot for spot in found if name not in touched[spot])


def _units(unit: str, spot: Spot) -> Iterator[str]:
    """What must not be lost for this endpoint to go on."""
    if unit == "operator":
        known = [code for code in spot.footprint.operate.codes if code != "unknown"]
        yield from known or ["unknown"]
        return
    if unit == "provider":
        yield spot.endpoint.provider
    atlas = spot.footprint.process.atlas
    if spot.endpoint.source is not None:
        yield from _unit_of(unit, atlas.region(spot.endpoint.source))
    everywhere = [frozenset(_unit_of(unit, atom)) for atom in spot.footprint.process]
    if everywhere and all(len(one) == 1 for one in everywhere):
        together = frozenset().union(*everywhere)
        yield from together if len(together) == 1 else ()


def _unit_of(unit: str, atom: Atom) -> Iterator[str]:
    """The region, provider or country of a place, as far as it has one."""
    if unit == "region" and isinstance(atom, Region):
        yield atom.id
    elif unit == "country" and isinstance(atom, Region | Area):
        yield atom.country
    elif unit == "provider" and isinstance(atom, Region | Area | Elsewhere):
        yield atom.partition.provider
