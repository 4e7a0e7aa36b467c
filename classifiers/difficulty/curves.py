"""Call-performance curves and calibration errors, with bootstrap bounds.

PGR(c) = recovered share of the gap between weak and strong when a share c of calls goes to
strong; APGR is its mean over c; CPT(x) the smallest c with PGR >= x (arXiv 2406.18665 section 3).
Ties are broken in expectation. AIQ follows RouterBench (arXiv 2403.12031).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.difficulty.bootstrap import Resampled, drawing

Vector = NDArray[np.float64]
BINS: Final = 15
FEW: Final = 0.025
"""Bounds that leave out more of the bootstrap draws than this are none."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its 95 % bounds."""

    value: float
    low: float
    high: float


def curve(scores: Vector, gain: Vector) -> tuple[Vector, Vector]:
    """(share to strong, PGR), each (n + 1,); highest scores go to strong first."""
    order = np.argsort(-scores, kind="stable")
    sorted_scores, sorted_gain = scores[order], gain[order]
    block = np.concatenate([[0], np.cumsum(sorted_scores[1:] != sorted_scores[:-1])])
    mean = np.bincount(block, sorted_gain) / np.bincount(block)
    total = np.concatenate([[0.0], np.cumsum(mean[block])]) / len(gain)
    return np.arange(len(gain) + 1) / len(gain), total / gain.mean()


def apgr(scores: Vector, gain: Vector) -> float:
    """Area under the curve; random is 0.5. NaN if weak and strong are equal on average."""
    if not len(gain) or gain.mean() == 0:
        return float("nan")
    share, recovered = curve(scores, gain)
    return float(np.trapezoid(recovered, share))


def cpt(scores: Vector, gain: Vector, target: float) -> float:
    """Smallest share of strong calls with PGR >= target; NaN if never."""
    if not len(gain) or gain.mean() == 0:
        return float("nan")
    share, recovered = curve(scores, gain)
    reached = np.flatnonzero(recovered >= target)
    return float(share[reached[0]]) if len(reached) else float("nan")


def ece(probability: Vector, outcome: Vector, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass."""
    return _error(_binned(probability, bins), outcome)


def _binned(probability: Vector, bins: int) -> list[tuple[NDArray[np.int64], float]]:
    """The rows of each bin that has any, and their mean probability."""
    order = np.argsort(probability, kind="stable")
    return [
        (rows, float(probability[rows].mean())) for rows in np.array_split(order, bins) if len(rows)
    ]


def _error(binned: list[tuple[NDArray[np.int64], float]], outcome: Vector) -> float:
    gaps = [len(rows) * abs(mean - float(outcome[rows].mean())) for rows, mean in binned]
    return sum(gaps) / len(outcome)


def debiased_ece(
    probability: Vector, outcome: Vector, rng: np.random.Generator, draws: int = 200
) -> float:
    """ECE minus what a perfectly calibrated model of the same size would show, at least 0."""
    binned = _binned(probability, BINS)  # sorted once for all draws
    perfect = [
        _error(binned, (rng.random(len(probability)) < probability).astype(float))
        for _ in range(draws)
    ]
    return max(0.0, _error(binned, outcome) - float(np.mean(perfect)))


def brier(probability: Vector, outcome: Vector) -> float:
    """Mean squared error of a probability."""
    return float(((probability - outcome) ** 2).mean())


def bounds(draws: list[float], value: float) -> Interval:
    """Percentile bounds of bootstrap draws, and never beyond the value itself.

    Draws that are not finite are left out.
    """
    finite = [draw for draw in draws if np.isfinite(draw)]
    if not finite:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(finite, (0.025, 0.975))
    return Interval(value, min(float(low), value), max(float(high), value))


def floor_points(
    scores: Vector, gain: Vector, draws: int = 200, groups: Sequence[str] = ()
) -> tuple[tuple[float, float], ...]:
    """(strong share, lower 95 % bound of PGR there) in steps of 5 %, from a fixed bootstrap.

    `groups`: rows of one group are drawn together, so that copies of a row make nothing surer.
    Only the share of 1 where strong is not better than weak in more than one draw in forty: what
    is recovered of no gap has no bound.
    """
    rng = np.random.default_rng(0)
    shares = np.linspace(0, 1, 21)
    resampled, drawn, kept = Resampled(scores, gain), drawing(len(gain), groups), []
    for _ in range(draws):
        found = resampled.curve(drawn(rng))
        if found is not None:
            kept.append(np.interp(shares, found.share, found.recovered))
    if len(kept) < draws * (1 - FEW):
        return ((1.0, 1.0),)
    low = np.quantile(np.array(kept), 0.025, axis=0)
    return tuple((round(float(s), 2), round(float(v), 6)) for s, v in zip(shares, low, strict=True))
