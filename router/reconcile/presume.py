"""Pairs by time alone: which calls an attempt may explain that nothing else tells apart. Pure.

Each attempt explains one call at most, and lies in its own stretch of time.

1. Calls are taken in the order of their time, each by the attempt that ends first: that pairs as
   many as can be paired.
2. An attempt that must have a call and got none takes that of one which only may have had one, if
   need be by others that change theirs. So as many are paired as before, and no record is called
   missing that only explains something else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Stretch:
    """An attempt, and from when to when its call may have been recorded; `surely` there is one."""

    attempt: int
    start: int
    end: int
    surely: bool = False


def pairs(
    stretches: Iterable[Stretch], calls: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """(attempt, call) pairs.

    Args:
        stretches: in the order of their start.
        calls: (call, time) in the order of time.
    """
    timed = list(calls)
    paired = _Paired([time for _, time in timed])
    paired.first(stretches)  # 1
    for one in paired.without:
        paired.take(one)  # 2
    for (call, _), owner in zip(timed, paired.owners, strict=True):
        if owner is not None:
            yield owner.attempt, call


class _Paired:
    """Whose each call is, by its place in the order of time."""

    def __init__(self, times: list[int]) -> None:
        self._times = times
        self._firm: set[int] = set()
        self.owners: list[Stretch | None] = [None] * len(times)
        self.without: list[Stretch] = []

    def first(self, stretches: Iterable[Stretch]) -> None:
        """1. `without` are those that must have a call and got none."""
        waiting, open_ = iter(stretches), list[tuple[int, int, Stretch]]()
        upcoming = next(waiting, None)
        for place, time in enumerate(self._times):
            while upcoming is not None and upcoming.start <= time:
                heappush(open_, (upcoming.end, upcoming.attempt, upcoming))
                upcoming = next(waiting, None)
            while open_ and open_[0][0] < time:
                self._late(heappop(open_)[2])
            if open_:
                self.owners[place] = heappop(open_)[2]
        for *_, one in open_:
            self._late(one)

    def _late(self, one: Stretch) -> None:
        if one.surely:
            self.without.append(one)

    def take(self, one: Stretch) -> None:
        """2. The shortest way over others to a call whose owner can do without; maybe there is
        none. What was looked at in vain then stays as it is, and is not looked at again."""
        came: dict[int, int] = {}
        queue, from_ = deque([one]), {one.attempt: -1}
        while queue:
            stretch = queue.popleft()
            for place in self._places(stretch):
                owner = self.owners[place]
                if owner is None or place in came or place in self._firm:
                    continue
                came[place] = from_[stretch.attempt]
                if not owner.surely:
                    self._hand_over(place, came, one)
                    return
                from_[owner.attempt] = place
                queue.append(owner)
        self._firm.update(came)

    def _places(self, one: Stretch) -> range:
        times = self._times
        return range(bisect_left(times, one.start), bisect_right(times, one.end))

    def _hand_over(self, place: int, came: dict[int, int], one: Stretch) -> None:
        while (before := came[place]) >= 0:
            self.owners[place] = self.owners[before]
            place = before
        self.owners[place] = one
