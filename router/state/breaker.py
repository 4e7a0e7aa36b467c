"""What keeps requests clear of a Redis that is sick: for a while nothing is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BREAK: Final = 1.0
BREAK_MAX: Final = 10.0
"""Seconds of the first pause and of the longest; each in a row is twice as long."""


class Breaker:
    """Open after a failed call, for a pause.

    Args:
        clock: monotonic seconds.
        meanwhile: what is done without it, for the operator.

    Attributes:
        reason: why calls failed; empty since the last that didn't.
    """

    __slots__ = ("_breaks", "_clock", "_meanwhile", "_until", "reason")

    def __init__(self, clock: Callable[[], float], meanwhile: str) -> None:
        self._clock = clock
        self._meanwhile = meanwhile
        self._until = 0.0
        self._breaks = 0
        self.reason = ""

    @property
    def is_open(self) -> bool:
        """Whether nothing is to be asked now."""
        return self._clock() < self._until

    @property
    def pause(self) -> float:
        """Seconds until it may be asked again."""
        return max(0.0, self._until - self._clock())

    def trip(self, error: Exception) -> None:
        """A call failed. Of those that were under way together only the first is another in a
        row: a moment that many requests met would else be paused for as long as an outage."""
        if not self.is_open:
            self._breaks += 1
            self._until = self._clock() + min(BREAK * 2 ** min(self._breaks - 1, 8), BREAK_MAX)
        self.reason = f"redis: {type(error).__name__}; {self._meanwhile}"

    def mend(self) -> None:
        """A call was answered."""
        self._breaks, self.reason = 0, ""
