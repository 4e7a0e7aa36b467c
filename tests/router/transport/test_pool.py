"""Connections are reused, limited, handed on in order, and closed in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import pairwise

import pytest

from router.transport.client import HttpTransport
from router.transport.connection import Connection
from router.transport.messages import (
    ConnectFailed,
    Fate,
    Origin,
    OutboundRequest,
    Timeouts,
)
from router.transport.pool import Dial, Limits, Pool
from tests.rawserver import (
    OK,
    Line,
    RawServer,
    ask,
    echo,
    now,
    saying,
    served,
    settled,
    whole,
    within,
)


async def test_connections_are_reused() -> None:
    async with served(echo) as (server, transport):
        for number in range(20):
            response = await transport.send(ask(server, b"%d" % number), within(5))
            assert await whole(response) == b"%d" % number
        assert len(server.lines) == 1
        assert (transport.counts.open, transport.counts.idle) == (1, 1)
        assert transport.counts.created == 1


async def test_an_answer_read_late_is_not_the_next_request_s() -> None:
    """A connection is free again when its answer has ended, though nobody has read it yet."""
    async with served(echo, limit=1) as (server, transport):
        first = await transport.send(ask(server, b"first"), within(5))
        second = await transport.send(ask(server, b"second"), within(5))
        third = await transport.send(ask(server, b"third"), within(5))
        assert await whole(third) == b"third"
        assert await whole(first) == b"first"
        assert await whole(second) == b"second"
        assert len(server.lines) == 1


async def test_bursts_over_few_connections_keep_their_answers() -> None:
    """balancing-07: requests after the first burst fail only through the router."""
    async with served(echo, limit=3) as (server, transport):

        async def one(number: int) -> None:
            body = b"%d" % number if number % 3 else b""
            response = await transport.send(ask(server, body), within(10))
            await asyncio.sleep(0.001 * (number % 4))
            assert await whole(response) == body

        for burst in range(3):
            await asyncio.gather(*(one(burst * 50 + number) for number in range(50)))
        assert len(server.lines) == 3
        assert transport.counts.idle == 3


async def test_waiting_requests_go_in_order_of_arrival() -> None:
    order: list[bytes] = []

    async def script(line: Line) -> None:
        while True:
            request = await line.request()
            order.append(request.rsplit(b"\r\n\r\n", 1)[1])
            await asyncio.sleep(0.002)
            await line.say(OK)

    async with served(script, limit=1) as (server, transport):

        async def one(number: int) -> None:
            await whole(await transport.send(ask(server, b"%d" % number), within(10)))

        await asyncio.gather(*(one(number) for number in range(10)))
    assert order == [b"%d" % number for number in range(10)]


async def test_a_waiter_that_gives_up_leaves_the_queue_whole() -> None:
    release = asyncio.Event()

    async def script(line: Line) -> None:
        while True:
            await line.request()
            await release.wait()
            await line.say(OK)

    async with served(script, limit=1) as (server, transport):
        first = asyncio.create_task(transport.send(ask(server), within(5)))
        await asyncio.sleep(0.02)
        quitter = asyncio.create_task(transport.send(ask(server), within(5)))
        late = asyncio.create_task(transport.send(ask(server), within(5)))
        await asyncio.sleep(0.02)
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(ask(server), within(0.05))
        assert (caught.value.reason, caught.value.fate) == ("full", Fate.NOT_SENT)
        quitter.cancel()
        release.set()
        assert (await first).status == 200
        assert (await late).status == 200
        assert transport.counts.open == 1


async def test_idle_connections_are_closed_in_time() -> None:
    """failover-10: earlier than the peer does it."""
    async with served(echo, keep_alive=0.15) as (server, transport):
        await whole(await transport.send(ask(server), within(5)))
        assert transport.counts.idle == 1
        await settled(transport, 0)
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_a_name_that_leads_elsewhere_is_followed_under_steady_load() -> None:
    """Its connections are never idle: prompts would go on to where it led before for as long as
    this router lives. See TykTechnologies/tyk#1485, aio-libs/aiohttp#4948."""
    async with RawServer(echo) as before, RawServer(echo) as after:
        leads = before.port

        class Name:
            async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
                return [("127.0.0.1", leads)]

        transport = HttpTransport(Name(), age=0.3)
        request = OutboundRequest(Origin("http", "llm.internal", 80), "POST", "/", (), b"{}")

        async def load(seconds: float) -> None:
            until = now() + seconds
            while now() < until:
                await whole(await transport.send(request, within(5)))

        await load(0.1)
        assert (len(before.lines), len(after.lines)) == (1, 0)
        leads = after.port
        await load(0.5)
        assert before.lines[-1].gone.is_set()
        assert after.lines
        await transport.close()


