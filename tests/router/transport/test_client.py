"""The transport as a whole."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from router.transport.client import HttpTransport
from router.transport.messages import (
    Aborted,
    AnswerTimeout,
    ConnectFailed,
    Fate,
    Origin,
    OutboundRequest,
    TransportError,
    UnsafeRequest,
)
from tests.rawserver import (
    Line,
    RawServer,
    ask,
    echo,
    hang,
    now,
    quiet,
    saying,
    served,
    whole,
    within,
)


async def test_a_passed_deadline_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        await whole(await transport.send(ask(server), within(5)))
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(ask(server), within(-1))
        assert caught.value.fate is Fate.NOT_SENT


async def test_a_pool_that_nobody_uses_is_forgotten() -> None:
    """One for each pod that ever was, where its last request came after it had gone."""
    ahead = [0.0]
    async with RawServer(echo) as one, RawServer(echo) as other:
        transport = HttpTransport(clock=lambda: now() + ahead[0])
        gone = ask(one).origin
        transport.drain(gone)
        await whole(await transport.send(ask(one), within(1e4)))  # late, by an older snapshot
        for seconds, left in ((10.0, 2), (700.0, 1)):
            ahead[0] += seconds
            await whole(await transport.send(ask(other), within(1e4)))
            for _ in range(3):
                transport.nudge(0.0)  # as each request's own time does
                await asyncio.sleep(0.06)
            assert len(transport._pools) == left
        assert gone not in transport._pools
        await whole(await transport.send(ask(one), within(1e4)))
        assert len(transport._pools) == 2
        await transport.close()


async def test_one_deadline_bounds_all_attempts() -> None:
    """retries-04: each attempt must not get the whole time anew."""
    async with served(hang) as (server, transport):
        times = within(0.3)
        began = now()
        for _ in range(3):
            with pytest.raises((AnswerTimeout, ConnectFailed)):
                await transport.send(ask(server), times)
        assert now() - began < 1
        assert len(server.lines) == 1


async def test_close_waits_for_answers_but_not_for_ever() -> None:
    async with RawServer(hang) as server:
        transport = HttpTransport()
        task = asyncio.create_task(transport.send(ask(server), within(60)))
        await asyncio.sleep(0.02)
        began = now()
        await transport.close(grace=0.1)
        assert 0.05 < now() - began < 1
        with pytest.raises(Aborted):
            await task
        with pytest.raises(ConnectFailed):
            await transport.send(ask(server), within(5))


@pytest.mark.parametrize("waiting", ["for a connection", "for a name"])
async def test_close_lets_nothing_go_out_later(waiting: str) -> None:
    named = asyncio.Event()

    class Late:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await named.wait()
            return [("127.0.0.1", port)]

    async with RawServer(hang) as server:
        resolver = Late() if waiting == "for a name" else None
        transport = HttpTransport(resolver, limit=1)
        tasks = [asyncio.create_task(transport.send(ask(server), within(60))) for _ in range(3)]
        await asyncio.sleep(0.05)
        await transport.close()
        named.set()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 2)
        assert {type(end) for end in ends} <= {Aborted, ConnectFailed}
        assert transport.counts.open == 0
        requests = [line for line in server.lines if await line.reader.read(1)]
        assert requests == []


async def test_redirects_are_not_followed() -> None:
    answer = (
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\n"
        b"content-length: 0\r\n\r\n"
    )
    async with served(saying(answer)) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert (response.status, await whole(response)) == (307, b"")
        assert len(server.lines) == 1


async def test_a_foreign_host_header_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        request = OutboundRequest(
            Origin("http", "127.0.0.1", server.port), "POST", "/", ((b"Host", b"evil.example"),)
        )
        with pytest.raises(UnsafeRequest):
            await transport.send(request, within(5))
        assert server.lines == []


async def test_errors_name_no_path() -> None:
    """security-09: a key can be part of an URL."""
    async with served(hang) as (server, transport):
        origin = Origin("http", "127.0.0.1", server.port)
        request = OutboundRequest(origin, "POST", "/x?key=SECRET", ((b"a", b"SECRET"),), b"SECRET")
        with pytest.raises(TransportError) as caught:
            await transport.send(request, within(0.1))
        assert "SECRET" not in repr(caught.value)


FAULTS = ["none"] * 6 + ["reset", "close", "half", "stall", "twice", "junk", "slow"]


async def misbehave(line: Line, dice: random.Random) -> None:
    """Answers each request with its own body, or in one of many wrong ways."""
    while True:
        body = (await line.request()).split(b"\r\n\r\n", 1)[1]
        fault = dice.choice(
            ["none"] * 6 + ["reset", "close", "half", "stall", "twice", "junk", "slow"]
        )
        if fault in ("reset", "close", "stall"):
            await asyncio.sleep(dice.random() * 0.01)
            if fault == "reset":
                line.reset()
            if fault == "stall":
                await line.closed_by_peer()
            return
        if fault == "half":
            await line.say(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n" + body)
            return
        if fault == "junk":
            await line.say(b"junk\r\n\r\n")
            return
        if fault == "slow":
            await line.stream_head()
            for at in range(len(body)):
                await line.part(body[at : at + 1])
                await asyncio.sleep(0.001)
            await line.part(b"")
        else:
            await line.json(body)
        if fault == "twice":
            await line.json(b"not yours")


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_endpoints_do_answers_never_cross_and_nothing_is_left(seed: int) -> None:
    dice = random.Random(seed)
    ends: Counter[str] = Counter()

    async with served(lambda line: misbehave(line, dice), limit=8) as (server, transport):

        async def one(number: int) -> None:
            mine = b"request %d" % number
            try:
                async with asyncio.timeout(dice.choice([0.02, 5, 5, 5])):
                    response = await transport.send(ask(server, mine), within(1, first_byte=0.05))
                    if dice.random() < 0.1:
                        response.abort()
                    assert await whole(response, 0.5) == mine
                ends["answered"] += 1
            except TransportError as error:
                ends[error.code] += 1
            except TimeoutError:
                ends["cancelled"] += 1

        await asyncio.gather(*(one(number) for number in range(400)))
        assert ends["answered"] > 50
        assert {"connection_lost", "timeout", "garbled", "cancelled"} <= ends.keys()
        for number in range(100):
            await one(1000 + number)
        await quiet(transport)
        assert transport.counts.open <= 8
        assert not transport._live
