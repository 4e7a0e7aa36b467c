"""Call-performance numbers of rows drawn again and again, sorted only once.

A draw says how often each row counts. Rows in the order of their scores then give its curve by two
running sums: it is the curve of the drawn rows, without sorting them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Ends of the straight parts of a curve: `share` of calls to strong, `recovered` quality.

    Both begin with 0 and end with 1; `size` is the number of rows.
    """

    share: Vector
    recovered: Vector
    size: int

    def area(self) -> float:
        """APGR."""
        return float(np.trapezoid(self.recovered, self.share))

    def reach(self, target: float) -> float:
        """The smallest share of the rows, in whole rows, with `target` (below 1) recovered."""
        end = int(np.argmax(self.recovered >= target))
        if end == 0:
            return 0.0
        low, high = self.recovered[end - 1], self.recovered[end]
        first = self.share[end - 1] * self.size
        rows = (target - low) / (high - low) * (self.share[end] * self.size - first)
        # What additions leave in the last digits must not cost another row.
        return float(np.ceil(first + rows - 1e-6) / self.size)


class Resampled:
    """The curves of draws from rows with these scores and gains (strong minus weak)."""

    __slots__ = ("_blocks", "_gain", "_order", "size")

    def __init__(self, scores: Vector, gain: Vector) -> None:
        self._order = np.argsort(-scores, kind="stable")
        ordered = scores[self._order]
        self._gain = gain[self._order]
        self._blocks = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self.size = len(gain)

    def curve(self, counts: Counts) -> Curve | None:
        """The curve of a draw in which row i counts `counts[i]` times; None without a gain."""
        drawn = counts[self._order]
        gains = drawn * self._gain
        if len(self._blocks) < self.size:
            drawn = np.add.reduceat(drawn, self._blocks)
            gains = np.add.reduceat(gains, self._blocks)
        total = float(gains.sum())
        if not total > 0:
            return None
        size = int(counts.sum())
        share = np.concatenate([[0.0], np.cumsum(drawn)]) / size
        return Curve(share, np.concatenate([[0.0], np.cumsum(gains)]) / total, size)


def drawing(size: int, groups: Sequence[str] = ()) -> Callable[[np.random.Generator], Counts]:
    """Draws with replacement: how often each of `size` rows is in one.

    `groups`: rows of one group are drawn together, so that copies of a row make nothing surer.
    """
    place = _places(groups) if groups else np.arange(size)
    many = int(place.max(initial=-1)) + 1

    def drawn(rng: np.random.Generator) -> Counts:
        return np.bincount(rng.integers(0, many, many), minlength=many)[place].astype(np.int64)

    return drawn


def _places(groups: Sequence[str]) -> Counts:
    """The number of each row's group, in the order in which they come first."""
    _, first, place = np.unique(list(groups), return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]
