"""Limits of one process: exact, and gone with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from router.state.ledger import Bucket, Full, Level, Seats, Take, missing, refilled

SWEEP = 4096
"""Buckets kept before those that are full again are dropped."""
SEAT = 1.0
"""Seconds to wait for a seat: nobody knows when one is left."""


class MemoryLedger:
    """See `Ledger`. `clock` gives monotonic seconds; `share` scales every limit.

    A share below 1 is for a process that stands in for a shared ledger that can't be had.
    """

    def __init__(self, clock: Callable[[], float], share: float = 1.0) -> None:
        self._clock = clock
        self._share = share
        self._levels: dict[str, tuple[float, float, Bucket]] = {}
        self._most = SWEEP
        self._open: dict[str, int] = {}

    async def take(
        self, takes: Sequence[Take], seats: Sequence[Seats], lease: str
    ) -> tuple[Level, ...]:
        """See `Ledger`."""
        return self.take_now(takes, seats)

    def take_now(self, takes: Sequence[Take], seats: Sequence[Seats]) -> tuple[Level, ...]:
        """`take`, without awaiting. Raises Full."""
        if not takes:  # as of most keys: only who is open is counted
            if (seat := self._taken(seats)) is not None:
                raise seat
            self._sit(seats)
            return ()
        now = self._clock()
        scaled = [Take(self._scaled(take.bucket), take.amount) for take in takes]
        levels = [self._level(take.bucket, now) for take in scaled]
        full = [
            Full(take.bucket, wait, take, told(take.bucket, level))
            for take, level in zip(scaled, levels, strict=True)
            if (wait := missing(level, take)) > 0
        ]
        if (seat := self._taken(seats)) is not None:
            full.append(seat)
        if full:
            raise max(full, key=lambda one: one.retry_after)
        for take, level in zip(scaled, levels, strict=True):
            self._levels[take.bucket.key] = (level - take.amount, now, take.bucket)
        self._sit(seats)
        self._sweep(now)
        return tuple(
            told(take.bucket, level - take.amount)
            for take, level in zip(scaled, levels, strict=True)
        )

    def _taken(self, seats: Sequence[Seats]) -> Full | None:
        """The first of which none is free: whoever waits for one waits as long for all."""
        for seat in seats:
            if self._open.get(seat.key, 0) >= max(1, int(seat.limit * self._share)):
                return Full(seat, SEAT)
        return None

    def _sit(self, seats: Sequence[Seats]) -> None:
        for seat in seats:
            self._open[seat.key] = self._open.get(seat.key, 0) + 1

    def settle(self, takes: Sequence[Take]) -> None:
        """See `Ledger`."""
        now = self._clock()
        for take in takes:
            known = self._levels.get(take.bucket.key)
            bucket = self._scaled(take.bucket) if known is None else known[2]
            level = self._level(bucket, now) - take.amount
            self._levels[bucket.key] = (min(level, float(bucket.limit)), now, bucket)

    def leave(self, seats: Sequence[Seats], lease: str) -> None:
        """See `Ledger`."""
        for seat in seats:
            left = self._open.get(seat.key, 0) - 1
            if left > 0:
                self._open[seat.key] = left
            else:
                self._open.pop(seat.key, None)

    @property
    def degraded(self) -> str:
        """See `Ledger`."""
        return ""

    async def close(self) -> None:
        """See `Ledger`."""

    def _scaled(self, bucket: Bucket) -> Bucket:
        if self._share >= 1:
            return bucket
        limit = max(1, int(bucket.limit * self._share))
        return Bucket(bucket.name, bucket.key, limit, bucket.seconds)

    def _level(self, bucket: Bucket, now: float) -> float:
        known = self._levels.get(bucket.key)
        if known is None:
            return float(bucket.limit)
        return refilled(known[0], now - known[1], bucket)

    def _sweep(self, now: float) -> None:
        """Those that are full again say nothing; what was used beyond a limit is owed until then.
        As many as are left are looked at again once there are twice as many."""
        if len(self._levels) > self._most:
            owing = ((k, v) for k, v in self._levels.items() if self._level(v[2], now) < v[2].limit)
            self._levels = dict(owing)
            self._most = max(SWEEP, 2 * len(self._levels))


def told(bucket: Bucket, level: float) -> Level:
    """A bucket as the client may see it."""
    reset = (bucket.limit - level) / bucket.rate
    return Level(bucket.name, bucket.limit, max(0, int(level)), max(0.0, reset))
