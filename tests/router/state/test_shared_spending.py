"""Budgets in a real Redis: one for all, whole again after a loss, and alone when it is away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import count
from math import inf
from random import Random
from typing import cast

import pytest
from redis.asyncio import Redis

from router.state.shared import TIMEOUT
from router.state.shared_spending import SCRIPT, SharedSpending
from router.state.spending import SLOTS, SOON, Budget, Claim, Spent, Taken

HOUR = Budget("far", "tokens", 100, 3600)
DAY = Budget("far", "dollars", 1000, 86400)
KEY = "domicile:{burst:far}:tokens:3600"
NAMES = count()


def spending(client: object, timeout: float = 5.0, me: str = "") -> SharedSpending:
    name = me or f"router-{next(NAMES)}"
    return SharedSpending(client, time.monotonic, 0.5, name, timeout=timeout)  # type: ignore[arg-type]


class Lossy:
    """A Redis that does what it is asked, and whose answers are lost while it is `deaf`."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.deaf = False

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        """Run a script."""
        found = await self.client.eval(script, numkeys, *rest)
        if self.deaf:
            raise TimeoutError
        return found


async def granted(one: SharedSpending, budget: Budget, amount: float) -> tuple[Taken, ...]:
    try:
        return await one.take([Claim(budget, amount)])
    except Spent:
        return ()


async def taken_in(client: Redis, key: str = KEY) -> int:
    held = await client.hgetall(key)
    return sum(int(amount) for field, amount in held.items() if b":" in field)


async def test_two_routers_spend_one_budget(redis: Redis) -> None:
    routers = [spending(redis) for _ in range(2)]
    found = await asyncio.gather(*(granted(routers[n % 2], HOUR, 10) for n in range(40)))
    assert sum(bool(one) for one in found) == 10
    assert await taken_in(redis) == 100
    for one in routers:
        assert one.spent(HOUR) == 100
        assert 3000 < one.wait([Claim(HOUR, 10)]) <= 3660 or one.wait([Claim(HOUR, 10)]) == 5.0
        await one.close()


async def test_no_stretch_of_its_time_has_more_than_the_budget(redis: Redis) -> None:
    short = Budget("near", "tokens", 100, 1.2)  # slots of 20 ms
    routers, random = [spending(redis) for _ in range(3)], Random(5)
    spent: Counter[int] = Counter()

    async def client(one: SharedSpending) -> None:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            amount = random.randint(1, 30)
            for taken in await granted(one, short, amount):
                used = random.randint(0, amount)
                one.settle([taken], [used])
                spent[taken.slot] += used
            await asyncio.sleep(random.random() * 0.02)

    await asyncio.gather(*(client(one) for one in routers))
    stretches = [sum(spent[at + n] for n in range(SLOTS + 1)) for at in spent]
    assert max(stretches) <= 100
    assert sum(spent.values()) > 150  # which a budget of one stretch would not have
    for one in routers:
        await one.close()


async def test_what_was_not_used_is_the_others(redis: Redis) -> None:
    one, two = spending(redis), spending(redis)
    taken = await one.take([Claim(HOUR, 100)])
    assert not await granted(two, HOUR, 60)
    assert two.wait([Claim(HOUR, 60)]) > 0
    one.settle(taken, [40])
    await one.close()
    assert await granted(two, HOUR, 60)
    await two.close()


async def test_who_believes_that_there_is_no_room_asks_again(redis: Redis) -> None:
    now = 0.0
    one = spending(redis)
    two = SharedSpending(redis, lambda: now, 0.5, "two", timeout=5.0)  # type: ignore[arg-type]
    taken = await one.take([Claim(HOUR, 100)])
    assert not await granted(two, HOUR, 60)
    one.settle(taken, [0])
    await one.close()
    assert two.wait([Claim(HOUR, 60)]) > 0  # as it last heard
    now = 1.1
    two.wait([Claim(HOUR, 60)])
    await two.close()
    assert two.wait([Claim(HOUR, 60)]) == 0


async def test_two_budgets_are_taken_together_or_not_at_all(redis: Redis) -> None:
    one = spending(redis)
    await one.take([Claim(HOUR, 90), Claim(DAY, 10)])
    with pytest.raises(Spent):
        await one.take([Claim(HOUR, 20), Claim(DAY, 10)])
    assert await taken_in(redis) == 90
    assert await taken_in(redis, "domicile:{burst:far}:dollars:86400") == 10
    with pytest.raises(Spent) as caught:
        await one.take([Claim(HOUR, 101)])
    assert caught.value.wait == inf


async def test_a_redis_that_comes_back_empty_hears_from_each_what_it_took(redis: Redis) -> None:
    one, two = spending(redis), spending(redis)
    await one.take([Claim(HOUR, 50)])
    await two.take([Claim(HOUR, 30)])
    await redis.flushall()
    assert await granted(two, HOUR, 10)
    assert await taken_in(redis) == 40
    assert await granted(one, HOUR, 10)
    assert await taken_in(redis) == 100
    assert not await granted(two, HOUR, 1)


async def test_an_answer_that_is_lost_takes_nothing_for_long(redis: Redis) -> None:
    lossy = Lossy(redis)
    one, two = spending(lossy), spending(redis)
    assert await granted(one, HOUR, 10)
    lossy.deaf = True
    assert await granted(one, HOUR, 40)  # alone, of its share
    assert await taken_in(redis) == 50
    assert not await granted(one, HOUR, 1)
    lossy.deaf = False
    one._breaker._until = 0.0
    assert await granted(one, HOUR, 30)
    assert await taken_in(redis) == 80
    assert await granted(two, HOUR, 20)
    assert not await granted(two, HOUR, 1)
    await one.close()


