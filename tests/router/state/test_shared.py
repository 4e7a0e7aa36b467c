"""Limits in a real Redis: exact across processes, and out of the way when Redis is sick."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest
from redis.asyncio import Redis

from router.state.ledger import Bucket, Full, Seats, Take
from router.state.opening import to_redis
from router.state.shared import TIMEOUT, SharedLedger

TOKENS = Bucket("tokens", "t/tokens", 100, 60)
OPEN = Seats("concurrency", "t/open", 2)


def ledger(client: object, timeout: float = 5.0) -> SharedLedger:
    return SharedLedger(client, time.monotonic, 0.5, timeout=timeout)  # type: ignore[arg-type]


async def test_two_processes_share_one_bucket(redis: Redis) -> None:
    one, two = ledger(redis), ledger(redis)
    passed = 0
    waits: list[float] = []
    for turn in range(20):
        try:
            await (one if turn % 2 else two).take([Take(TOKENS, 10)], [], str(turn))
        except Full as full:
            waits.append(full.retry_after)
        else:
            passed += 1
    assert passed in (10, 11)
    assert all(0 < wait <= 6.1 for wait in waits)
    assert one.degraded == ""


async def test_parallel_estimates_overshoot_by_one_at_most(redis: Redis) -> None:
    ledgers = [ledger(redis), ledger(redis)]

    async def one(n: int) -> bool:
        try:
            await ledgers[n % 2].take([Take(TOKENS, 175)], [], str(n))
        except Full:
            return False
        return True

    assert sum(await asyncio.gather(*(one(n) for n in range(5)))) == 1


async def test_seats_are_left_and_end_by_themselves(redis: Redis) -> None:
    one = ledger(redis)
    await one.take([], [OPEN], "a")
    await one.take([], [OPEN], "b")
    with pytest.raises(Full):
        await one.take([], [OPEN], "c")
    one.leave([OPEN], "a")
    await one.close()
    await one.take([], [OPEN], "c")
    # A holder that died: its seat's time is over.
    await redis.zadd("domicile:{t}:open", {"b": 1.0})
    await one.take([], [OPEN], "d")


async def test_settling(redis: Redis) -> None:
    one = ledger(redis)
    await one.take([Take(TOKENS, 90)], [], "a")
    one.settle([Take(TOKENS, -80)])
    await one.close()
    await one.take([Take(TOKENS, 85)], [], "b")
    with pytest.raises(Full):
        await one.take([Take(TOKENS, 85)], [], "c")


async def test_a_frozen_redis_costs_little_and_limits_go_on() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client: Redis = Redis(host="127.0.0.1", port=port)
    one = ledger(client, TIMEOUT)
    began = time.monotonic()
    await one.take([Take(TOKENS, 1)], [], "a")
    assert time.monotonic() - began < 0.2
    assert "redis" in one.degraded
    # While the breaker is open nothing waits at all.
    began = time.monotonic()
    for n in range(49):
        await one.take([Take(TOKENS, 1)], [], str(n))
    assert time.monotonic() - began < 0.05
    with pytest.raises(Full):
        await one.take([Take(TOKENS, 1)], [], "x")
    await one.close()
    await client.aclose()
    await asyncio.sleep(0.05)
    server.close()
    await server.wait_closed()


async def test_a_dead_redis_and_its_return(redis: Redis) -> None:
    dead: Redis = Redis(host="127.0.0.1", port=1)
    now = 0.0
    one = SharedLedger(dead, lambda: now, 0.5, timeout=5.0)  # type: ignore[arg-type]
    await one.take([Take(TOKENS, 1)], [OPEN], "a")
    assert one.degraded
    one._redis = redis  # type: ignore[assignment]  # it came back
    now = 20.0
    await one.take([Take(TOKENS, 1)], [], "b")
    assert one.degraded == ""
    # The seat taken alone is given back alone.
    one.leave([OPEN], "a")
    await one.close()
    await dead.aclose()


class Late:
    """A Redis that does what it is told, and says so too late, or not at all."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.late = True
        self.gone = False

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        done = await self.redis.eval(script, numkeys, *rest)
        await asyncio.sleep(9 if self.late else 0)
        return done

    async def zrem(self, name: str, *values: str) -> object:
        if self.gone:
            raise ConnectionError
        return await self.redis.zrem(name, *values)


