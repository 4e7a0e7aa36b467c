"""Values that time may only narrow: law 13, once, for every kind of value.

`until` stands on members of a boundary and on a grant's axes. A value that depends on it
is a sequence of pieces: what holds before the first end, between the first and the second,
and so on. Pieces never widen, and the last one holds for ever, so an unknown time (which
reads as lapsed) is simply the last piece.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeVar


class Algebra(Protocol):
    """What boundaries and countries have in common."""

    def __or__(self, other: Self, /) -> Self:
        """Either."""
        ...

    def __and__(self, other: Self, /) -> Self:
        """Both."""
        ...

    def __sub__(self, other: Self, /) -> Self:
        """The first without the second."""
        ...


T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A", bound=Algebra)

UNKNOWN_TIME: Final = math.inf
CLOCK_TOLERANCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """`values[n]` holds from `ends[n-1]` (inclusive) to `ends[n]` (exclusive).

    `ends` are seconds since the epoch, strictly ascending; `values` has one more member.
    """

    values: tuple[T, ...]
    ends: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != len(self.ends) + 1 or list(self.ends) != sorted(set(self.ends)):
            raise ValueError("a timed value needs ascending ends and one value more than ends")

    def at(self, now: float) -> T:
        """What holds at `now`; at `UNKNOWN_TIME` what holds when everything has lapsed."""
        for end, value in zip(self.ends, self.values, strict=False):
            if now < end:
                return value
        return self.values[-1]

    def good_until(self, now: float) -> float | None:
        """When the value at `now` ends; `None` when it holds for ever."""
        return next((end for end in self.ends if now < end), None)

    def __or__(self: Timed[A], other: Timed[A]) -> Timed[A]:
        return combined(self, other, operator.or_)

    def __and__(self: Timed[A], other: Timed[A]) -> Timed[A]:
        return combined(self, other, operator.and_)

    def __sub__(self: Timed[A], other: Timed[A]) -> Timed[A]:
        return combined(self, other, operator.sub)

    def map(self, change: Callable[[T], U]) -> Timed[U]:
        """The same pieces with every value changed."""
        return Timed(tuple(change(v) for v in self.values), self.ends)


def always(value: T) -> Timed[T]:
    """A value without an end."""
    return Timed((value,))


def ending(value: T, until: float, then: T) -> Timed[T]:
    """A value that ends at `until` and is `then` (narrower) afterwards."""
    return Timed((value, then), (until,))


def combined(one: Timed[T], other: Timed[U], how: Callable[[T, U], T]) -> Timed[T]:
    """Both at every moment, put together by `how`."""
    ends = tuple(sorted({*one.ends, *other.ends}))
    moments = (*(_just_before(end) for end in ends), UNKNOWN_TIME)
    return Timed(tuple(how(one.at(m), other.at(m)) for m in moments), ends)


def earliest(untils: Iterable[float | None]) -> float | None:
    """The first end of all, `None` being never."""
    return min((u for u in untils if u is not None), default=None)


def sooner(one: float | None, other: float | None) -> float | None:
    """`earliest` of two, for where microseconds count."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


@dataclass(frozen=True, slots=True)
class Now:
    """The time a decision is made at. `time` is `UNKNOWN_TIME` when it can't be trusted."""

    time: float
    clock_behind: bool = False


def effective_now(
    clock: float | None, newest_in_log: float | None, tolerance: float = CLOCK_TOLERANCE
) -> Now:
    """The greater of the clock and the newest time in this log, in seconds since the epoch.

    A clock behind the log by more than `tolerance` seconds is known to be wrong, and how
    far the true time is ahead is not known: everything with an end reads as lapsed. So it
    does without a clock.
    """
    if clock is None or math.isnan(clock):
        return Now(UNKNOWN_TIME)
    newest = clock if newest_in_log is None else newest_in_log
    if clock < newest - tolerance:
        return Now(UNKNOWN_TIME, clock_behind=True)
    return Now(max(clock, newest))


def _just_before(end: float) -> float:
    return math.nextafter(end, -math.inf)
