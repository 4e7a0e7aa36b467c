"""Pairs by time alone: which calls an attempt may explain that nothing else tells apart. Pure.

Each attempt explains one call at most, and lies in its own stretch of time. Calls are taken in the
order of their time, each by the attempt that ends first: that pairs as many as can be paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Stretch:
    """An attempt, and from when to when its call may have been recorded."""

    attempt: int
    start: int
    end: int


def pairs(
    stretches: Iterable[Stretch], calls: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """(attempt, call) pairs.

    Args:
        stretches: in the order of their start.
        calls: (call, time) in the order of time.
    """
    waiting, open_ = iter(stretches), list[tuple[int, int]]()
    upcoming = next(waiting, None)
    for call, time in calls:
        while upcoming is not None and upcoming.start <= time:
            heappush(open_, (upcoming.end, upcoming.attempt))
            upcoming = next(waiting, None)
        while open_ and open_[0][0] < time:
            heappop(open_)
        if open_:
            yield heappop(open_)[1], call
