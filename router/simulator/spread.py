"""Percentiles of many values in little room: bins that each are one percent wider than the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, floor, log, log1p
from typing import Final

WIDTH: Final = 0.01
_STEP: Final = log1p(WIDTH)
_LEAST: Final = 1e-6


@dataclass(slots=True)
class Spread:
    """Values of 0 and more, with how often each came; exact to one percent."""

    count: int = 0
    total: float = 0.0
    most: float = 0.0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, value: float, count: int = 1) -> None:
        """A value came `count` times."""
        number = floor(log(value / _LEAST) / _STEP) if value > _LEAST else -1
        self.bins[number] = self.bins.get(number, 0) + count
        self.count += count
        self.total += value * count
        self.most = max(self.most, value)

    def join(self, others: Iterable[Spread]) -> Spread:
        """Take in what others counted; gives itself."""
        for other in others:
            for number, count in other.bins.items():
                self.bins[number] = self.bins.get(number, 0) + count
            self.count += other.count
            self.total += other.total
            self.most = max(self.most, other.most)
        return self

    @property
    def mean(self) -> float:
        """Their mean; 0 of none."""
        return self.total / self.count if self.count else 0.0

    def at(self, share: float) -> float:
        """The value that `share` (0 to 1) of all lie at or below; 0 of none."""
        wanted, seen = share * self.count, 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen >= wanted:
                return min(self.most, _LEAST * exp((number + 0.5) * _STEP)) if number >= 0 else 0.0
        return self.most

    def within(self, limit: float) -> float:
        """The share of values at or below a limit; 1 of none."""
        if not self.count:
            return 1.0
        last = floor(log(limit / _LEAST) / _STEP) if limit > _LEAST else -1
        return sum(count for number, count in self.bins.items() if number <= last) / self.count
