"""Both adapters of `Exchange`, through the same cases over real sockets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvicorn

from router.direct import direct
from router.door import BEHIND, Door
from router.errors import ClientGone, RequestError
from router.exchange import (
    AsgiExchange,
    Exchange,
    Message,
    Prompt,
    Receive,
    Send,
    lines,
    while_connected,
)
from router.server import Listener
from tests.router.house import listening

Route = Callable[[Exchange], Awaitable[None]]
PATH = b"/hot"
HEAD = b"POST /hot HTTP/1.1\r\nhost: x\r\n"


@asynccontextmanager
async def serving(route: Route, kind: str, patience: int = 75) -> AsyncIterator[int]:
    """A server whose `/hot` is answered by `route`, through one of the adapters."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        exchange = AsgiExchange(scope, receive, send)
        try:
            await route(exchange)
        finally:
            exchange.close()

    class Routes:
        def route(self, path: bytes) -> Callable[[Exchange, str], Awaitable[None]] | None:
            return (lambda exchange, method: route(exchange)) if path == PATH else None

    http = direct(Routes()) if kind == "direct" else Door
    found = listening()
    config = uvicorn.Config(app, loop="none", http=http, ws="none", lifespan="off",
                            log_config=None, access_log=False,
                            timeout_keep_alive=patience)  # fmt: skip
    server = Listener(config)
    task = asyncio.create_task(server.serve([found]))
    for _ in range(1000):
        if server.started:
            break
        await asyncio.sleep(0.005)
    try:
        yield found.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await task


async def talk(port: int, *pieces: bytes, pause: float = 0.02, close: bool = True) -> bytes:
    """Write pieces one by one; everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)
    if close:
        writer.write_eof()
    data = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return data


async def echo(exchange: Exchange) -> None:
    """The body comes back, with what the head said."""
    try:
        body = await exchange.body(1000)
    except RequestError as error:
        await exchange.start(error.status, [(b"content-length", b"0")])
        await exchange.end()
        return
    shown = f"{exchange.head.method} {exchange.head.path} ".encode() + exchange.head.query
    data = shown + b" " + body
    await exchange.start(200, [(b"content-length", b"%d" % len(data))])
    await exchange.end(data)


@pytest.fixture(params=["asgi", "direct"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which adapter."""
    return str(request.param)


async def test_one_request(kind: str) -> None:
    async with serving(echo, kind) as port:
        data = await talk(port, HEAD.replace(b"/hot", b"/hot?a=1") + b"content-length: 2\r\n\r\nhi")
        assert data.startswith(b"HTTP/1.1 200 OK\r\n")
        assert data.endswith(b"\r\n\r\nPOST /hot a=1 hi")


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


async def test_expect_100_continue(kind: str) -> None:
    async with serving(echo, kind) as port:
        data = await talk(port, HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n", b"hi")
        assert data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
        assert data.endswith(b" hi")


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
