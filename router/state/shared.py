"""Limits across processes, in Redis: one script, one round trip, one hash slot.

Keys of one decision share a hash tag (the tenant), so a cluster keeps them on one node. When
Redis is slow, gone or refuses, the ledger falls back to this process's own counters at a
stated share of every limit, at once and without waiting: a breaker keeps the path clear and
tries again later. A Redis that comes back empty starts with full buckets, so at most one
more window passes than the limit says. What it did of a call whose answer did not come is not
known: seats that it may hold for nobody are given back when it answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from router.state.breaker import Breaker
from router.state.granted import Granting
from router.state.ledger import ROUNDED, Full, Level, Seats, Take
from router.state.memory import SEAT, MemoryLedger, told

TIMEOUT: Final = 0.025
"""Seconds a reply may take: with the breaker, no request waits longer for a sick Redis."""
LEASE: Final = 600
"""Seconds, at least, after which a seat whose holder died is free again."""
AGAIN: Final = 2.0
"""Seconds until a seat is given back once more that a call without an answer may hold: on another
connection it may have come after the one that gave it back."""

# KEYS: buckets, then seats. ARGV: number of buckets, lease, lease seconds, then for each bucket
# limit, seconds, amount; for each seat its limit. The time is Redis's own, so that processes
# with different clocks agree; where another node's was ahead, a bucket refills from now on. Gives
# {1, levels…} or, of what has no room, the last to have some: {0, index, wait in ms}.
SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local buckets = tonumber(ARGV[1])
local levels, worst, wait = {}, 0, 0
for i = 1, buckets do
  local limit, seconds, amount = tonumber(ARGV[1+i*3]), tonumber(ARGV[2+i*3]), tonumber(ARGV[3+i*3])
  local held = redis.call('HMGET', KEYS[i], 'l', 't')
  local level = limit
  if held[1] then
    local since = math.max(0, now - tonumber(held[2]))
    level = math.min(limit, tonumber(held[1]) + since * limit / seconds)
  end
  local needed = math.min(amount, limit)
  if level < needed - $rounded then
    if tonumber(held[2]) > now then redis.call('HSET', KEYS[i], 't', now) end
    local after = math.ceil((needed - level) * seconds / limit * 1000)
    if after > wait then worst, wait = i, after end
  end
  levels[i] = level - amount
end
for i = buckets + 1, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  local full = redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[3 + buckets * 3 + i - buckets])
  if full and $seat > wait then worst, wait = i, $seat end
end
if worst > 0 then return {0, worst, wait} end
local answer = {1}
for i = 1, buckets do
  local limit, seconds = tonumber(ARGV[1+i*3]), tonumber(ARGV[2+i*3])
  redis.call('HSET', KEYS[i], 'l', levels[i], 't', now, 'm', limit, 's', seconds)
  local full = math.ceil((limit - levels[i]) * seconds / limit) + 1
  redis.call('EXPIRE', KEYS[i], string.format('%d', math.min(full, 2592000)))
  answer[i+1] = math.floor(levels[i])
end
for i = buckets + 1, #KEYS do
  redis.call('ZADD', KEYS[i], now + tonumber(ARGV[3]), ARGV[2])
  redis.call('EXPIRE', KEYS[i], tonumber(ARGV[3]))
end
return answer
""".replace("$rounded", f"{ROUNDED:f}").replace("$seat", f"{SEAT * 1000:.0f}")
# KEYS: buckets. ARGV: for each limit, seconds, amount (negative gives back). The limit counts that
# the last request was taken by: the one that ends may be of an older policy. Each is forgotten when
# it would be full again, and not before: what was used beyond a limit is owed that long.
SETTLE: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
for i = 1, #KEYS do
  local limit, seconds, amount = tonumber(ARGV[i*3-2]), tonumber(ARGV[i*3-1]), tonumber(ARGV[i*3])
  local held = redis.call('HMGET', KEYS[i], 'l', 't', 'm', 's')
  if held[3] and held[4] then limit, seconds = tonumber(held[3]), tonumber(held[4]) end
  local level = limit
  if held[1] then
    local since = math.max(0, now - tonumber(held[2]))
    level = math.min(limit, tonumber(held[1]) + since * limit / seconds)
  end
  level = math.min(limit, level - amount)
  redis.call('HSET', KEYS[i], 'l', level, 't', now)
  local full = math.ceil((limit - level) * seconds / limit) + 1
  redis.call('EXPIRE', KEYS[i], string.format('%d', math.min(full, 2592000)))
