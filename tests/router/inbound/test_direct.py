"""Connections and those who leave them, by both adapters of `Exchange`, over real sockets."""

from __future__ import annotations

import asyncio

import pytest

from router.errors import ClientGone
from router.inbound.door import BEHIND
from router.inbound.exchange import (
    Exchange,
    while_connected,
)
from tests.router.adapters import HEAD, echo, serving, talk


@pytest.fixture(params=["asgi", "direct"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which adapter."""
    return str(request.param)


async def test_one_request(kind: str) -> None:
    async with serving(echo, kind) as port:
        data = await talk(port, HEAD.replace(b"/hot", b"/hot?a=1") + b"content-length: 2\r\n\r\nhi")
        assert data.startswith(b"HTTP/1.1 200 OK\r\n")
        assert data.endswith(b"\r\n\r\nPOST /hot a=1 hi")


async def test_keep_alive_and_pipelining(kind: str) -> None:
    one = HEAD + b"content-length: 1\r\n\r\n"
    async with serving(echo, kind) as port:
        data = await talk(port, one + b"a" + one + b"b" + one + b"c")
        assert [part[-1:] for part in data.split(b"HTTP/1.1 200 OK")[1:]] == [b"a", b"b", b"c"]
        data = await talk(port, one + b"a", one + b"b")
        assert data.count(b"HTTP/1.1 200 OK") == 2


async def test_http_1_0_and_connection_close(kind: str) -> None:
    async with serving(echo, kind) as port:
        old = await talk(port, b"POST /hot HTTP/1.0\r\ncontent-length: 1\r\n\r\na", close=False)
        assert b"connection: close" in old
        closing = await talk(
            port, HEAD + b"connection: close\r\ncontent-length: 1\r\n\r\na", close=False
        )
        assert closing.endswith(b" a")


async def test_a_client_that_leaves_before_the_answer(kind: str) -> None:
    left = asyncio.Event()

    async def route(exchange: Exchange) -> None:
        await exchange.body(1000)
        try:
            async with while_connected(exchange):
                await asyncio.sleep(30)
        except ClientGone:
            left.set()

    async with serving(route, kind) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        await asyncio.sleep(0.1)
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 2)


async def test_a_client_that_leaves_a_stream_with_more_requests_behind_it(kind: str) -> None:
    """Who is being answered hears of it, not only who came last."""
    told, began = asyncio.Event(), list[int]()

    async def route(exchange: Exchange) -> None:
        began.append(len(began))
        await exchange.body(1000)
        exchange.on_gone(told.set)
        await exchange.start(200, [(b"content-type", b"text/event-stream")])
        while not exchange.gone:
            await exchange.write(b"more")
            await asyncio.sleep(0.01)

    async with serving(route, kind) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((HEAD + b"content-length: 0\r\n\r\n") * 2)
        await asyncio.sleep(0.1)
        writer.transport.abort()
        await asyncio.wait_for(told.wait(), 5)
        await asyncio.sleep(0.05)
    assert began == [0]


@pytest.mark.parametrize(("behind", "heard"), [(1, True), (BEHIND - 1, True), (BEHIND, False)])
async def test_a_client_that_leaves_is_heard_of_with_requests_behind_its_own(
    kind: str, behind: int, heard: bool
) -> None:
    """Though nothing is written that could fail. What waits is not begun."""
    begun: list[bytes] = []
    told, go = asyncio.Event(), asyncio.Event()

    async def route(exchange: Exchange) -> None:
        begun.append(await exchange.body(1000))
        exchange.on_gone(told.set)
        await go.wait()
        await exchange.start(200, [(b"content-length", b"0")])
        await exchange.end()

    async with serving(route, kind) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(behind + 1):
            writer.write(HEAD + b"content-length: 1\r\n\r\n%d" % number)
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.close()
        if heard:
            await asyncio.wait_for(told.wait(), 5)
        else:
            await asyncio.sleep(0.1)
            assert not told.is_set()
        go.set()
        await asyncio.sleep(0.05)
    assert begun[0] == b"0"
    assert len(begun) == 1 or not heard


async def test_a_client_that_leaves_within_its_body(kind: str) -> None:
    left = asyncio.Event()

    async def route(exchange: Exchange) -> None:
        try:
            await exchange.body(1000)
        except ClientGone:
            left.set()

    async with serving(route, kind) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"content-length: 10\r\n\r\nabc")
        await asyncio.sleep(0.1)
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 2)


async def test_a_client_that_leaves_mid_stream(kind: str) -> None:
    told = asyncio.Event()

    async def route(exchange: Exchange) -> None:
        await exchange.body(1000)
        exchange.on_gone(told.set)
        await exchange.start(200, [])
        while not exchange.gone:
            await exchange.write(b"x" * 1000)
            await asyncio.sleep(0.001)

    async with serving(route, kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        await reader.readline()
        writer.transport.abort()
        await asyncio.wait_for(told.wait(), 2)


@pytest.mark.parametrize("begun", [b"", b"POST /h", HEAD, b"\r\n"])
async def test_who_sends_no_whole_head_is_cut_off(begun: bytes) -> None:
    async with serving(echo, "direct", patience=1) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)

        async def drip() -> None:
            while True:
                await asyncio.sleep(0.1)
                writer.write(begun[-2:])

        dripping = asyncio.create_task(drip()) if begun == b"\r\n" else None
        assert await asyncio.wait_for(reader.read(), 30) == b""
        if dripping is not None:
            dripping.cancel()
        writer.close()


async def test_a_whole_head_has_as_long_as_its_route_lets_it() -> None:
    async with serving(echo, "direct", patience=1) as port:
        answer = await talk(port, HEAD + b"content-length: 2\r\n\r\na", b"b", pause=1.3)
    assert answer.endswith(b"POST /hot  ab")


async def test_other_paths_take_the_asgi_way() -> None:
    async with serving(echo, "direct") as port:
        data = await talk(port, b"POST /cold HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        assert data.endswith(b"POST /cold  ")
