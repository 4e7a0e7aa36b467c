"""The fast filter gives the reference's verdicts, reasons and ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from policies.conditions import CandidateIs
from policies.eligibility import judge
from policies.engine import Decision, decide
from policies.judging import Judge
from policies.model import Grant, Rule, Tenant
from policies.obligations import TierRange, ZeroRetention
from policies.timed import always
from regions.countries import Countries
from regions.model import Tier
from tests.laws.worlds import COUNTRIES, NOWS, TENANTS, World, chance, law, make_ask, make_world

AT_ODDS = (TierRange(Tier.SMALL, Tier.SMALL), TierRange(Tier.LARGE, Tier.LARGE))


DEMANDS = (
    Rule("odd", obligations=AT_ODDS),
    Rule("agreement", require=frozenset({"baa"})),
    Rule("contract", obligations=(ZeroRetention(),)),
    Rule("fr", operate=always(Countries.of(["FR"]))),
)


def equal(rnd: Random) -> None:
    world = make_world(rnd)
    if chance(rnd, 60):
        world = nearly_open(rnd, world)
    compare(world, rnd)


def nearly_open(rnd: Random, world: World) -> World:
    """A world where most endpoints are inside, so that one demand makes the difference."""
    grant = Grant.within(always(world.atlas.worldwide()))
    tenants = {name: Tenant(name, grant) for name in TENANTS}
    rules = [rnd.choice(DEMANDS)] if chance(rnd, 60) else []
    if chance(rnd, 30):
        bound = world.atlas.country(rnd.choice(("DE", "US")))
        rules.append(Rule("kept", retain=always(world.atlas.worldwide() - bound)))
    if chance(rnd, 30):
        small = CandidateIs("tier", frozenset({"small", "large"}))
        rules.append(Rule("tiered", small, always(world.atlas.country("CH"))))
    policy = replace(world.policy, tenants=tenants, rules=tuple(rules))
    return replace(world, policy=policy)


def compare(world: World, rnd: Random) -> None:
    fast = Judge(world.atlas, world.router, remembered=4)
    many = tuple((p.candidate, p.endpoint, p.footprint) for p in world.places)
    few = many[1:]
    for _ in range(4):
        now = rnd.choice(NOWS)
        decision = decide(world.policy, make_ask(rnd, world), now)
        for place in world.places:
            later = rnd.choice([now, rnd.choice(NOWS)])
            args = (decision, place.candidate, place.endpoint, place.footprint)
            assert fast.judge(*args, later) == judge(*args, world.router, later)
        for at, places in ((now, many), (now, few), (rnd.choice(NOWS), many)):
            for one in (decision, narrower(rnd, decision, world)):
                expected = [judge(one, *place, world.router, at) for place in places]
                assert fast.judge_all(one, places, at) == expected


def test_a_settled_decision_is_the_same_about_its_candidate() -> None:
    seen = 0
    for seed in range(80):
        world = make_world(Random(seed))
        decision = decide(world.policy, world.ask, 50.0)
        for place in world.places:
            settled = decision.settled(place.candidate)
            assert not settled.pending
            assert settled.allowed(place.candidate) == decision.allowed(place.candidate)
            args = (place.candidate, place.endpoint, place.footprint, world.router, 50.0)
            assert judge(settled, *args) == judge(decision, *args)
            seen += bool(decision.pending)
    assert seen > 50


def narrower(rnd: Random, decision: Decision, world: World) -> Decision:
    """Less of one axis, the router's own place kept: the same places are judged differently."""
    common, axis = decision.common, rnd.choice(("process", "retain", "operate"))
    country = rnd.choice(COUNTRIES)
    if axis == "operate":
        only = common.operate & Countries.of([country])
        return decision._replace(common=common._replace(operate=only))
    left = world.atlas.country(country) | world.atlas.one_region(world.router)
    bound = getattr(common, axis) & left
    return decision._replace(common=common._replace(**{axis: bound}))


test_equal = law(equal)


def test_equal_on_many_seeded_cases() -> None:
    for seed in range(600):
        equal(Random(seed))
