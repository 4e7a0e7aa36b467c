"""Probabilities: the logistic curve is found again, never falls, and survives one-sided labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from classifiers.difficulty.calibration import platt, platt_knots
from classifiers.difficulty.scorer import interpolate


def sample(n: int, slope: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    x = rng.normal(0.1, 0.05, n)
    return x, rng.random(n) < 1 / (1 + np.exp(-(slope * x - 2)))


def test_the_curve_is_found_again() -> None:
    gains, better = sample(20_000, 12.0)
    slope, intercept = platt(gains, better)
    assert slope == pytest.approx(12, abs=1.5)
    assert intercept == pytest.approx(-2, abs=0.2)


def test_close_to_scikit_learn() -> None:
    gains, better = sample(2000, 12.0)
    slope, intercept = platt(gains, better)
    other = LogisticRegression(C=1e9).fit(gains[:, None] * 100, better)
    assert slope == pytest.approx(float(other.coef_[0, 0]) * 100, rel=0.02)
    assert intercept == pytest.approx(float(other.intercept_[0]), abs=0.03)


def test_points_never_fall_and_lie_on_the_curve() -> None:
    gains, better = sample(2000, 12.0)
    slope, intercept = platt(gains, better)
    knots = platt_knots(gains, better)
    xs, ys = [x for x, _ in knots], [y for _, y in knots]
    assert xs == sorted(xs)
    assert ys == sorted(ys)
    for x in np.quantile(gains, (0.01, 0.5, 0.99)):
        exact = 1 / (1 + np.exp(-(slope * x + intercept)))
        assert interpolate(xs, ys, float(x)) == pytest.approx(float(exact), abs=2e-3)


def test_a_ranking_that_is_wrong_locally_gives_the_base_rate() -> None:
    gains, better = sample(2000, 12.0)
    slope, _ = platt(-gains, better)
    assert slope == 0
    assert {round(y, 2) for _, y in platt_knots(-gains, better)} == {round(better.mean(), 2)}


@pytest.mark.parametrize("value", [True, False])
def test_one_sided_labels_stay_inside_zero_and_one(value: bool) -> None:
    knots = platt_knots(np.linspace(0, 1, 30), np.full(30, value))
    assert all(0 < y < 1 for _, y in knots)
