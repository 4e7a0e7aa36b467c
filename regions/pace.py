"""How soon an endpoint's first token comes: learned from those that came. Pure.

The time is taken as a floor (the way there and back, and an engine's step) and a pace (seconds for
each prompt token that is computed before): a straight line through what was measured, in which
old measurements fade. Both are zero until enough is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

ENOUGH: Final = 8
"""Answers after which the line is believed."""
_KEEP: Final = 0.99
"""What a measurement still weighs when the next one has come: about a hundred count."""
_ERRS: Final = 2.0
"""How far a forecast may be off after one answer, as a share of it; of `n` answers it is `sqrt(n)`
times less. Who is chosen by forecasts takes each for as good as it may be: what was slow at
first is not asked again otherwise, and nobody learns that it isn't."""


@dataclass(slots=True)
class Line:
    """What was measured of one endpoint, and the line through it.

    `sure`: the share of a forecast that will come true at least, 0 to 1; see `_ERRS`.
    """

    count: int = 0
    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    floor: float = 0.0
    pace: float = 0.0
    sure: float = 0.0

    def add(self, x: float, y: float) -> None:
        """One more measurement: `y` seconds for `x` tokens."""
        self.count += 1
        self.weight = self.weight * _KEEP + 1
        self.x = self.x * _KEEP + x
        self.y = self.y * _KEEP + y
        self.xx = self.xx * _KEEP + x * x
        self.xy = self.xy * _KEEP + x * y
        if self.count >= ENOUGH:
            self._fit()

    def _fit(self) -> None:
        self.sure = max(0.0, 1 - _ERRS / sqrt(self.weight))
        mean_x, mean_y = self.x / self.weight, self.y / self.weight
        spread = self.xx / self.weight - mean_x * mean_x
        common = self.xy / self.weight - mean_x * mean_y
        self.pace = max(0.0, common / spread) if spread > 1 else 0.0
        self.floor = max(0.0, mean_y - self.pace * mean_x)
        if not self.floor and mean_x > 0:
            self.pace = min(self.pace, mean_y / mean_x)


class Paces:
    """Floor and pace of every endpoint, by its name."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}

    def learn(self, endpoint: str, tokens: float, seconds: float) -> None:
        """A first token came `seconds` after its request, with so many prompt tokens to compute.

        Args:
            tokens: its own, and those of the requests that were before it.
        """
        self.line(endpoint).add(tokens, seconds)

    def line(self, endpoint: str) -> Line:
        """An endpoint's floor and pace, in seconds and seconds a token; both 0 while not known.

        The same object until it is forgotten: for those who look often, and only look.
        """
        line = self._lines.get(endpoint)
        if line is None:
            line = self._lines[endpoint] = Line()
        return line

    def floor(self, endpoint: str) -> float:
        """Seconds to a first token when there is nothing to compute; 0 while not known."""
        line = self._lines.get(endpoint)
        return 0.0 if line is None else line.floor

    def rate(self, endpoint: str) -> float:
        """Prompt tokens a second of one replica; 0 while not known."""
        line = self._lines.get(endpoint)
        return 1 / line.pace if line is not None and line.pace > 0 else 0.0

    def expect(self, endpoint: str, tokens: float) -> float:
        """Seconds to the first token with so many tokens to compute before it; 0: not known."""
        line = self._lines.get(endpoint)
        return 0.0 if line is None else line.floor + line.pace * tokens

    def forget(self, keep: frozenset[str]) -> None:
        """Drop endpoints that are gone."""
        for name in self._lines.keys() - keep:
            del self._lines[name]