async def test_connections_that_were_opened_together_do_not_end_together() -> None:
    """Else all of a fleet's are opened anew at once, every few minutes."""
    at = now()
    async with RawServer(echo) as server:
        transport = HttpTransport(keep_alive=1e9, clock=lambda: at)

        async def one() -> None:
            await whole(await transport.send(ask(server), Timeouts(at + 50, 5)), 50)

        opened = []
        for _ in range(31):
            await asyncio.gather(*(one() for _ in range(32)))
            opened.append(transport.counts.created)
            at += 10
        more = [new - old for old, new in pairwise(opened)]
        assert sum(more[:20]) == 0
        assert sum(more) == 32
        assert max(more) <= 8
        await transport.close()


async def test_the_endpoint_s_own_keep_alive_limit_is_kept() -> None:
    answer = b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=1, max=9\r\ncontent-length: 2\r\n\r\nok"
    async with served(saying(answer)) as (server, transport):
        for _ in range(2):
            await whole(await transport.send(ask(server), within(5)))
        assert len(server.lines) == 2


async def test_draining_ends_idle_connections_and_lets_answers_end() -> None:
    release = asyncio.Event()

    async def script(line: Line) -> None:
        while True:
            request = await line.request()
            if b"slow" in request:
                await release.wait()
            await line.say(OK)

    async with served(script) as (server, transport):
        slow = asyncio.create_task(transport.send(ask(server, b"slow"), within(5)))
        await asyncio.sleep(0.02)
        await whole(await transport.send(ask(server), within(5)))
        assert transport.counts.open == 2
        transport.drain(Origin("http", "127.0.0.1", server.port))
        await settled(transport, 1)
        release.set()
        assert await whole(await slow) == b"ok"
        await settled(transport, 0)
        assert await whole(await transport.send(ask(server), within(5))) == b"ok"


async def join(make: Callable[[socket.socket], Connection], until: float) -> Connection:
    """A connection to nowhere."""
    here, there = socket.socketpair()
    here.setblocking(False)
    _, made = await asyncio.get_running_loop().create_connection(lambda: make(here), sock=here)
    there.detach()
    return made


def pool_of(limit: int, dial: Dial = join) -> Pool:
    return Pool(dial, now, lambda expires: None, Limits(limit, 4.0, 1000))


@pytest.mark.parametrize("ending", ["cancelled", "closed"])
async def test_a_connection_that_comes_to_nothing_gives_its_place_back_once(ending: str) -> None:
    """It was made already when its opening was given up, or when the endpoint closed it."""

    async def dial(make: Callable[[socket.socket], Connection], until: float) -> Connection:
        made = await join(make, until)
        made.cut()
        await asyncio.sleep(0.01 if ending == "closed" else 60)
        return made

    pool = pool_of(1, dial)
    opening = asyncio.create_task(pool.connect(90, now() + 90))
    await asyncio.sleep(0.05)
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled() or isinstance(opening.exception(), ConnectFailed)
    assert opening.cancelled() == (ending == "cancelled")
    assert (pool.open, pool.created) == (0, 0)


@pytest.mark.parametrize("handed", ["connection", "place"])
async def test_what_a_leaving_waiter_was_handed_is_passed_on(handed: str) -> None:
    """It is cancelled in the very turn in which its turn has come."""
    pool = pool_of(1)
    held = await pool.connect(5, now() + 5)
    first = asyncio.create_task(pool.connect(5, now() + 5))
    second = asyncio.create_task(pool.connect(5, now() + 5))
    await asyncio.sleep(0)
    if handed == "connection":
        pool.release(held)
        first.cancel()
    else:
        lost = held._on_lost
        held._on_lost = lambda connection: (lost(connection), first.cancel())[0]
        held.cut()
    got = await asyncio.wait_for(second, 2)
    assert first.cancelled()
    assert (got is held) == (handed == "connection")
    assert pool.open == 1
    got.cut()
    await asyncio.sleep(0.01)
    assert pool.open == 0
