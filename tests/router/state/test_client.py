"""A client of Redis whose connecting is broken off by nobody's short wait."""

from __future__ import annotations

import asyncio
import time

import pytest

from router.state.client import Ready
from router.state.ledger import Bucket, Take
from router.state.shared import SharedLedger
from router.state.shared_answers import SharedAnswers
from router.state.shared_spending import SharedSpending
from router.state.spending import Budget, Claim


class Far:
    """A Redis whose connection takes longer than a call may, and is lost with a call broken off."""

    def __init__(self) -> None:
        self.connected = asyncio.Event()
        self.begun = 0
        self.calls = 0
        self.error: Exception | None = None

    async def connect(self) -> None:
        self.begun += 1
        if self.error is not None:
            raise self.error
        await self.connected.wait()

    async def eval(self, script: str, numkeys: int, *keys_and_args: str) -> object:
        """Run a script."""
        self.calls += 1
        if self.error is not None:
            raise self.error
        return [1, 5]

    async def zrem(self, name: str, *values: str) -> object:
        """Remove members of a sorted set."""
        return await self.eval("", 0)


async def test_who_gives_up_waiting_does_not_break_off_the_connecting() -> None:
    far = Far()
    client = Ready(far, far.connect)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await client.eval("", 0)
    assert (far.begun, far.calls) == (1, 0)
    far.connected.set()
    await asyncio.gather(*(client.eval("", 0) for _ in range(20)), client.zrem("a", "b"))
    assert (far.begun, far.calls) == (1, 21)


async def test_after_a_call_that_failed_it_connects_anew() -> None:
    far = Far()
    far.connected.set()
    client = Ready(far, far.connect)
    await client.eval("", 0)
    far.error = ConnectionError("gone")
    for call in (client.eval("", 0), client.eval("", 0), client.zrem("a", "b")):
        with pytest.raises(ConnectionError):
            await call
    assert (far.begun, far.calls) == (3, 2)
    far.error = None
    await client.zrem("a", "b")
    assert far.begun == 4


async def test_limits_are_shared_again_though_connecting_takes_longer_than_a_call_may() -> None:
    """Each call began to connect, and broke it off: it counted alone for ever."""
    far, now = Far(), 0.0
    ledger = SharedLedger(Ready(far, far.connect), lambda: now, 0.5, timeout=0.001)
    takes = [Take(Bucket("tokens", "t/tokens", 100, 60), 1)]
    await ledger.take(takes, (), "a")
    assert ledger.degraded
    far.connected.set()
    await asyncio.sleep(0)
    now = 2.0
    await ledger.take(takes, (), "b")
    assert not ledger.degraded


async def test_all_that_is_shared_is_counted_in_a_cluster_within_the_usual_time(
    cluster: int,
) -> None:
    """Its slots have to be learned first, which takes longer than the 25 ms of a call."""
    from router.state.opening import Named

    url = f"redis+cluster://127.0.0.1:{cluster}"
    raw = [Named(lambda: url) for _ in range(3)]
    clients = [Ready(one, one.connect) for one in raw]
    clock = time.monotonic
    ledger = SharedLedger(clients[0], clock, 0.5)
    spending = SharedSpending(clients[1], clock, 0.5, "a-router", time.time() - clock())
    answers = SharedAnswers(clients[2], 60.0)
    for number in range(6):  # endpoints and tenants all over the slots
        both = [Budget(f"far-{number}", name, 1000, 3600) for name in ("dollars", "tokens")]
        takes = [Take(Bucket("tokens", f"t{number}/tokens", 1000, 60), 1)]

        end, claims = clock() + 60, [Claim(one, 0) for one in both]
        await ledger.take(takes, (), "lease")
        await spending.take(claims)
        while ledger.degraded or spending.degraded:
            assert clock() < end, (ledger.degraded, spending.degraded)
            await asyncio.sleep(0.25)
            await ledger.take(takes, (), "lease")
            await spending.take(claims)
        assert await answers.begin(f"key}}{number}{{", "digest", "token", 5.0) is None
    for one in (ledger, spending):
        await one.close()
    for found in raw:
        await found.aclose()
