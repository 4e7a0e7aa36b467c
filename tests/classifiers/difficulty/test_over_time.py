"""Rows with a time: drift is seen in the window in which it began, and the loss with it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from classifiers.difficulty.dataset import Example
from classifiers.difficulty.over_time import LEAST, figures

DAY = 86_400.0


def at_times(examples: list[Example], worse_from: int) -> list[Example]:
    return [
        replace(e, at=1e9 + n * DAY / 100, y_weak=0.0 if n >= worse_from else 1.0, y_strong=1.0)
        for n, e in enumerate(examples)
    ]  # fmt: skip


def heights(text: str, colour: str) -> list[float]:
    """Places from above of the dots of a line."""
    return [
        float(y) for y in re.findall(rf'circle cx="[^"]*" cy="([^"]*)" r="4" fill="{colour}"', text)
    ]


def test_a_change_is_seen_where_it_was(examples: list[Example]) -> None:
    rows = at_times(examples, 200)
    rank = np.where(np.arange(400) < 200, 0.0, 1.0) + np.random.default_rng(0).normal(0, 0.1, 400)
    order = np.random.default_rng(1).permutation(400)
    found = figures([rows[i] for i in order], rank[order], rank[:200].tolist())
    assert set(found) == {"drift_over_time", "quality_over_time"}
    scores = heights(found["drift_over_time"], "#1b6ca8")
    lost = heights(found["quality_over_time"], "#1b6ca8")
    assert len(scores) == len(lost) == 400 // LEAST
    assert min(scores[:4]) > max(scores[4:]), "higher on the page since the fifth window"
    assert min(lost[:4]) > max(lost[4:])
    assert "scores, against training" in found["drift_over_time"]
    assert "length of the question, against the first window" in found["drift_over_time"]
    assert "days since the first row" in found["quality_over_time"]


def test_few_rows_or_rows_without_a_time_have_no_such_figures(examples: list[Example]) -> None:
    rows = at_times(examples, 200)
    assert figures(rows[: 2 * LEAST - 1], np.zeros(2 * LEAST - 1), ()) == {}
    assert figures([*rows[:-1], examples[0]], np.zeros(400), ()) == {}
    assert len(figures(rows, np.zeros(400), ())) == 2
