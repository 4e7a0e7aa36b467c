"""The measures: known values, ties in expectation, bounds that cover, and the shared metrics."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from classifiers.difficulty import curves

DATA = Path(os.environ.get("DOMICILE_DEV_DATA", "../shared/data")) / "classifier"


def test_perfect_random_and_reversed_rankings() -> None:
    gain = np.array([1.0] * 20 + [0.0] * 80)
    assert curves.apgr(gain, gain) == pytest.approx(0.9)
    assert curves.apgr(-gain, gain) == pytest.approx(0.1)
    assert curves.apgr(np.zeros(100), gain) == pytest.approx(0.5)
    assert curves.cpt(gain, gain, 0.5) == pytest.approx(0.1)
    assert curves.cpt(np.zeros(100), gain, 0.8) == pytest.approx(0.8, abs=0.011)


def test_infinite_scores_are_one_block() -> None:
    gain = np.array([1.0, 0.0, 1.0, 0.0])
    share, recovered = curves.curve(np.array([np.inf, np.inf, 0.1, 0.2]), gain)
    assert share.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert recovered.tolist() == [0, 0.25, 0.5, 0.5, 1]


def test_no_gap_has_no_answer() -> None:
    assert np.isnan(curves.apgr(np.ones(2), np.array([1.0, -1.0])))
    assert np.isnan(curves.cpt(np.ones(2), np.array([1.0, -1.0]), 0.5))
    assert np.isnan(curves.apgr(np.ones(0), np.ones(0)))


def test_calibration_error_of_a_calibrated_and_a_wrong_model() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.6, 3000)
    y = (rng.random(3000) < p).astype(float)
    assert curves.ece(p, y) > 0.005, "the plain error of a perfect model is not zero"
    assert curves.debiased_ece(p, y, rng) < 0.01
    assert curves.debiased_ece(p + 0.2, y, rng) > 0.15
    assert curves.brier(p, p) == 0


def test_bounds_leave_out_what_is_not_finite() -> None:
    interval = curves.bounds([0.1, 0.2, float("nan"), 0.3], 0.2)
    assert interval.low < 0.2 < interval.high
    assert np.isnan(curves.bounds([], 0.2).low)


def test_floor_points_rise_to_the_whole_gap() -> None:
    rng = np.random.default_rng(1)
    gain = (rng.random(500) < 0.3).astype(float)
    points = curves.floor_points(gain + rng.normal(0, 0.5, 500), gain)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (1.0, 1.0)
    assert all(0 <= bound <= 1.001 for _, bound in points)
    assert curves.floor_points(np.ones(10), -np.ones(10)) == ((1.0, 1.0),)
    even = np.array([1.0, -1.0] * 100)
    assert curves.floor_points(rng.random(200), even) == ((1.0, 1.0),), "a gap in half of the draws"


@pytest.mark.skipif(not (DATA / "metrics.py").exists(), reason="DOMICILE_DEV_DATA is not here")
def test_equal_to_the_shared_metrics() -> None:
    spec = importlib.util.spec_from_file_location("shared_metrics", DATA / "metrics.py")
    assert spec is not None
    assert spec.loader is not None
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    rng = np.random.default_rng(2)
    weak = (rng.random(800) < 0.6).astype(float)
    strong = (rng.random(800) < 0.8).astype(float)
    scores = rng.integers(0, 40, 800).astype(float)
    assert curves.apgr(scores, strong - weak) == pytest.approx(shared.apgr(scores, weak, strong))
    for x in (0.5, 0.8):
        found = curves.cpt(scores, strong - weak, x)
        assert found == pytest.approx(shared.cpt(scores, weak, strong, x))
    p = rng.random(800)
    assert curves.ece(p, weak) == pytest.approx(shared.ece(p, weak))


def test_copies_of_rows_do_not_raise_the_floor() -> None:
    random = np.random.default_rng(1)
    scores = random.random(50)
    gain = (random.random(50) < scores).astype(float)
    copied = np.tile(scores, 10), np.tile(gain, 10)
    once = dict(curves.floor_points(scores, gain))[0.5]
    unseen = dict(curves.floor_points(*copied))[0.5]
    counted = curves.floor_points(copied[0], copied[1], groups=[str(i) for i in range(50)] * 10)
    assert unseen > once + 0.05
    assert dict(counted)[0.5] == pytest.approx(once, abs=0.02)
