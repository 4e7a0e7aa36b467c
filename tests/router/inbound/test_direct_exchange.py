"""What a request and its answer are to a route, by both adapters, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket

import pytest

from router.inbound.exchange import (
    Exchange,
    Prompt,
    lines,
)
from tests.router.adapters import HEAD, echo, serving, talk


@pytest.fixture(params=["asgi", "direct"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which adapter."""
    return str(request.param)


async def test_a_body_in_pieces_and_in_chunks(kind: str) -> None:
    async with serving(echo, kind) as port:
        data = await talk(port, HEAD + b"content-length: 6\r\n\r\n", b"abc", b"def")
        assert data.endswith(b" abcdef")
        data = await talk(
            port,
            HEAD + b"transfer-encoding: chunked\r\n\r\n",
            b"3\r\nabc\r\n",
            b"1\r\nd\r\n0\r\n\r\n",
        )
        assert data.endswith(b" abcd")


async def test_expect_100_continue(kind: str) -> None:
    async with serving(echo, kind) as port:
        data = await talk(port, HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n", b"hi")
        assert data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
        assert data.endswith(b" hi")


async def test_a_body_that_was_never_asked_for_is_waited_for_by_nobody(kind: str) -> None:
    """Its client may send it, or its next request: the one must not be taken for the other."""

    async def route(exchange: Exchange) -> None:
        await exchange.start(401, [(b"content-length", b"2")])
        await exchange.end(b"no")

    async with serving(route, kind) as port:
        asked = HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        data = await asyncio.wait_for(talk(port, asked, close=False), 5)
        assert (data[:12], data[-2:]) == (b"HTTP/1.1 401", b"no")
        assert kind == "asgi" or b"connection: close\r\n" in data
        kept = await talk(port, asked + b"hi" + HEAD + b"content-length: 0\r\n\r\n")
        assert kept.count(b"HTTP/1.1 401") == 2


async def test_a_body_above_the_limit(kind: str) -> None:
    async with serving(echo, kind) as port:
        told = await talk(port, HEAD + b"content-length: 5000\r\n\r\n" + b"x" * 5000)
        assert b" 413 " in told.split(b"\r\n")[0]
        counted = await talk(
            port,
            HEAD
            + b"transfer-encoding: chunked\r\n\r\n"
            + b"7d0\r\n"
            + b"x" * 2000
            + b"\r\n0\r\n\r\n",
        )
        assert b" 413 " in counted.split(b"\r\n")[0]


async def test_a_stream_is_chunked(kind: str) -> None:
    async def route(exchange: Exchange) -> None:
        await exchange.body(1000)
        await exchange.start(200, [(b"content-type", b"text/event-stream")])
        await exchange.write(b"one")
        await exchange.write(b"")
        await exchange.end(b"two")

    async with serving(route, kind) as port:
        data = await talk(port, HEAD + b"content-length: 0\r\n\r\n")
        assert data.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        assert b"transfer-encoding: chunked" in data


async def test_a_head_that_was_made_before_goes_out_as_its_headers_would() -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"x-a", b"b")]

    async def started(exchange: Exchange) -> None:
        await exchange.body(1000)
        await exchange.start(200, headers)
        await exchange.end(b"one")

    async def begun(exchange: Exchange) -> None:
        assert isinstance(exchange, Prompt)
        await exchange.body(1000)
        assert exchange.begin(200, lines(headers), b"")
        assert exchange.started
        await exchange.end(b"one")

    async def begun_with_content(exchange: Exchange) -> None:
        assert isinstance(exchange, Prompt)
        await exchange.body(1000)
        assert exchange.begin(200, lines(headers), b"one")
        await exchange.end()

    found = []
    for route in (started, begun, begun_with_content):
        async with serving(route, "direct") as port:
            kept = await talk(port, HEAD + b"content-length: 0\r\n\r\n")
            closing = HEAD + b"connection: close\r\ncontent-length: 0\r\n\r\n"
            closed = await talk(port, closing, close=False)
        assert (b"connection: close" in kept, b"connection: close" in closed) == (False, True)
        assert b"transfer-encoding: chunked" in kept
        found.append([re.sub(rb"date: [^\r]*", b"", one) for one in (kept, closed)])
    assert found[0] == found[1] == found[2]


async def test_a_slow_client_holds_the_writer_back(kind: str) -> None:
    written = 0

    async def route(exchange: Exchange) -> None:
        nonlocal written
        await exchange.body(1000)
        await exchange.start(200, [])
        while not exchange.gone and written < 200:
            await exchange.write(b"x" * 100_000)
            written += 1

    async with serving(route, kind) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        await asyncio.sleep(0.3)
        assert written < 200
        writer.transport.abort()


async def test_a_client_that_takes_nothing_keeps_no_connection() -> None:
    """Once nobody waits for it any more, what it did not take is dropped."""
    left: list[Exchange] = []
    size = 16 << 20

    async def route(exchange: Exchange) -> None:
        await exchange.body(1000)
        left.append(exchange)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                if len(left) == 1:
                    await exchange.start(200, [(b"content-length", b"%d" % size)])
                    await exchange.end(b"x" * size)
                await exchange.start(200, [])
                while True:
                    await exchange.write(b"x" * 100_000)

    async with serving(route, "direct") as port:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as whole:
            whole.sendall(HEAD + b"content-length: 0\r\n\r\n")
            await asyncio.sleep(0.5)
            assert taken(whole) < size
        with socket.create_connection(("127.0.0.1", port), timeout=5) as stream:
            stream.sendall(HEAD + b"content-length: 0\r\n\r\n")
            await asyncio.sleep(0.5)
            assert left[1].gone


def taken(client: socket.socket) -> int:
    """Bytes until the other side's end."""
    found = 0
    while data := client.recv(1 << 20):
        found += len(data)
    return found


async def test_a_large_body_does_not_pile_up_unread(kind: str) -> None:
    gate = asyncio.Event()

    async def route(exchange: Exchange) -> None:
        await gate.wait()
        await exchange.body(10 << 20)
        await exchange.start(204, [])
        await exchange.end()

    async with serving(route, kind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"content-length: %d\r\n\r\n" % (8 << 20) + b"x" * (8 << 20))
        await asyncio.sleep(0.2)
        transport = writer.transport
        assert transport.get_write_buffer_size() > 1 << 20
        gate.set()
        assert b"204" in await asyncio.wait_for(reader.readline(), 5)
        writer.close()


async def test_a_route_that_fails_closes_the_connection(kind: str) -> None:
    async def route(exchange: Exchange) -> None:
        await exchange.body(10)

    async with serving(route, kind) as port:
        data = await talk(port, HEAD + b"content-length: 0\r\n\r\n", close=False)
        assert data == b"" or b" 500 " in data.split(b"\r\n")[0]
