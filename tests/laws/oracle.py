"""The formula of the laws, written a second time and as naively as possible."""

from __future__ import annotations

from dataclasses import dataclass

from policies.attributes import Attributes
from policies.conditions import AllOf, AnyOf, Candidate, CandidateIs, Condition, Is, Not
from policies.engine import Allowed
from policies.model import Rule
from regions.countries import Countries
from regions.places import Boundary
from tests.laws.worlds import World


@dataclass(frozen=True)
class Sets:
    process: Boundary
    retain: Boundary
    operate: Countries


def outcomes(condition: Condition, facts: Attributes, candidate: Candidate) -> set[bool]:
    """Every truth the condition may still take."""
    if isinstance(condition, Is):
        state = facts.states.get(condition.attribute)
        if state is not None and condition.values & state.values:
            return {True}
        return {False} if state is not None and state.closed else {True, False}
    if isinstance(condition, CandidateIs):
        values = {
            "served_model": candidate.model,
            "provider": candidate.provider,
            "tier": candidate.tier.name.lower(),
        }
        return {values[condition.key] in condition.values}
    if isinstance(condition, Not):
        return {not one for one in outcomes(condition.part, facts, candidate)}
    assert isinstance(condition, AllOf | AnyOf)
    whole = {isinstance(condition, AllOf)}
    for part in condition.parts:
        found = outcomes(part, facts, candidate)
        if isinstance(condition, AllOf):
            whole = {a and b for a in whole for b in found}
        else:
            whole = {a or b for a in whole for b in found}
    return whole


def applying(world: World, candidate: Candidate) -> list[Rule]:
    """The rules whose condition is not known to be false for this candidate."""
    facts = world.ask.facts
    return [
        rule
        for rule in world.policy.rules
        if outcomes(rule.condition, facts, candidate) != {False}
        and not (rule.dry_run_until is not None and world.now < rule.dry_run_until)
    ]


def allowed(world: World, candidate: Candidate) -> Sets:
    """grant ∩ (the boundary of every applying rule), on each axis."""
    tenant = world.policy.tenants.get(world.tenant)
    nowhere = world.atlas.nowhere()
    if tenant is None or tenant.grant is None:
        return Sets(nowhere, nowhere, Countries(0))
    names = [f"grant:{world.tenant}", *(r.name for r in applying(world, candidate))]
    process = retain = world.atlas.worldwide()
    everything = (1 << len(world.atlas)) - 1
    process = retain = Boundary(world.atlas, everything, everything)
    operate = Countries.any()
    for name in names:
        one, two, three = world.bounds[name]
        process = process if one is None else process & one.naive(world.now)
        retain = retain if two is None else retain & two.naive(world.now)
        operate = operate if three is None else operate & three.naive(world.now)
    return Sets(process, retain, operate)


def no_wider(one: Allowed, other: Allowed) -> bool:
    """Whether `one` allows nothing that `other` doesn't, and demands at least as much."""
    return (
        sets_no_wider(one, other)
        and one.require >= other.require
        and one.prefer >= other.prefer
        and all(kind in one.obligations for kind in other.obligations.held)
        and one.obligations.conflicts >= other.obligations.conflicts
    )


def sets_no_wider(one: Allowed, other: Allowed) -> bool:
    return (
        not one.process.sure & ~other.process.sure
        and not one.retain.sure & ~other.retain.sure
        and not one.operate.mask & ~other.operate.mask
    )
