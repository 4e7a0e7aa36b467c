"""The fast engine decides as the reference does: generated worlds, many asks each."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from policies.attributes import Attributes
from policies.compiled import Compiled
from policies.engine import Ask, Decision, decide
from policies.outer import bound_of
from tests.laws.worlds import NOWS, TENANTS, World, law, make_ask, make_world


def equal(rnd: Random) -> None:
    compare(make_world(rnd), rnd, asks=8)


def compare(world: World, rnd: Random, asks: int) -> None:
    # A tiny memory, so that it is emptied now and then, and every path is taken.
    compiled = Compiled(world.policy, remembered=3)
    first = world.ask
    for n in range(asks):
        ask = rnd.choice(_like(first)) if n % 2 else make_ask(rnd, world)
        now = rnd.choice(NOWS)
        expected = decide(world.policy, ask, now)
        found = compiled.decide(ask, now)
        assert found == expected
        for place in world.places:
            assert found.allowed(place.candidate) == expected.allowed(place.candidate)
        assert found.unknowns == expected.unknowns
        assert compiled.outer(ask, now) == bound_of(world.policy, ask, now)
        since, until = compiled.constant(now)
        if now < until:
            assert since <= now
            assert _but_for_now(decide(world.policy, ask, since), now) == expected or since < 0


def _but_for_now(decision: Decision, now: float) -> Decision:
    return decision._replace(now=now)


def _like(ask: Ask) -> list[Ask]:
    """Asks that differ in one thing, so that none may be mistaken for another."""
    others = [replace(ask, tenant=t) for t in TENANTS]
    others += [replace(ask, purpose=p) for p in ("batch", "shadow")]
    others += [replace(ask, app=a) for a in ("crm", "chat", None)]
    bare = Attributes(ask.attributes.states)
    names = list(ask.attributes.states)
    turned = Attributes(
        dict(zip(names[1:] + names[:1], ask.attributes.states.values(), strict=True))
    )
    others += [replace(ask, attributes=one) for one in (bare, turned)]
    return [ask, ask, *others]


test_equal = law(equal)


def test_equal_on_many_seeded_cases() -> None:
    for seed in range(400):
        rnd = Random(seed)
        compare(make_world(rnd), rnd, asks=10)


@pytest.mark.slow
def test_equal_on_a_hundred_thousand_cases() -> None:
    for seed in range(4_000):
        rnd = Random(-1 - seed)
        compare(make_world(rnd), rnd, asks=25)


def test_tenants_without_a_grant_are_not_remembered_for_ever() -> None:
    world = make_world(Random(1))
    compiled = Compiled(world.policy, remembered=8)
    for n in range(200):
        ask = make_ask(Random(n), world, tenant=f"stranger-{n}")
        assert compiled.decide(ask, 50.0).denied == "no_grant"
    stretch = compiled._stretch(50.0)
    assert len(stretch.folded) <= 8
    assert len(compiled._owns) <= 8 + 4 * len(TENANTS)
    assert set(stretch.grants) <= set(TENANTS)