end
return 1
"""


class Scripts(Protocol):
    """The two calls of a Redis client that are used, single node or cluster."""

    async def eval(self, script: str, numkeys: int, *keys_and_args: str) -> object:
        """Run a script."""
        ...

    async def zrem(self, name: str, *values: str) -> object:
        """Remove members of a sorted set."""
        ...


class SharedLedger:
    """See `Ledger`.

    Args:
        redis: a client whose calls end when they are cancelled.
        clock: monotonic seconds, for the breaker and the local counters.
        share: the part of every limit that this process may use alone when Redis can't be had.
        prefix: before every key.
        timeout: seconds a reply may take.
        lease: seconds after which a seat is free again by itself; longer than any request.
        again: seconds between the two times that a doubtful seat is given back.
    """

    def __init__(
        self,
        redis: Scripts,
        clock: Callable[[], float],
        share: float,
        prefix: str = "domicile",
        timeout: float = TIMEOUT,
        lease: int = LEASE,
        again: float = AGAIN,
    ) -> None:
        self._redis = redis
        self._clock = clock
        self._prefix = prefix
        self._timeout = timeout
        self._lease = lease
        self._again = again
        self._local = MemoryLedger(clock, share)
        self._local_leases: set[str] = set()
        self._owed: dict[str, tuple[Sequence[str], float]] = {}
        self._unsettled: dict[str, Take] = {}
        self._breaker = Breaker(clock, "limits are local for now")
        self._tasks: set[asyncio.Task[None]] = set()
        self._paying: asyncio.Task[None] | None = None
        self._granting = Granting[tuple[Level, ...]]()

    async def take(
        self, takes: Sequence[Take], seats: Sequence[Seats], lease: str
    ) -> tuple[Level, ...]:
        """See `Ledger`."""
        if self._breaker.is_open:
            return self._alone(takes, seats, lease)

        def give_back(levels: tuple[Level, ...]) -> None:
            pairs = zip(takes, levels, strict=True)
            self.settle([Take(one.bucket, -one.amount, level.alone) for one, level in pairs])
            if seats:
                self.leave(seats, lease)

        return await self._granting.ask(self._together(takes, seats, lease), give_back)

    async def _together(
        self, takes: Sequence[Take], seats: Sequence[Seats], lease: str
    ) -> tuple[Level, ...]:
        keys = [self._key(t.bucket.key) for t in takes] + [self._key(s.key) for s in seats]
        arguments = [str(len(takes)), lease, str(self._lease), *_buckets(takes)]
        arguments += [str(seat.limit) for seat in seats]
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._redis.eval(SCRIPT, len(keys), *keys, *arguments)
            answer = _numbers(found)
        except Exception as error:  # noqa: BLE001 - whatever fails there, limits go on here
            self._breaker.trip(error)
            self._owe(keys[len(takes) :], lease)
            return self._alone(takes, seats, lease)
        self._mend()
        if answer[0] == 0:
            raise self._full(takes, seats, answer)
        return tuple(
            told(take.bucket, level) for take, level in zip(takes, answer[1:], strict=True)
        )

    def settle(self, takes: Sequence[Take]) -> None:
        """See `Ledger`."""
        self._local.settle([take for take in takes if take.alone])
        shared = [take for take in takes if not take.alone]
        if not shared:
            return
        if self._breaker.is_open:
            for take in shared:
                before = self._unsettled.get(take.bucket.key)
                more = take.amount + (0 if before is None else before.amount)
                self._unsettled[take.bucket.key] = Take(take.bucket, more)
            return
        keys = [self._key(take.bucket.key) for take in shared]
        self._later(self._redis.eval(SETTLE, len(keys), *keys, *_buckets(shared)))

    def leave(self, seats: Sequence[Seats], lease: str) -> None:
        """See `Ledger`."""
        if lease in self._local_leases:
            self._local_leases.discard(lease)
            self._local.leave(seats, lease)
            return
        keys = [self._key(seat.key) for seat in seats]
        if self._breaker.is_open:
            self._owe(keys, lease)
        else:
            self._later(self._left(keys, lease))

    @property
    def degraded(self) -> str:
        """See `Ledger`."""
        return self._breaker.reason

    async def close(self) -> None:
        """See `Ledger`."""
        await self._granting.close(1.0)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        if self._paying is not None:
            self._paying.cancel()

    def _key(self, key: str) -> str:
        tenant, _, rest = key.partition("/")
        return f"{self._prefix}:{{{tenant}}}:{rest}"

    def _alone(
        self, takes: Sequence[Take], seats: Sequence[Seats], lease: str
    ) -> tuple[Level, ...]:
        levels = self._local.take_now(takes, seats)
        if seats:
            self._local_leases.add(lease)
        return tuple([replace(level, alone=True) for level in levels])

    @staticmethod
    def _full(takes: Sequence[Take], seats: Sequence[Seats], answer: list[int]) -> Full:
        index = answer[1] - 1
        wait = answer[2] / 1000
        if index < len(takes):
            take, bucket = takes[index], takes[index].bucket
            level = min(take.amount, bucket.limit) - wait * bucket.rate
            return Full(bucket, wait, take, told(bucket, level))
        return Full(seats[index - len(takes)], wait)

    def _mend(self) -> None:
        self._breaker.mend()
        if self._unsettled:
            unsettled, self._unsettled = self._unsettled, {}
            for take in unsettled.values():
                self.settle([take])
        if self._owed:
            owed, self._owed = self._owed, {}
            loop = asyncio.get_running_loop()
            for lease, (keys, _) in owed.items():
                self._later(self._left(keys, lease))
                loop.call_later(self._again, self._left_again, keys, lease)

    def _owe(self, keys: Sequence[str], lease: str) -> None:
        """Seats to give back when Redis answers again; it drops them by itself in time."""
        now = self._clock()
        while self._owed and next(iter(self._owed.values()))[1] + self._lease < now:
            del self._owed[next(iter(self._owed))]
        if not keys:
            return
        self._owed[lease] = keys, now
        if self._paying is None or self._paying.done():
            self._paying = asyncio.get_running_loop().create_task(self._pays())

    async def _pays(self) -> None:
        """Give back what is owed once Redis answers, though nobody should ask for anything more
        here: the other routers count it."""
        while self._owed:
            await asyncio.sleep(max(self._again, self._breaker.pause))
            if self._owed and not self._breaker.is_open:
                lease, (keys, _) = next(iter(self._owed.items()))
                try:
                    async with asyncio.timeout(1.0):
                        await self._redis.zrem(keys[0], lease)
                except Exception as error:  # noqa: BLE001 - it is tried again after a pause
                    self._breaker.trip(error)
                else:
                    self._mend()

    def _left_again(self, keys: Sequence[str], lease: str) -> None:
        self._later(self._left(keys, lease))

    async def _left(self, keys: Sequence[str], lease: str) -> None:
        try:
            for key in keys:
                await self._redis.zrem(key, lease)
        except BaseException:
            self._owe(keys, lease)
            raise

    def _later(self, call: object) -> None:
        """A call nobody waits for; its failure opens the breaker."""
        task = asyncio.get_running_loop().create_task(self._quietly(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _quietly(self, call: object) -> None:
        try:
            async with asyncio.timeout(1.0):
                await call  # type: ignore[misc]  # a coroutine, of whatever result
        except Exception as error:  # noqa: BLE001 - settled by the lease's end or the refill
            self._breaker.trip(error)


def _buckets(takes: Sequence[Take]) -> list[str]:
    return [
        text
        for take in takes
        for text in (str(take.bucket.limit), str(take.bucket.seconds), str(take.amount))
    ]


def _numbers(found: object) -> list[int]:
    if not isinstance(found, list) or not found:
        raise TypeError("the script gave no list")
    return [int(one) for one in found]
