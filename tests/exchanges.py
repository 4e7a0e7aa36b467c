"""An `Exchange` in memory, and a client on a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvicorn

from router.inbound.exchange import (
    AsgiExchange,
    Headers,
    Lines,
    Message,
    Prompt,
    Receive,
    RequestHead,
    Send,
)  # fmt: skip


class FakeExchange:
    """Records what is written. `leave` is the client's leaving; `gate` blocks writes when clear."""

    def __init__(self) -> None:
        self.head = RequestHead("POST", "/v1/chat/completions", b"", ())
        self.gone = False
        self.started = False
        self.status = 0
        self.headers: Headers = ()
        self.parts: list[bytes] = []
        self.ended = False
        self.gate = asyncio.Event()
        self.gate.set()
        self._callback: Callable[[], None] | None = None

    @property
    def sent(self) -> bytes:
        return b"".join(self.parts)

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        yield await self.body(limit)

    async def body(self, limit: int) -> bytes:
        return b""

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        before, self._callback = self._callback, callback
        return before

    def leave(self) -> None:
        self.gone = True
        self.gate.set()
        if self._callback is not None:
            self._callback()

    async def start(self, status: int, headers: Headers) -> None:
        self.started, self.status, self.headers = True, status, headers

    async def write(self, data: bytes) -> None:
        if not self.gone:
            self.parts.append(data)
        await self.gate.wait()

    async def end(self, data: bytes = b"") -> None:
        await self.write(data)
        self.ended = True


class PromptExchange(FakeExchange, Prompt):
    """One that also takes bytes at once."""

    def here(self, limit: int) -> bytes | None:
        return None

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        self.started, self.status, self.headers = True, status, head.pairs()
        return self.put(first)

    def answer(self, status: int, head: Lines, body: bytes) -> bool:
        self.started, self.status = True, status
        self.headers = [*head.pairs(), (b"content-length", b"%d" % len(body))]
        self.ended = True
        return self.put(body)

    def put(self, data: bytes) -> bool:
        if not self.gone:
            self.parts.append(data)
        return self.gate.is_set()

    async def drained(self) -> None:
        await self.gate.wait()


Route = Callable[[AsgiExchange], Awaitable[None]]


@asynccontextmanager
async def on_uvicorn(route: Route) -> AsyncIterator[int]:
    """A real server whose every request goes to `route`; gives its port."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        exchange = AsgiExchange(scope, receive, send)
        try:
            await route(exchange)
        finally:
            exchange.close()

    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen()
    config = uvicorn.Config(app, log_level="critical", lifespan="off", http="httptools")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([door]))
    try:
        port: int = door.getsockname()[1]
        yield port
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving
        door.close()


async def post(port: int, body: bytes = b"{}", headers: bytes = b"") -> asyncio.StreamReader:
    """Ask, and give what comes back; the connection stays open until `hang_up`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%b\r\n"
    writer.write(head % (len(body), headers) + body)
    await writer.drain()
    reader.writer = writer  # type: ignore[attr-defined]
    return reader


def hang_up(reader: asyncio.StreamReader) -> None:
    """The client leaves."""
    reader.writer.transport.abort()  # type: ignore[attr-defined]