async def test_a_client_that_leaves_meanwhile_takes_nothing(redis: Redis) -> None:
    one = spending(redis)
    await one.take([Claim(HOUR, 10)])
    asked = asyncio.create_task(one.take([Claim(HOUR, 90)]))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await one.close()
    assert await taken_in(redis) == 10


async def test_a_call_that_a_later_one_has_overtaken_changes_nothing(redis: Redis) -> None:
    one = spending(redis, me="one")
    await one.take([Claim(HOUR, 10)])
    await one.take([Claim(HOUR, 10)])
    late = ["one", "1", str(SLOTS), "1", "100", "60.0", "0", "10", "0"]
    assert await redis.eval(SCRIPT, 1, KEY, *late) == [2]
    assert await taken_in(redis) == 20


async def test_what_requests_under_way_hold_at_another_router_is_worth_asking_for_soon(
    redis: Redis,
) -> None:
    """An hour was told, of a budget that another router's requests gave back a moment later."""
    one, two = spending(redis), spending(redis)
    held = await one.take([Claim(HOUR, 95)])
    with pytest.raises(Spent) as caught:
        await two.take([Claim(HOUR, 10)])
    assert caught.value.wait == SOON
    one.settle(held, [92])  # nearly all was used
    await one.close()
    with pytest.raises(Spent) as caught:
        await two.take([Claim(HOUR, 10)])
    assert caught.value.wait > 3000
    small = await two.take([Claim(HOUR, 8)])
    with pytest.raises(Spent) as caught:
        await one.take([Claim(HOUR, 8)])
    assert caught.value.wait == SOON
    two.settle(small, [0])
    await two.close()
    assert await granted(one, HOUR, 8)


async def test_what_a_router_held_that_ended_in_the_middle_is_worth_waiting_for_a_while_only(
    redis: Redis,
) -> None:
    gone, here = spending(redis, me="gone"), spending(redis)
    await gone.take([Claim(HOUR, 95)])
    now, _ = await redis.time()
    told = cast("bytes", await redis.hget(KEY, "gone#open"))
    assert told in (b"95@%d" % now, b"95@%d" % (now - 1))
    await redis.hset(KEY, "gone#open", f"95@{now - 301}")
    with pytest.raises(Spent) as caught:
        await here.take([Claim(HOUR, 10)])
    assert caught.value.wait > 3000
    assert await redis.hget(KEY, "gone#open") is None


async def test_processes_that_are_gone_leave_what_they_spent_and_no_more(redis: Redis) -> None:
    for _ in range(3):
        await spending(redis).take([Claim(HOUR, 10)])
    idle = spending(redis)
    idle.settle((), ())
    last = spending(redis, me="last")
    assert await granted(last, HOUR, 70)
    old = int(time.time() // 60) - SLOTS - 1
    await redis.hset(KEY, mapping={f"gone:{old}": "50", "gone": "7"})
    assert not await granted(last, HOUR, 1)
    assert b"gone" not in await redis.hgetall(KEY)
    assert f"gone:{old}".encode() not in await redis.hgetall(KEY)
    assert 3600 < await redis.ttl(KEY) <= 3721


async def test_a_frozen_redis_costs_little_and_leaves_a_share() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    client: Redis = Redis(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    one = spending(client, TIMEOUT)
    one._tell([HOUR])  # what nobody waits for, before what somebody does
    await asyncio.sleep(0)
    began = time.monotonic()
    found = await asyncio.gather(*(granted(one, HOUR, 10) for _ in range(20)))
    assert time.monotonic() - began < 0.2
    assert sum(bool(taken) for taken in found) == 5
    assert "redis" in one.degraded
    # More than the share of a process is not refused for ever: Redis may come back.
    assert 0 < one.wait([Claim(HOUR, 60)]) <= 10
    assert one.wait([Claim(HOUR, 101)]) == inf
    one._telling.cancel()  # type: ignore[union-attr]
    await client.aclose()
    await asyncio.sleep(0.05)
    server.close()
    await server.wait_closed()


async def test_alone_it_spends_no_more_than_the_others_left(redis: Redis) -> None:
    lossy = Lossy(redis)
    one, two = spending(lossy), spending(redis)
    await two.take([Claim(HOUR, 80)])
    assert await granted(one, HOUR, 10)
    lossy.deaf = True
    assert await granted(one, HOUR, 10)  # and the others' 80 are remembered
    assert one.degraded
    assert not await granted(one, HOUR, 1)
    one._telling.cancel()  # type: ignore[union-attr]


async def test_its_clock_may_be_wrong_before_it_hears_redis(redis: Redis) -> None:
    lossy = Lossy(redis)
    lossy.deaf = True
    one = spending(lossy)  # with a clock that began when the machine did
    assert await granted(one, HOUR, 40)
    lossy.deaf, one._breaker._until = False, 0.0
    assert await granted(one, HOUR, 50)
    assert await taken_in(redis) == 90
    assert one.spent(HOUR) == 90
    await one.close()


async def test_what_it_spent_alone_is_told_when_redis_is_back(redis: Redis) -> None:
    lossy = Lossy(redis)
    lossy.deaf = True
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        lossy.deaf = False

    one = SharedSpending(lossy, lambda: now, 0.5, "one", timeout=5.0, sleep=sleep)  # type: ignore[arg-type]
    assert await granted(one, HOUR, 40)
    await one.close()
    assert (await taken_in(redis), one.degraded) == (40, "")
    assert not await granted(spending(redis), HOUR, 61)
