"""Limits in a real Redis: exact across processes, and out of the way when Redis is sick."""

from __future__ import annotations

import asyncio
import time

import pytest
from redis.asyncio import Redis

from router.state.ledger import Bucket, Full, Seats, Take
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
