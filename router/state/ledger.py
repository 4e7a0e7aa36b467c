"""What limits are kept in: token buckets and leases, reserved all together or not at all.

A bucket holds at most `limit`, refills at `limit / seconds`, and a request takes its amount
before it runs; what it really used is settled afterwards. A request larger than the whole
limit is let through when the bucket is full, so that nothing waits for ever. A lease is one
open request; it ends by itself when its holder dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

ROUNDED: Final = 1e-6
"""So much less than asked for is enough: whoever comes to the second as told finds the sum of
fractions, not what it should come to."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A rate limit: `limit` per `seconds`, under a key. `name` is what the client is told."""

    name: str
    key: str
    limit: int
    seconds: float

    @property
    def rate(self) -> float:
        """Units per second."""
        return self.limit / self.seconds


@dataclass(frozen=True, slots=True)
class Seats:
    """A concurrency limit: at most `limit` open leases under a key."""

    name: str
    key: str
    limit: int


@dataclass(frozen=True, slots=True)
class Take:
    """So many units of a bucket; `alone`: of what this process may use while the shared ledger
    can't be had, to which it is given back, too."""

    bucket: Bucket
    amount: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """What a limit has left after a request took its part, and seconds until it is full; `alone`
    as for `Take`."""

    name: str
    limit: int
    remaining: int
    reset: float
    alone: bool = False


class Full(Exception):
    """A limit is used up: `of` those that are, the last to have room again. Nothing was taken from
    any of the limits asked for.

    `retry_after` is in seconds, computed: when the amount will be there again. `take` is what a
    bucket had no room for, and `level` how that one stands.
    """

    def __init__(
        self,
        of: Bucket | Seats,
        retry_after: float,
        take: Take | None = None,
        level: Level | None = None,
    ) -> None:
        super().__init__(of.key)
        self.of = of
        self.retry_after = retry_after
        self.take = take
        self.level = level


class Ledger(Protocol):
    """Where limits are counted. Amounts taken together are taken at once or not at all."""

    async def take(
        self, takes: Sequence[Take], seats: Sequence[Seats], lease: str
    ) -> tuple[Level, ...]:
        """Take every amount and every seat, or nothing.

        Args:
            lease: names the seats taken, for `leave`.

        Raises:
            Full: one of the limits is used up.
        """
        ...

    def settle(self, takes: Sequence[Take]) -> None:
        """Take more (or, with a negative amount, give back) after the fact. Never raises.

        A limit that was changed since is the one in force: an end is no reason to fill it up.
        """
        ...

    def leave(self, seats: Sequence[Seats], lease: str) -> None:
        """Give seats back. Never raises."""
        ...

    @property
    def degraded(self) -> str:
        """Why limits are not exact right now; empty when they are."""
        ...

    async def close(self) -> None:
        """Let what is on its way end, if that is soon: a seat nobody holds locks others out."""
        ...


def refilled(level: float, since: float, bucket: Bucket) -> float:
    """A bucket's level `since` seconds after it was `level`; no clock that went back adds to it."""
    return min(float(bucket.limit), level + max(0.0, since) * bucket.rate)


def missing(level: float, take: Take) -> float:
    """Seconds until `take` fits; 0 when it does now."""
    needed = min(take.amount, take.bucket.limit)
    return 0.0 if level >= needed - ROUNDED else (needed - level) / take.bucket.rate
