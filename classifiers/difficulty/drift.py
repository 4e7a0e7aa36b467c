"""Has the traffic changed? PSI and Kolmogorov-Smirnov with test sizes, on windows of values.

A rule of thumb ("PSI above 0.2") fires on small windows without any change. Here the limit is the
quantile of the statistic under no change: PSI * nm/(n+m) is about chi-squared with bins - 1
degrees of freedom (Yurdakul 2018), and KS has its asymptotic limit. The size of each test falls
as 6 / (pi k)^2 with its number k, so that all tests of one series together stay below `alpha`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, pi, sqrt
from statistics import NormalDist
from typing import Final

BINS: Final = 10
WINDOW: Final = 500
ALPHA: Final = 0.01


@dataclass(frozen=True, slots=True)
class Drift:
    """A series left its reference: both statistics, their limits, the number of the test."""

    series: str
    test: int
    psi: float
    psi_limit: float
    ks: float
    ks_limit: float


def psi(expected: Sequence[int], actual: Sequence[int]) -> float:
    """Population stability index of two histograms over the same bins; half a count is added."""
    n, m = sum(expected) + len(expected) / 2, sum(actual) + len(actual) / 2
    shares = [((e + 0.5) / n, (a + 0.5) / m) for e, a in zip(expected, actual, strict=True)]
    return sum((a - e) * log(a / e) for e, a in shares)


def psi_limit(bins: int, n: int, m: int, alpha: float) -> float:
    """The value PSI exceeds with probability `alpha` if nothing changed."""
    free = bins - 1
    # Wilson and Hilferty 1931: the cube root of chi-squared is nearly normal.
    spread = 2 / (9 * free)
    chi = free * (1 - spread + NormalDist().inv_cdf(1 - alpha) * sqrt(spread)) ** 3
    return chi * (1 / n + 1 / m)


def ks(first: Sequence[float], second: Sequence[float]) -> float:
    """Largest distance between two empirical distributions, ties included."""
    a, b = sorted(first), sorted(second)
    return max(abs(bisect_right(a, x) / len(a) - bisect_right(b, x) / len(b)) for x in {*a, *b})


def ks_limit(n: int, m: int, alpha: float) -> float:
    """The distance exceeded with probability about `alpha` if nothing changed."""
    return sqrt(-log(alpha / 2) / 2 * (n + m) / (n * m))


def compare(
    reference: Sequence[float], values: Sequence[float], series: str = "score", alpha: float = ALPHA
) -> Drift:
    """Both statistics of one test of `values` against a sorted or unsorted `reference`."""
    ordered = sorted(reference)
    return _compared(series, 1, ordered, _cuts(ordered), values, alpha)


class DriftWatch:
    """Compares full windows of each series with its reference sample.

    `reference`: values of each series when the model was trained (hundreds, any order). A series
    not named there is watched against its own first window.
    """

    __slots__ = ("_alpha", "_edges", "_reference", "_seen", "_tests", "_window")

    def __init__(
        self,
        reference: Mapping[str, Sequence[float]],
        window: int = WINDOW,
        alpha: float = ALPHA,
    ) -> None:
        self._window, self._alpha = window, alpha
        self._seen: dict[str, list[float]] = {}
        self._tests: dict[str, int] = {}
        self._reference: dict[str, list[float]] = {}
        self._edges: dict[str, list[float]] = {}
        for series, values in reference.items():
            self._refer(series, values)

    def observe(self, series: str, value: float) -> Drift | None:
        """Add a value; a Drift if its window is full and differs from the reference."""
        seen = self._seen.setdefault(series, [])
        seen.append(value)
        if len(seen) < self._window:
            return None
        self._seen[series] = []
        if series not in self._reference:
            self._refer(series, seen)
            return None
        return self._test(series, seen)

    def _refer(self, series: str, values: Sequence[float]) -> None:
        ordered = sorted(values)
        self._reference[series] = ordered
        self._edges[series] = _cuts(ordered)

    def _test(self, series: str, seen: Sequence[float]) -> Drift | None:
        number = self._tests[series] = self._tests.get(series, 0) + 1
        # Half of the size for each of the two statistics.
        alpha = self._alpha * 6 / (pi * number) ** 2 / 2
        found = _compared(
            series, number, self._reference[series], self._edges[series], seen, alpha
        )  # fmt: skip
        return found if found.psi > found.psi_limit or found.ks > found.ks_limit else None


def _cuts(ordered: Sequence[float]) -> list[float]:
    cuts = {ordered[len(ordered) * i // BINS] for i in range(1, BINS)} if ordered else set()
    return sorted(cuts)


def _compared(
    series: str,
    number: int,
    reference: Sequence[float],
    edges: Sequence[float],
    seen: Sequence[float],
    alpha: float,
) -> Drift:
    n, m = len(reference), len(seen)
    return Drift(
        series, number,
        psi(_histogram(reference, edges), _histogram(seen, edges)),
        psi_limit(max(len(edges) + 1, 2), n, m, alpha),
        ks(reference, seen), ks_limit(n, m, alpha),
    )  # fmt: skip


def _histogram(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[bisect_right(edges, value)] += 1
    return counts