async def test_a_seat_taken_by_a_call_that_was_given_up_is_no_loss(redis: Redis) -> None:
    """A slow moment of Redis would else lock a tenant out for as long as a lease."""
    late, now = Late(redis), 0.0
    one = SharedLedger(late, lambda: now, 0.5, timeout=0.3)
    await one.take([], [OPEN], "a")
    assert await redis.zcard("domicile:{t}:open") == 1  # which nobody here knows of
    late.late, now = False, 20.0
    await one.take([], [OPEN], "b")
    await one.close()
    assert await redis.zrange("domicile:{t}:open", 0, -1) == [b"b"]
    one.leave([OPEN], "a")
    await one.take([], [OPEN], "c")
    await one.close()
    assert await redis.zcard("domicile:{t}:open") == 2


async def test_a_call_that_comes_after_the_one_that_undoes_it_holds_no_seat(redis: Redis) -> None:
    """Nor one that a proxy, or a lost packet, put behind it: for ten minutes it was nobody's."""
    late, now = Late(redis), 0.0
    late.late = False
    one = SharedLedger(late, lambda: now, 0.5, timeout=5.0, again=0.2)
    one._owe(["domicile:{t}:open"], "a")
    await one.take([Take(TOKENS, 1)], [], "b")
    await redis.zadd("domicile:{t}:open", {"a": 1e12})  # as the call of `a` would
    await asyncio.sleep(0.5)
    await one.close()
    assert await redis.zcard("domicile:{t}:open") == 0


@pytest.mark.parametrize("turns", range(1, 7))
async def test_a_request_cancelled_while_it_takes_takes_nothing(
    redis: Redis, requires_redis: str, turns: int
) -> None:
    """At no turn of the loop is the cancellation lost, nor a seat held for who has gone."""
    client = cast("Redis", to_redis(requires_redis))
    one = ledger(client)
    await one.take([Take(TOKENS, 10)], [OPEN], "before")
    asked = asyncio.create_task(one.take([Take(TOKENS, 50)], [OPEN], "gone"))
    for _ in range(turns):
        await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await one.close()
    assert await redis.zrange("domicile:{t}:open", 0, -1) == [b"before"]
    [level] = await one.take([Take(TOKENS, 80)], [OPEN], "after")
    assert level.remaining >= 10
    await client.aclose()


@pytest.mark.parametrize("known", [False, True])
async def test_a_seat_left_while_redis_is_away_is_given_back_later(
    redis: Redis, known: bool
) -> None:
    late, now = Late(redis), 0.0
    late.late = False
    one = SharedLedger(late, lambda: now, 0.5, timeout=5.0)
    for lease in ("a", "b"):
        await one.take([], [OPEN], lease)
    late.gone = True
    if known:
        one._breaker.trip(TimeoutError())
    for lease in ("a", "b"):
        one.leave([OPEN], lease)
    await one.close()
    assert await redis.zcard("domicile:{t}:open") == 2
    late.gone, now = False, 20.0
    await one.take([Take(TOKENS, 1)], [], "c")
    await one.close()
    assert await redis.zcard("domicile:{t}:open") == 0
    assert one._owed == {}


async def test_what_is_owed_is_given_back_though_nobody_asks_here_any_more(redis: Redis) -> None:
    """Other routers count those seats: for ten minutes they would be taken by nobody."""
    late = Late(redis)
    late.late = False
    one, other = SharedLedger(late, time.monotonic, 0.5, timeout=5.0, again=0.05), ledger(redis)
    await one.take([], [OPEN], "a")
    late.gone = True
    one.leave([OPEN], "a")
    await asyncio.sleep(0.1)
    assert one.degraded
    assert await redis.zcard("domicile:{t}:open") == 1
    late.gone = False
    assert one._paying is not None
    await asyncio.wait_for(one._paying, 10)
    await one.close()
    assert (one.degraded, one._owed) == ("", {})
    await other.take([], [OPEN], "b")
    assert await redis.zrange("domicile:{t}:open", 0, -1) == [b"b"]


async def test_what_is_owed_to_redis_is_bounded_by_the_lease(redis: Redis) -> None:
    now = 0.0
    one = SharedLedger(Late(redis), lambda: now, 0.5, lease=100)
    for number in range(1000):
        now = float(number)
        one._owe(["k"], str(number))
    assert len(one._owed) <= 102


