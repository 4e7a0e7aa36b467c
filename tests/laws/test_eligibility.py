"""Law 6: an eligible endpoint's footprint lies inside, and an ineligible one's doesn't."""

from __future__ import annotations

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
        expected = _inside(world, allowed, place) and _admitted(world, allowed, place)
        assert isinstance(found, Eligible) == expected
        if not isinstance(found, Eligible):
            assert {reason.code for reason in found.reasons} <= CODES


def _inside(world: World, allowed: Allowed, place: Place) -> bool:
    footprint, atlas = place.footprint, world.atlas
    inside = {atom.id for atom in atlas.atoms_of(allowed.process.sure)}
    keep = {atom.id for atom in atlas.atoms_of(allowed.retain.sure)}
    processed = {atom.id for atom in footprint.process}
    kept = {atom.id for atom in atlas.atoms_of(footprint.retain.mask)}
    operated = set(footprint.operate.codes)
    may_operate = set(allowed.operate.codes) if allowed.operate.mask else set()
    return (
        "unknown" not in processed
        and processed | {world.router} <= inside
        and kept <= keep
        and (may_operate == {"any"} or ("unknown" not in operated and operated <= may_operate))
        and (footprint.good_until is None or world.now < footprint.good_until)
    )


def _admitted(world: World, allowed: Allowed, place: Place) -> bool:
    held = {a.name for a in place.endpoint.assurances if a.until is None or world.now < a.until}
    if allowed.conflict or not allowed.require <= held:
        return False
    return all(_satisfied(one, world, place, held) for one in allowed.obligations)


def _satisfied(one: AnyObligation, world: World, place: Place, held: set[str]) -> bool:
    atoms = list(place.footprint.process)
    price = place.endpoint.price
    if isinstance(one, NoBatch):
        return world.purpose != "batch"
    if isinstance(one, ZeroRetention):
        return place.footprint.retain.mask == 0 or "zdr" in held
    if isinstance(one, TierRange):
        return one.floor <= place.candidate.tier <= one.ceiling
    if isinstance(one, InRegion):
        return len(atoms) == 1 and isinstance(atoms[0], Region)
    if isinstance(one, NoGlobal):
        vague = any(a.id == "unknown" or a.id.startswith("elsewhere:") for a in atoms)
        return not vague and not place.endpoint.model.startswith("global.")
    if isinstance(one, MaxPrice):
        dear = one.input is not None and (price.input is None or price.input > one.input)
        return not dear and not (
            one.output is not None and (price.output is None or price.output > one.output)
        )
    return True


test_law_6 = law(law_6_inside_on_every_axis)
