"""Drift tests fire on a change and, over many windows without one, hardly ever."""

from __future__ import annotations

import random

import pytest
from scipy.stats import chi2, ks_2samp

from classifiers.difficulty.drift import Drift, DriftWatch, ks, ks_limit, psi, psi_limit


def gauss(rng: random.Random, count: int, mean: float = 0.0) -> list[float]:
    return [rng.gauss(mean, 1) for _ in range(count)]


def run(watch: DriftWatch, values: list[float], series: str = "length") -> list[Drift]:
    return [d for d in (watch.observe(series, v) for v in values) if d is not None]


def test_ks_is_that_of_scipy() -> None:
    rng = random.Random(0)
    for other in (gauss(rng, 80), [float(rng.randint(0, 3)) for _ in range(60)]):
        first = gauss(rng, 100)
        assert ks(first, other) == pytest.approx(float(ks_2samp(first, other).statistic))


def test_psi_of_equal_and_of_known_histograms() -> None:
    assert psi([10, 20], [10, 20]) == 0
    assert psi([99, 1], [1, 99]) > 5
    assert psi([50, 0], [0, 50]) < float("inf")


@pytest.mark.parametrize("alpha", [0.05, 0.001, 1e-6])
def test_the_limit_is_a_chi_squared_quantile(alpha: float) -> None:
    exact = float(chi2.ppf(1 - alpha, 9)) * (1 / 400 + 1 / 500)
    assert psi_limit(10, 400, 500, alpha) == pytest.approx(exact, rel=0.03)
    assert ks_limit(400, 500, 0.05) == pytest.approx(1.358 * (900 / 200_000) ** 0.5, rel=0.01)


def test_no_change_stays_quiet_over_many_series_and_windows() -> None:
    rng = random.Random(1)
    fired = 0
    for _ in range(40):
        watch = DriftWatch({"length": gauss(rng, 400)}, window=200, alpha=0.05)
        fired += bool(run(watch, gauss(rng, 4000)))
    assert fired <= 7, "at most about alpha of the series may ever fire"


@pytest.mark.parametrize("shift", [0.5, -0.5, 2.0])
def test_a_shift_is_found_in_the_first_full_windows(shift: float) -> None:
    rng = random.Random(2)
    watch = DriftWatch({"length": gauss(rng, 500)}, window=250)
    assert run(watch, gauss(rng, 750)) == []
    found = run(watch, gauss(rng, 750, shift))
    assert found
    assert found[0].series == "length"
    assert found[0].ks > found[0].ks_limit or found[0].psi > found[0].psi_limit


def test_a_series_without_reference_uses_its_first_window() -> None:
    rng = random.Random(3)
    watch = DriftWatch({}, window=200)
    assert run(watch, gauss(rng, 400), "new") == []
    assert run(watch, gauss(rng, 200, 3.0), "new")


def test_constant_values_are_no_drift_until_they_change() -> None:
    watch = DriftWatch({"tools": [0.0] * 300}, window=100)
    assert run(watch, [0.0] * 500, "tools") == []
    assert run(watch, [1.0] * 100, "tools")
