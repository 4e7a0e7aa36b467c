"""The formula of the laws, written a second time and as naively as possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.attributes import Attributes, State, Supplied
from policies.conditions import AllOf, AnyOf, Candidate, CandidateIs, Condition, Is, Not
from policies.engine import Allowed
from policies.model import Rule
from regions.countries import Countries
from regions.places import Boundary
from tests.laws.worlds import DECLARED, World


@dataclass(frozen=True)
class Sets:
    process: Boundary
    retain: Boundary
    operate: Countries


def outcomes(condition: Condition, facts: Attributes, candidate: Candidate | None) -> set[bool]:
    """Every truth the condition may still take."""
    if isinstance(condition, Is):
        state = facts.states.get(condition.attribute)
        if state is not None and condition.values & state.values:
            return {True}
        return {False} if state is not None and state.closed else {True, False}
    if isinstance(condition, CandidateIs) and candidate is None:
        return {True, False}
    if isinstance(condition, CandidateIs) and candidate is not None:
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
        if outcomes(rule.condition, facts, candidate) != {False} and not on_trial(rule, world.now)
    ]


def on_trial(rule: Rule, now: float) -> bool:
    return rule.dry_run_until is not None and now < rule.dry_run_until


def said(
    supplied: Iterable[Supplied], name: str, trusted: frozenset[str]
) -> tuple[set[str], set[str]]:
    """The values of authoritative sources, and the claimed ones."""
    sure: set[str] = set()
    claims: set[str] = set()
    for one in supplied:
        if one.name == name:
            certain = one.source in {"key", "token", "tenant", "app", "operator"}
            certain |= name in trusted and one.source in {"header", "body"}
            (sure if certain else claims).update(one.values)
    return sure, claims


def early(world: World, supplied: Iterable[Supplied]) -> Attributes:
    """What stays true whatever the body and the classifiers may still add."""
    states: dict[str, State] = {}
    trusted = world.policy.trusted(world.app)
    for name, declared in DECLARED.items():
        sure, claims = said(supplied, name, trusted)
        body_may_decide = name in trusted
        may_add = any(s in ("header", "body") or ":" in s for s in declared.sources)
        values = sure or (set() if body_may_decide else set(declared.default))
        closed = bool(values) and not may_add and not body_may_decide
        states[name] = State(frozenset(values | claims), closed)
    return Attributes(states)


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
