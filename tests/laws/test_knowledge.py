"""Laws 4 and 5, and the outer bound: not knowing is never better than knowing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from policies.attributes import CLAIMED, Attributes, State, Supplied, is_authoritative
from policies.eligibility import Excluded, judge
from policies.engine import decide
from policies.outer import bound_of, early_attributes
from regions.places import Boundary
from tests.laws import oracle
from tests.laws.worlds import DECLARED, World, chance, law, make_world, some


def law_4_open_is_never_better(rnd: Random) -> None:
    """For any closed set containing its values, on the level of attribute states."""
    world = make_world(rnd)
    states: dict[str, State] = {}
    closed: dict[str, State] = {}
    for name, declared in DECLARED.items():
        values = frozenset(some(rnd, sorted(declared.values), 0, 2))
        wider = values | frozenset(some(rnd, sorted(declared.values), 0, 2))
        states[name] = State(values, closed=False)
        closed[name] = State(wider, closed=True)
        if chance(rnd, 50):
            states[name] = closed[name]
    _never_wider(world, Attributes(states), Attributes(closed))


def law_4_opening_is_never_better(rnd: Random) -> None:
    """A classifier that did not finish never allows more than one that did."""
    world = make_world(rnd)
    wider = replace(world, opened=world.opened | frozenset(some(rnd, DECLARED, 1, 3)))
    _never_wider(world, wider.attributes, world.attributes)


def law_5_a_claim_never_widens(rnd: Random) -> None:
    world = make_world(rnd)
    trusted = world.policy.trusted(world.app)
    claimable = [d for d in DECLARED.values() if d.claimable]
    declared = rnd.choice(claimable)
    sources = [s for s in declared.sources if not is_authoritative(s)]
    source = rnd.choice(sorted(sources))
    if source in CLAIMED and declared.name in trusted:
        return  # from a trusted app it is no claim
    values = tuple(some(rnd, sorted(declared.values), 1, 2))
    claim = Supplied(declared.name, values, source)
    more = replace(world, supplied=(*world.supplied, claim))
    _never_wider(world, more.attributes, world.attributes)


def _never_wider(world: World, one: Attributes, other: Attributes) -> None:
    narrow = decide(world.policy, replace(world.ask, attributes=one), world.now)
    wide = decide(world.policy, replace(world.ask, attributes=other), world.now)
    for place in world.places:
        assert oracle.no_wider(narrow.allowed(place.candidate), wide.allowed(place.candidate))


def _outer(world: World, early: tuple[Supplied, ...]) -> Boundary:
    attributes = early_attributes(DECLARED, early, world.policy.trusted(world.app))
    return bound_of(world.policy, replace(world.ask, attributes=attributes), world.now)


def outer_bound_is_never_wrong(rnd: Random) -> None:
    """An early 421 implies that the full decision excludes this router."""
    world = make_world(rnd)
    early = tuple(s for s in world.supplied if s.source != "body" and ":" not in s.source)
    bound = _outer(world, early)
    decision = decide(world.policy, world.ask, world.now)
    assert not decision.common.process.sure & ~bound.sure
    if bound.contains(world.atlas.place(world.router)):
        return
    for place in world.places:
        found = judge(
            decision, place.candidate, place.endpoint, place.footprint, world.router, world.now
        )
        assert isinstance(found, Excluded)
        assert "router_outside" in found.codes


def attributes_are_what_was_said(rnd: Random) -> None:
    """The words of the design, one attribute at a time."""
    world = make_world(rnd)
    trusted = world.policy.trusted(world.app)
    for name, declared in DECLARED.items():
        sure, claims = oracle.said(world.supplied, name, trusted)
        state = world.attributes[name]
        assert state.values == (sure or set(declared.default)) | claims
        known = bool(sure or declared.default)
        assert state.closed == (known and name not in world.opened)


def outer_bound_is_exact(rnd: Random) -> None:
    """grant ∩ the rules that are true whatever the body and the classifiers still add."""
    world = make_world(rnd)
    early = tuple(s for s in world.supplied if s.source != "body" and ":" not in s.source)
    bound = _outer(world, early)
    facts = replace(world.ask, attributes=oracle.early(world, early)).facts
    process = world.bounds.get(f"grant:{world.tenant}", (None, None, None))[0]
    tenant = world.policy.tenants.get(world.tenant)
    if tenant is None or tenant.grant is None or process is None:
        assert bound.sure == 0
        return
    expected = process.naive(world.now)
    for rule in world.policy.rules:
        made = world.bounds[rule.name][0]
        certain = oracle.outcomes(rule.condition, facts, None) == {True}
        if made is not None and certain and not oracle.on_trial(rule, world.now):
            expected &= made.naive(world.now)
    assert bound == expected


test_law_4_states = law(law_4_open_is_never_better)
test_law_4_opening = law(law_4_opening_is_never_better)
test_law_5 = law(law_5_a_claim_never_widens)
test_outer_bound = law(outer_bound_is_never_wrong)
test_attributes = law(attributes_are_what_was_said)
test_outer_bound_exact = law(outer_bound_is_exact)
