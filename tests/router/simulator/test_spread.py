"""Percentiles to one percent, whatever is counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.simulator.spread import Spread


@given(st.lists(st.floats(1e-5, 1e5), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_percentile_is_near_the_true_one(values: list[float], share: float) -> None:
    spread = Spread()
    for value in values:
        spread.add(value)
    ordered = sorted(values)
    rank = next(n for n in range(1, len(values) + 1) if n >= share * len(values))
    assert spread.at(share) == pytest.approx(ordered[rank - 1], rel=0.011)
    assert spread.mean == pytest.approx(sum(values) / len(values))
    assert spread.most == max(values)


def test_joined_spreads_count_together() -> None:
    one, other = Spread(), Spread()
    one.add(1.0, 3)
    other.add(100.0)
    both = Spread().join([one, other])
    assert both.count == 4
    assert both.at(0.75) == pytest.approx(1.0, rel=0.01)
    assert both.at(1.0) == pytest.approx(100.0, rel=0.01)


def test_the_share_within_a_limit() -> None:
    spread = Spread()
    assert (spread.within(1.0), spread.at(0.5), spread.mean) == (1.0, 0.0, 0.0)
    for value in (0.0, 1.0, 2.0, 3.0):
        spread.add(value)
    assert spread.within(0.5) == 0.25
    assert spread.within(2.5) == 0.75
    assert spread.at(0.25) == 0.0
