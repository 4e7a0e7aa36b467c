"""The fast filter gives the reference's verdicts, reasons and ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from policies.eligibility import judge
from policies.engine import decide
from policies.judging import Judge
from policies.model import Rule
from policies.obligations import TierRange
from regions.model import Tier
from tests.laws.worlds import NOWS, World, chance, law, make_ask, make_world

AT_ODDS = (TierRange(Tier.SMALL, Tier.SMALL), TierRange(Tier.LARGE, Tier.LARGE))


def equal(rnd: Random) -> None:
    world = make_world(rnd)
    # Plain rules now and then, so that the fast path is taken.
    if chance(rnd, 50):
        world = world.with_rules(replace(r, require=frozenset()) for r in world.policy.rules)
    if chance(rnd, 50):
        world = world.with_rules(replace(r, obligations=()) for r in world.policy.rules)
    if chance(rnd, 40):
        world = world.with_rules(
            replace(r, process=None, retain=None, operate=None) for r in world.policy.rules
        )
    if chance(rnd, 20):
        world = world.with_rules([*world.policy.rules, Rule("odd", obligations=AT_ODDS)])
    compare(world, rnd)


def compare(world: World, rnd: Random) -> None:
    fast = Judge(world.atlas, world.router, remembered=4)
    for _ in range(4):
        now = rnd.choice(NOWS)
        decision = decide(world.policy, make_ask(rnd, world), now)
        for place in world.places:
            later = rnd.choice([now, rnd.choice(NOWS)])
            args = (decision, place.candidate, place.endpoint, place.footprint)
            assert fast.judge(*args, later) == judge(*args, world.router, later)
        many = [(p.candidate, p.endpoint, p.footprint) for p in world.places]
        expected = [judge(decision, *one, world.router, now) for one in many]
        assert fast.judge_all(decision, many, now) == expected


test_equal = law(equal)


def test_equal_on_many_seeded_cases() -> None:
    for seed in range(600):
        equal(Random(seed))
