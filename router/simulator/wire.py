"""A small HTTP/1.1 server that can also misbehave: every byte and every reset is the caller's.

An ASGI server protects its application from writing half a response head, a wrong content-length or
a reset; a fault simulator needs exactly these, so it speaks to the socket itself. Parsing is
httptools' (llhttp). One request at a time per connection, keep-alive, optional TLS.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, Self, cast

import httptools

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: raw target, lower-case header names, whole body.

    `began` is the clock (monotonic seconds) when its first byte arrived.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    began: float

    @property
    def path(self) -> str:
        """The target before `?`, still percent-encoded."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The target after `?`, still percent-encoded."""
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        """The first value of a header, by lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


class Gone(ConnectionError):
    """The client has left (or was cut off); nothing more can be written."""


class Reply:
    """The writing side of one request. `gone` is set when the client has left."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._chunked = False
        self.status = 0
        self.gone = connection.gone

    def start(self, status: int, headers: Iterable[tuple[str, str]], length: int | None) -> None:
        """Write the head; `length` None means chunked."""
        self._chunked = length is None
        framing = ("transfer-encoding", "chunked")
        if length is not None:
            framing = ("content-length", str(length))
        self.raw(head(status, (*headers, framing)))
        self.status = status

    async def send(self, data: bytes) -> None:
        """Write body bytes, framed; waits while the client reads slowly. `Gone` if it left."""
        if self.gone.is_set():
            raise Gone
        if data:
            self.raw(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        await self._connection.writable.wait()

    def end(self) -> None:
        """Finish a chunked body; nothing to do for one with a length."""
        if self._chunked:
            self.raw(b"0\r\n\r\n")

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._connection.write(data)

    def reset(self) -> None:
        """Cut the connection with a TCP reset."""
        self._connection.reset()

    def close(self) -> None:
        """Close the connection after what was written, without a word in the head."""
        self._connection.close()

    async def answer(
        self, status: int, body: bytes, content_type: str, *more: tuple[str, str]
    ) -> None:
        """Write a whole response."""
        self.start(status, (("content-type", content_type), *more), len(body))
        await self.send(body)


Answer = Callable[[Request, Reply], Awaitable[None]]


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """A response head, blank line included."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class _Connection(asyncio.Protocol):
    """One client connection: parse, queue, answer in order."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.WriteTransport | None = None
        self._requests: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._headers: list[tuple[str, str]] = []
        self._url, self._body, self._began = b"", bytearray(), 0.0
        self.gone = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._listener.connections.add(self)
        if not self._listener.up:  # accepted by the loop just before the listener stopped
            self.reset()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.gone.set()
        self.writable.set()
        self._listener.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.write(head(400, (("connection", "close"), ("content-length", "0"))))
            self.close()

    # what httptools calls

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", [], bytearray()
        self._began = self._listener.clock()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if ("expect", "100-continue") in self._headers:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        method, target = self._parser.get_method().decode("ascii"), self._url.decode("latin-1")
        body = bytes(self._body)
        self._requests.append(Request(method, target, tuple(self._headers), body, self._began))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())
            self._listener.tasks.add(self._task)
            self._task.add_done_callback(self._listener.tasks.discard)

    # ours

    async def _serve(self) -> None:
        while self._requests and not self.gone.is_set():
            request = self._requests.popleft()
            try:
                await self._listener.answer(request, Reply(self))
            except Gone:
                break
            if request.header("connection") == "close":
                self.close()
        self._task = None

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.gone.is_set():
            self._transport.write(data)

    def reset(self) -> None:
        if self._transport is None or self.gone.is_set():
            return
        sock = self._transport.get_extra_info("socket")
        # Linger on, zero seconds: the kernel sends RST instead of FIN and drops what is unsent.
        # Under TLS the socket is gone already when the client has closed.
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.gone.set()
        self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Noted(Protocol):
    """What is written down of a request."""

    outcome: str
    status: int
    ended: float | None


class Started(ABC):
    """What runs within `async with`."""

    @abstractmethod
    async def start(self) -> None:
        """Begin."""

    @abstractmethod
    async def close(self) -> None:
        """Stop for good."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.close()


class Listener:
    """A port that answers requests with `answer`, and can refuse connections and come back.

    While down it keeps its port bound without listening, so connects are refused and nobody else
    gets the port.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.answer, self.clock = answer, clock
        self.host, self.port = host, port
        self.connections: set[_Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._tls = tls
        self._bound: socket.socket | None = None
        self._listening: socket.socket | None = None

    @property
    def url(self) -> str:
        """Base URL without a trailing slash."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def up(self) -> bool:
        """Whether it accepts connections."""
        return self._listening is not None

    @contextmanager
    def noting(self, call: Noted, reply: Reply) -> Iterator[None]:
        """Note in `call` how its request ended, also where its client left or this was stopped."""
        try:
            yield
        except (asyncio.CancelledError, ConnectionError) as error:
            call.outcome = "gone" if self.up else "killed"
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            call.status, call.ended = reply.status, self.clock()

    async def start(self) -> None:
        """Listen (again)."""
        if self._listening is None:
            sock = self._listening = self._bound or self._bind()
            self._bound = None
            sock.listen(1024)
            asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, sock)
            await asyncio.sleep(0)

    def stop(self) -> None:
        """Refuse connections and reset the open ones."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening.fileno())
            self._listening.close()
            self._listening = None
            self._bound = self._bind()
        for connection in list(self.connections):
            connection.reset()

    async def close(self) -> None:
        """Stop for good and give the port back."""
        self.stop()
        if self._bound is not None:
            self._bound.close()
            self._bound = None
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for _ in range(8):  # all connections are aborted; let the loop close their sockets
            await asyncio.sleep(0)

    def _accept(self, sock: socket.socket) -> None:
        """Take what waits. Not asyncio's server: closing that leaks connections it just took."""
        for _ in range(128):
            try:
                client, _ = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            client.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._welcome(client))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _welcome(self, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Connection(self), client, ssl=self._tls
            )
        except OSError:  # it left, or its TLS is not ours
            client.close()

    def _bind(self) -> socket.socket:
        # Named, or asyncio does not set TCP_NODELAY and every small write waits for an ACK.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((self.host, self.port))
        self.port = int(sock.getsockname()[1])
        return sock