async def test_a_debt_is_owed_until_it_is_paid(redis: Redis) -> None:
    """Not for two windows: one request of ten times the limit takes ten of them."""
    quick, one = Bucket("tokens", "t/tokens", 100, 1.0), ledger(redis)
    await one.take([Take(quick, 1000)], [], "a")
    assert 9_000 < await redis.pttl("domicile:{t}:tokens") <= 11_000
    await redis.flushall()
    one.settle([Take(quick, 1000)])  # more than it was thought to be, of a bucket that was full
    await one.close()
    with pytest.raises(Full) as full:
        await one.take([Take(quick, 1)], [], "b")
    assert 8 < full.value.retry_after < 10
    one.settle([Take(quick, -5000)])
    await one.close()
    [level] = await one.take([Take(quick, 1)], [], "c")
    assert level.remaining == 99
    await redis.flushall()
    huge = Take(quick, 1 << 60)
    await one.take([huge], [], "d")  # the bucket was full
    one.settle([Take(quick, -huge.amount)])
    await one.close()
    [level] = await one.take([Take(quick, 1)], [], "e")
    assert level.remaining > 90


async def test_a_seat_lasts_as_long_as_its_request_may(redis: Redis) -> None:
    one = SharedLedger(redis, time.monotonic, 0.5, timeout=5.0, lease=7260)  # type: ignore[arg-type]
    await one.take([], [OPEN], "a")
    assert await redis.ttl("domicile:{t}:open") > 7000
    until = await redis.zscore("domicile:{t}:open", "a")
    assert until is not None
    assert float(until) > time.time() + 7000


async def test_what_began_by_another_limit_does_not_fill_the_new_one(redis: Redis) -> None:
    one = ledger(redis)
    old, new = Take(Bucket("tokens", "t/tokens", 1_000_000, 1), 2), Take(TOKENS, 50)
    await one.take([old] * 20, [], "a")
    taken = 0
    for _ in range(20):
        try:
            await one.take([new], [], "b")
            taken += 1
        except Full:
            pass
        one.settle([Take(old.bucket, -1)])
        await one.close()
    assert taken == 2


async def test_a_node_whose_clock_was_ahead_locks_nobody_out(redis: Redis) -> None:
    """A replica that takes over may be minutes behind: what is told then must be true."""
    one, quick = ledger(redis), Take(Bucket("tokens", "t/tokens", 100, 1.0), 100)
    await one.take([quick], [], "a")
    await redis.hset("domicile:{t}:tokens", "t", str(time.time() + 300))
    with pytest.raises(Full) as full:
        await one.take([quick], [], "b")
    assert full.value.retry_after <= 1
    await asyncio.sleep(full.value.retry_after + 0.05)
    await one.take([quick], [], "c")


async def test_a_refusal_tells_what_is_left(redis: Redis) -> None:
    one = ledger(redis)
    await one.take([Take(TOKENS, 40)], [], "a")
    with pytest.raises(Full) as full:
        await one.take([Take(TOKENS, 80)], [], "b")
    assert full.value.level is not None
    assert 59 <= full.value.level.remaining <= 61


async def test_each_gets_back_what_it_gave(redis: Redis) -> None:
    """What was taken alone is no gift to Redis, nor what Redis gave one to this process."""
    dead: Redis = Redis(host="127.0.0.1", port=1)
    now, large = 0.0, Bucket("tokens", "t/tokens", 100, 3600)
    one = SharedLedger(redis, lambda: now, 0.5, timeout=5.0)  # type: ignore[arg-type]
    await one.take([Take(large, 90)], [], "a")
    one._redis = dead  # type: ignore[assignment]
    [alone] = await one.take([Take(large, 45)], [], "b")
    assert (alone.limit, alone.remaining, alone.alone) == (50, 5, True)
    one.settle([Take(large, -80)])  # the first ends: 10 of 100 used
    with pytest.raises(Full):
        await one.take([Take(large, 10)], [], "c")
    one._redis, now = redis, 20.0  # type: ignore[assignment]
    with pytest.raises(Full):  # Redis doesn't know yet that there is room
        await one.take([Take(large, 20)], [], "d")
    await one.close()
    one.settle([Take(large, -45, alone=True)])  # the second ends: it had nothing of Redis
    await one.close()
    [level] = await one.take([Take(large, 1)], [], "e")
    assert level.remaining in (89, 90)
    await one.close()
    await dead.aclose()
