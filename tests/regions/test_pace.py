"""A first token's time is learned as a floor and a pace, and nothing is foretold before."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.pace import ENOUGH, Paces


def taught(floor: float, pace: float, count: int, noise: float = 0.0) -> Paces:
    rng, found = random.Random(1), Paces()
    for _ in range(count):
        tokens = rng.randrange(10, 8000)
        found.learn("fra1", tokens, floor + pace * tokens + rng.random() * noise)
    return found


def test_floor_and_pace_are_found() -> None:
    found = taught(0.08, 1 / 4000, 100, noise=0.02)
    assert found.floor("fra1") == pytest.approx(0.09, abs=0.01)
    assert found.rate("fra1") == pytest.approx(4000, rel=0.03)
    assert found.expect("fra1", 40_000) == pytest.approx(10.1, rel=0.03)


def test_nothing_is_known_before_enough_is() -> None:
    found = taught(0.08, 1 / 4000, ENOUGH - 1)
    assert (found.floor("fra1"), found.rate("fra1"), found.expect("fra1", 100)) == (0, 0, 0)
    assert Paces().expect("par1", 1000) == 0


def test_old_measurements_fade() -> None:
    found = taught(0.05, 1 / 8000, 200)
    rng = random.Random(2)
    for _ in range(400):
        tokens = rng.randrange(10, 8000)
        found.learn("fra1", tokens, 0.05 + tokens / 2000)
    assert found.rate("fra1") == pytest.approx(2000, rel=0.05)


def test_what_is_gone_is_forgotten() -> None:
    found = taught(0.05, 1 / 8000, 20)
    found.forget(frozenset({"par1"}))
    assert found.rate("fra1") == 0


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 100)), min_size=1, max_size=60))
def test_a_forecast_is_never_negative_or_falling(seen: list[tuple[float, float]]) -> None:
    found = Paces()
    for tokens, seconds in seen:
        found.learn("fra1", tokens, seconds)
    assert 0 <= found.floor("fra1") <= found.expect("fra1", 10) <= found.expect("fra1", 1000)
    assert found.rate("fra1") >= 0
