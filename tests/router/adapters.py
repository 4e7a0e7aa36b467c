"""A server before either adapter of `Exchange`, and what is said to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvicorn

from router.errors import RequestError
from router.inbound.direct import direct
from router.inbound.door import Door
from router.inbound.exchange import (
    AsgiExchange,
    Exchange,
    Message,
    Receive,
    Send,
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
