"""Folding: what the engine's own laws don't look at; equality is tested in `test_compiled`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from random import Random

import pytest

from policies.attributes import Attributes, Truth
from policies.conditions import Is
from policies.engine import Applied, Ask, granted, narrowed
from policies.folding import Axis, Folding, Reasons
from policies.masks import bits
from policies.model import Grant, Rule
from policies.timed import always
from tests.laws.worlds import make_atlas, make_world

DATA = Is("data", frozenset({"x"}))
RULES = (Rule("a", because="law"), Rule("b", DATA), Rule("c", row="DE"))


def reasons(applying: int, unknown: int = 0) -> Reasons:
    folding = Folding(RULES, 0.0, make_atlas(Random(0)), 8)
    return Reasons(folding, applying, unknown, Ask("clinic"))


def test_reasons_are_a_set_of_what_applied() -> None:
    found: AbstractSet[Applied] = reasons(0b111, 0b010)
    wanted: AbstractSet[Applied] = frozenset(
        {Applied("a", because="law"), Applied("b", unknown=("data",)), Applied("c", "DE")}
    )
    assert found == wanted
    assert wanted == found
    assert hash(found) == hash(wanted)
    assert len(found) == 3
    assert Applied("c", "DE") in found
    assert (found | {Applied("d")}) == wanted | {Applied("d")}
    assert found != reasons(0b101)
    assert not reasons(0)


def test_few_boundaries_and_many_give_the_same() -> None:
    rnd = Random(3)
    for _ in range(200):
        bounds = [rnd.getrandbits(8) if rnd.random() < 0.8 else None for _ in range(9)]
        axis, applying = Axis(bounds), rnd.getrandbits(9)
        wanted = 255
        for n in bits(applying):
            one = bounds[n]
            wanted &= 255 if one is None else one
        assert axis.met(255, applying) == wanted


@pytest.mark.parametrize("seed", range(30))
def test_a_fold_is_what_narrowing_by_each_rule_gives(seed: int) -> None:
    world = make_world(Random(seed))
    policy, atlas = world.policy, world.atlas
    folding = Folding(policy.rules, 50.0, atlas, 1)
    start = wanted = granted(atlas, Grant.within(always(atlas.worldwide())), 50.0)
    for rule in policy.rules:
        wanted = narrowed(wanted, rule, Attributes(), Truth.TRUE, 50.0)
    every = (1 << len(policy.rules)) - 1
    assert folding.folded(start, every) == wanted
    assert folding.processed(start.process, every) == wanted.process
    assert len(folding._bounds) <= 1
