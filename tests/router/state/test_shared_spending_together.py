"""Requests that ask a budget in Redis at the same time: one call, and what each gets of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from router.state.opening import to_redis
from router.state.shared_spending import SharedSpending
from router.state.spending import Budget, Claim, Spent
from tests.router.state.test_shared_spending import (
    DAY,
    HOUR,
    NAMES,
    granted,
    spending,
    taken_in,
)

LATE = 0.005


class Counted:
    """A Redis, and how often it was asked."""

    def __init__(self, client: object) -> None:
        self.client: Redis = client  # type: ignore[assignment]
        self.calls = 0

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        """Run a script."""
        self.calls += 1
        return await self.client.eval(script, numkeys, *rest)


class Line:
    """A line to Redis on which every answer takes `LATE` seconds more; or none comes, `cut`."""

    def __init__(self, url: str) -> None:
        self.host, self.port = str(urlsplit(url).hostname), urlsplit(url).port
        self.cut = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        back, forth = await asyncio.open_connection(self.host, self.port)
        await asyncio.gather(self._pass(reader, forth, 0.0), self._pass(back, writer, LATE))

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late: float
    ) -> None:
        while data := await reader.read(1 << 16):
            await asyncio.sleep(late)
            if not (late and self.cut):
                writer.write(data)
        writer.close()


@asynccontextmanager
async def far(url: str, patience: float) -> AsyncIterator[tuple[SharedSpending, Counted, Line]]:
    """A router's budgets over such a line, by the client that a router has."""
    line = Line(url)
    server = await asyncio.start_server(line, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Counted(to_redis(f"redis://127.0.0.1:{port}/0"))
    one = spending(client, patience)
    try:
        yield one, client, line
    finally:
        line.cut = False
        one._breaker._until = 0.0
        await one.close()
        await client.client.aclose()
        server.close()
        await server.wait_closed()


async def test_fifty_at_once_take_about_one_round_trip(redis: Redis, requires_redis: str) -> None:
    """One by one they took fifty: a quarter of a second at this distance."""
    wide = Budget("far", "tokens", 100_000, 3600)
    async with far(requires_redis, 5.0) as (one, client, _):
        assert await granted(one, wide, 1)
        took = []
        for _ in range(5):
            before, began = client.calls, time.monotonic()
            found = await asyncio.gather(*(granted(one, wide, 10) for _ in range(50)))
            took.append(time.monotonic() - began)
            assert all(found)
            assert client.calls - before == 1
        assert min(took) < 25 * LATE
        assert await taken_in(redis) == 1 + 5 * 500


async def test_fifty_at_once_whose_answer_does_not_come_have_their_share(
    redis: Redis, requires_redis: str
) -> None:
    async with far(requires_redis, 0.5) as (one, client, line):
        assert await granted(one, HOUR, 10)
        line.cut = True
        began, before = time.monotonic(), client.calls
        found = await asyncio.gather(*(granted(one, HOUR, 4) for _ in range(50)))
        assert sum(map(bool, found)) == 10  # half of a hundred, ten of which were taken
        assert client.calls - before == 1
        assert 0.5 <= time.monotonic() - began < 2
        assert one.degraded
        # It was carried out, and is put right as soon as Redis is heard again.
        assert await taken_in(redis) == 98
        line.cut, one._breaker._until = False, 0.0
        assert await granted(one, HOUR, 1)
        assert (await taken_in(redis), one.spent(HOUR)) == (51, 51)


async def test_who_leaves_takes_nothing_from_those_who_asked_with_it(redis: Redis) -> None:
    one = spending(redis)
    first, *others = [asyncio.create_task(granted(one, HOUR, 10)) for _ in range(5)]
    await asyncio.sleep(0)
    assert len(one._waiting[HOUR,]) == 5
    first.cancel()
    found = await asyncio.gather(*others)
    assert all(found)
    await one.close()
    assert await taken_in(redis) == 40


async def test_budgets_of_an_older_policy_are_asked_apart(redis: Redis) -> None:
    one, less = spending(redis), Budget("far", "tokens", 60, 3600)
    found = await asyncio.gather(*(granted(one, of, 25) for of in (HOUR, less, HOUR, less, HOUR)))
    assert [bool(taken) for taken in found] == [True, False, True, False, True]
    assert await taken_in(redis) == 75


async def test_endpoints_do_not_wait_for_each_other(requires_redis: str) -> None:
    async with far(requires_redis, 5.0) as (one, _, _line):
        near, far_off = Budget("a", "tokens", 10, 3600), Budget("b", "tokens", 10, 3600)
        held = one._turns["b"]
        async with held:
            assert await granted(one, near, 1)
            asked = asyncio.create_task(granted(one, far_off, 1))
            assert await granted(one, near, 1)
            assert not asked.done()
        assert await asked


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 500)), max_size=12),
    st.integers(0, 40),
    st.integers(0, 700),
)
async def test_together_they_get_what_they_would_get_one_by_one(
    requires_redis: str, asked: list[tuple[int, int]], tokens: int, micro: int
) -> None:
    """Never more than the budget; who does not fit leaves the rest to those after it."""
    client: Redis = Redis.from_url(requires_redis)
    name = f"e{next(NAMES)}"
    budgets = [Budget(name, one.name, one.limit, one.seconds) for one in (HOUR, DAY)]
    other, here = spending(client), spending(client)
    await other.take([Claim(budgets[0], tokens), Claim(budgets[1], micro)])
    left, expected = [100 - tokens, 1000 - micro], []
    for amounts in asked:
        fits = all(not wanted or wanted <= of for wanted, of in zip(amounts, left, strict=True))
        left = [of - fits * wanted for wanted, of in zip(amounts, left, strict=True)]
        expected.append(fits)

    async def one(amounts: tuple[int, int]) -> bool:
        try:
            await here.take([Claim(b, n) for b, n in zip(budgets, amounts, strict=True)])
        except Spent:
            return False
        return True

    assert list(await asyncio.gather(*map(one, asked))) == expected
    for budget, remains in zip(budgets, left, strict=True):
        assert await taken_in(client, here._key(budget)) == budget.limit - remains
        assert here.spent(budget) == budget.limit - remains or not asked
    await here.close()
    await client.aclose()
