"""A TCP server on 127.0.0.1 whose every byte a test writes itself."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from router.transport.client import HttpTransport
from router.transport.messages import Origin, OutboundRequest, OutboundResponse, Timeouts, read_body


@dataclass
class Line:
    """One accepted connection. `number` counts them from 0."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> bytes:
        """The bytes of one request, head and body. Raises IncompleteReadError at the end."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        size = 0
        for row in head.lower().split(b"\r\n"):
            if row.startswith(b"content-length:"):
                size = int(row.split(b":")[1])
        return head + await self.reader.readexactly(size)

    async def say(self, data: bytes) -> None:
        """Write, now."""
        self.writer.write(data)
        await self.writer.drain()

    async def json(self, body: bytes, status: bytes = b"200 OK") -> None:
        """A whole answer with a content-length."""
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        await self.say(head % (status, len(body)) + body)

    async def stream_head(self) -> None:
        """The head of a chunked event stream."""
        await self.say(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )

    async def part(self, data: bytes) -> None:
        """One chunk of a chunked body; an empty one ends it."""
        await self.say(b"%x\r\n%b\r\n" % (len(data), data))

    def reset(self) -> None:
        """Close with a TCP reset."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def closed_by_peer(self) -> None:
        """Wait until the other side closes; what it still writes is dropped."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


Script = Callable[[Line], Awaitable[None]]


class RawServer:
    """Runs `script` for each connection; `lines` are all that came."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.lines: list[Line] = []
        self.port = 0
        self._script = script
        self._tls = tls
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self._server = server
        self.port = server.sockets[0].getsockname()[1]
        return self

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(len(self.lines), reader, writer)
        self.lines.append(line)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._script(line)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except RuntimeError:
            # uvloop says so when a closed connection is written to.
            assert writer.is_closing()
        finally:
            self._tasks.discard(task)
            writer.close()
            line.gone.set()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=2)
        for line in self.lines:
            # asyncio of Python 3.11 has no loop left for what closed once its last byte was taken.
            with suppress(AttributeError):
                line.writer.transport.abort()
        await asyncio.sleep(0)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def now() -> float:
    return asyncio.get_running_loop().time()


def within(seconds: float, *, first_byte: float = float("inf"), connect: float = 5.0) -> Timeouts:
    return Timeouts(now() + seconds, connect, first_byte)


@asynccontextmanager
async def served(
    script: Script, limit: int = 16, keep_alive: float = 4.0
) -> AsyncIterator[tuple[RawServer, HttpTransport]]:
    async with RawServer(script) as server:
        transport = HttpTransport(limit=limit, keep_alive=keep_alive, head_limit=16384)
        try:
            yield server, transport
        finally:
            await transport.close()


def ask(
    server: RawServer, body: bytes = b"{}", method: str = "POST", *, replay_safe: bool = False
) -> OutboundRequest:
    origin = Origin("http", "127.0.0.1", server.port)
    headers = ((b"content-type", b"application/json"),)
    return OutboundRequest(origin, method, "/v1/x", headers, body, replay_safe)


async def whole(response: OutboundResponse, seconds: float = 5.0) -> bytes:
    return await read_body(response, 1 << 30, now() + seconds)


async def echo(line: Line) -> None:
    """Answers each request with its own body."""
    while True:
        request = await line.request()
        await line.json(request.split(b"\r\n\r\n", 1)[1])


def saying(*parts: bytes, close: bool = False) -> Script:
    """Answers each request with these writes."""

    async def script(line: Line) -> None:
        while True:
            await line.request()
            for part in parts:
                await line.say(part)
                await asyncio.sleep(0)
            if close:
                return

    return script


async def settled(transport: HttpTransport, count: int) -> None:
    """Wait until that many connections are open."""
    give_up = now() + 3
    while transport.counts.open != count:
        assert now() < give_up, transport.counts
        await asyncio.sleep(0.005)


async def hang(line: Line) -> None:
    while True:
        await line.request()
        await line.closed_by_peer()


async def quiet(transport: HttpTransport) -> None:
    """Wait until no open connection is busy."""
    give_up = now() + 3
    while transport.counts.open != transport.counts.idle:
        assert now() < give_up, transport.counts
        await asyncio.sleep(0.005)
