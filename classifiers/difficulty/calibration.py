"""From a signed gain to the probability that the strong model is better: a logistic curve.

Platt's method (Platt 1999, with his smoothed targets) on gains made without their own row. The
curve is kept as a few points, so that the hot path interpolates and needs no exponential.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Knots = tuple[tuple[float, float], ...]
POINTS: Final = 33
_STEPS: Final = 50


def platt(gains: Vector, better: NDArray[np.bool_]) -> tuple[float, float]:
    """(slope, intercept) of P(better) = 1 / (1 + exp(-(slope * gain + intercept)))."""
    positive = int(better.sum())
    high, low = (positive + 1) / (positive + 2), 1 / (len(better) - positive + 2)
    target = np.where(better, high, low)
    spread = float(gains.std()) or 1.0
    x = np.column_stack([gains / spread, np.ones(len(gains))])
    weights = np.array([0.0, float(np.log(target.mean() / (1 - target.mean())))])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(x @ weights)))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, x.T @ (target - p))
        weights += step
        if float(np.abs(step).max()) < 1e-10:
            break
    # A falling curve would turn the ranking around: then the base rate is all that is known.
    slope = max(0.0, float(weights[0]))
    if slope == 0.0:
        return 0.0, float(np.log(target.mean() / (1 - target.mean())))
    return slope / spread, float(weights[1])


def platt_knots(gains: Vector, better: NDArray[np.bool_]) -> Knots:
    """The curve at points over the range of `gains`, rounded; probability in (0, 1)."""
    slope, intercept = platt(gains, better)
    low, high = float(gains.min()), float(gains.max())
    margin = (high - low) * 0.25 or 1e-6
    points = np.linspace(low - margin, high + margin, POINTS)
    values = 1 / (1 + np.exp(-(slope * points + intercept)))
    return tuple(
        (float(f"{x:.9g}"), float(f"{y:.9g}")) for x, y in zip(points, values, strict=True)
    )
