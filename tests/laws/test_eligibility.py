"""Law 6: an eligible endpoint's footprint lies inside, and an ineligible one's doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from policies.eligibility import CODES, Eligible, judge
from policies.engine import Allowed, decide
from policies.obligations import (
    AnyObligation,
    InRegion,
    MaxPrice,
    NoBatch,
    NoGlobal,
    TierRange,
    ZeroRetention,
)
from regions.places import Region
from tests.laws.worlds import Place, World, law, make_world


def law_6_inside_on_every_axis(rnd: Random) -> None:
    world = make_world(rnd)
    decision = decide(world.policy, world.ask, world.now)
    for place in world.places:
        found = judge(
            decision, place.candidate, place.endpoint, place.footprint, world.router, world.now
        )
        allowed = decision.allowed(place.candidate)
        expected = {
            *_outside(world, allowed, place),
            *_not_held(world, allowed, place),
            *(f"obligations_conflict {kind}" for kind in allowed.conflict),
        }
        if decision.denied:
            expected.add(f"no_grant {world.tenant}")
        assert isinstance(found, Eligible) == (not expected)
        if not isinstance(found, Eligible):
            assert {reason.code for reason in found.reasons} <= CODES
            bare = {"process_outside", "retain_outside", "operate_outside"}
            said = {r.code if r.code in bare else f"{r.code} {r.detail}" for r in found.reasons}
            assert said == expected


def _outside(world: World, allowed: Allowed, place: Place) -> Iterator[str]:
    footprint, atlas = place.footprint, world.atlas
    inside = {atom.id for atom in atlas.atoms_of(allowed.process.sure)}
    keep = {atom.id for atom in atlas.atoms_of(allowed.retain.sure)}
    processed = {atom.id for atom in footprint.process}
    kept = {atom.id for atom in atlas.atoms_of(footprint.retain.mask)}
    operated = set(footprint.operate.codes)
    may_operate = set(allowed.operate.codes) if allowed.operate.mask else set()
    if footprint.good_until is not None and world.now >= footprint.good_until:
        yield "footprint_lapsed "
    if "unknown" in processed:
        yield "process_unknown a fact"
    if processed - inside:
        yield "process_outside"
    if world.router not in inside:
        yield f"router_outside {world.router}"
    if "unknown" in kept - keep:
        yield "retain_unknown a fact"
    elif kept - keep:
        yield "retain_outside"
    if may_operate != {"any"}:
        if "unknown" in operated:
            yield "operate_unknown a fact"
        elif operated - may_operate:
            yield "operate_outside"


def _not_held(world: World, allowed: Allowed, place: Place) -> Iterator[str]:
    named = {a.name for a in place.endpoint.assurances}
    held = {a.name for a in place.endpoint.assurances if a.until is None or world.now < a.until}
    for name in allowed.require - held:
        yield f"assurance_lapsed {name}" if name in named else f"assurance_missing {name}"
    for one in allowed.obligations:
        yield from _unsatisfied(one, world, place, held)


def _unsatisfied(one: AnyObligation, world: World, place: Place, held: set[str]) -> Iterator[str]:
    atoms = list(place.footprint.process)
    price, tier = place.endpoint.price, place.candidate.tier
    if isinstance(one, NoBatch) and world.purpose == "batch":
        yield "no_batch "
    if isinstance(one, ZeroRetention) and place.footprint.retain.mask and "zdr" not in held:
        yield "zero_retention "
    if isinstance(one, TierRange) and tier < one.floor:
        yield f"tier_below_floor {one.floor.label}"
    if isinstance(one, TierRange) and tier > one.ceiling:
        yield f"tier_above_ceiling {one.ceiling.label}"
    if isinstance(one, InRegion) and not (len(atoms) == 1 and isinstance(atoms[0], Region)):
        yield f"in_region {', '.join(place.footprint.process.ids)}"
    if isinstance(one, NoGlobal):
        vague = any(a.id == "unknown" or a.id.startswith("elsewhere:") for a in atoms)
        if vague or place.endpoint.model.startswith("global."):
            yield "no_global "
    if isinstance(one, MaxPrice):
        dear = one.input is not None and (price.input is None or price.input > one.input)
        if dear or (one.output is not None and (price.output is None or price.output > one.output)):
            yield "max_price "


test_law_6 = law(law_6_inside_on_every_axis)
