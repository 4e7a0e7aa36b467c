"""Curves of draws without sorting them are those of the drawn rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.difficulty import curves
from classifiers.difficulty.bootstrap import Resampled, drawing

SCORES = st.sampled_from([-1.5, 0.0, 0.1, 0.2, 3.0, np.inf])
ROWS = st.lists(
    st.tuples(SCORES, st.sampled_from([-1.0, 0.0, 1.0])), min_size=1, max_size=40
)  # fmt: skip


@given(ROWS, st.data())
def test_a_draw_has_the_curve_of_its_rows(rows: list[tuple[float, float]], data: Any) -> None:
    scores, gain = np.array(rows).T
    drawn = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    curve = Resampled(scores, gain).curve(drawn)
    again = np.repeat(np.arange(len(rows)), drawn)
    if not gain[again].sum() > 0:
        assert curve is None
        return
    assert curve is not None
    assert curve.area() == pytest.approx(curves.apgr(scores[again], gain[again]))
    share, recovered = curves.curve(scores[again], gain[again])
    for target in (0.5, 0.8):
        first = int(np.flatnonzero(recovered >= target - 1e-9)[0])
        assert curve.reach(target) == pytest.approx(share[first])


def test_counts_are_those_of_as_many_rows() -> None:
    drawn = drawing(1000)(np.random.default_rng(0))
    assert drawn.sum() == 1000
    assert len(drawn) == 1000
    assert 300 < (drawn == 0).sum() < 440, "about one row in e is not drawn"


def test_a_group_is_drawn_as_a_whole_and_single_rows_as_without_groups() -> None:
    draw = drawing(40, [f"group {number % 20}" for number in range(40)])
    drawn = draw(np.random.default_rng(1))
    assert drawn[:20].tolist() == drawn[20:].tolist()
    assert drawn[:20].sum() == 20
    single = drawing(40, [f"{-number}" for number in range(40)])(np.random.default_rng(2))
    assert single.tolist() == drawing(40)(np.random.default_rng(2)).tolist()
