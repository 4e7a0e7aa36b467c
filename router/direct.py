"""The direct adapter: `Exchange` on uvicorn's parser, without the ASGI cycle between them.

Inference requests skip scope, messages and two tasks' wake-ups; every other route takes the
ASGI way. `DirectExchange` stands where uvicorn keeps its cycle, so parsing, pipelining, keep-alive
and shutdown stay uvicorn's. Contract tests run both adapters through the same cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import ClassVar, Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from router.crowded import Crowded
from router.errors import ClientGone
from router.exchange import Headers, Inference, Lines, Prompt, RequestHead, Route, lines, too_large

_BODYLESS: Final = frozenset({204, 304})
_HIGH_WATER: Final = 1 << 16
_CLOSE: Final = b"connection: close\r\n"


class DirectExchange(Prompt):
    """One request on one connection. See `Exchange`; the other members are uvicorn's."""

    __slots__ = (
        "_callback", "_chunked", "_door", "_expects", "_parts", "_route", "_size",
        "_waiter", "gone", "head", "keep_alive", "more_body", "old", "response_complete",
        "response_started",
    )  # fmt: skip

    def __init__(
        self, door: Direct, head: RequestHead, route: Route, keep_alive: bool, expects: bool,
        old: bool = False,
    ) -> None:  # fmt: skip
        self.head = head
        self.old = old
        self.keep_alive = keep_alive
        self.more_body = True
        self.response_started = self.response_complete = self.gone = False
        self._door = door
        self._route = route
        self._parts: list[bytes] = []
        self._size = 0
        self._chunked = False
        self._expects = expects
        self._waiter: asyncio.Future[None] | None = None
        self._callback: Callable[[], None] | None = None

    # -- what uvicorn's protocol does with a cycle -----------------------------------------

    @property
    def message_event(self) -> DirectExchange:
        """Something happened: `set` wakes whoever waits for the body."""
        return self

    def set(self) -> None:
        """See `message_event`."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    @property
    def disconnected(self) -> bool:
        """Whether the client has left."""
        return self.gone

    @disconnected.setter
    def disconnected(self, value: bool) -> None:
        self.gone = value
        callback, self._callback = self._callback, None
        if value and callback is not None:
            callback()

    def add(self, body: bytes) -> None:
        """A piece of the body."""
        self._parts.append(body)
        self._size += len(body)
        if self._size > _HIGH_WATER:
            self._door.flow.pause_reading()
        if self._waiter is not None:
            self.set()

    def whole(self) -> None:
        """The request is whole."""
        self.more_body = False
        if self._waiter is not None:
            self.set()

    async def run_asgi(self, app: object) -> None:
        """Answer, by the route and not by the application."""
        door = self._door
        try:
            await self._route(self, self.head.method)
            if not self.response_complete and not self.gone:
                door.transport.close()
        except BaseException:
            door.transport.close()
            raise
        finally:
            self._callback = None
            if (task := asyncio.current_task(door.loop)) is not None:
                door.tasks.discard(task)

    # -- Exchange --------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        """See `Exchange`."""
        return self.response_started

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """See `Exchange`."""
        size = 0
        async for part in self._read(limit):
            size += len(part)
            if size > limit:
                raise too_large(limit)
            yield part

    def here(self, limit: int) -> bytes | None:
        """See `Prompt`."""
        if not self.more_body and len(self._parts) == 1 and self._size <= limit:
            return self._parts.pop()
        return None

    async def body(self, limit: int) -> bytes:
        """See `Exchange`."""
        whole = self.here(limit)
        if whole is not None:
            return whole
        parts = [part async for part in self.chunks(limit)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _read(self, limit: int) -> AsyncIterator[bytes]:
        declared = self.head.get(b"content-length") or b""
        if declared.isdigit() and int(declared) > limit:
            raise too_large(limit)
        if self._expects:
            self._expects = False
            self._door.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while True:
            parts, self._parts, self._size = self._parts, [], 0
            for part in parts:
                yield part
            if self.gone:
                raise ClientGone
            if not self.more_body and not self._parts:
                return
            if not self._parts:
                self._door.flow.resume_reading()
                self._waiter = self._door.loop.create_future()
                await self._waiter

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """See `Exchange`."""
        before, self._callback = self._callback, callback
        if callback is not None and self.gone:
            self._callback = None
            callback()
        return before

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        checked, named, last = lines(headers), dict(headers), b"" if self.keep_alive else _CLOSE
        if named.get(b"connection", b"").lower() == b"close":
            self.keep_alive, last = False, b""
        self._start(status, checked, last, b"content-length" in named, b"")

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        """See `Prompt`."""
        self._start(status, head, b"" if self.keep_alive else _CLOSE, sized=False, first=first)
        return not self._door.flow.write_paused

    def _start(self, status: int, head: Lines, last: bytes, sized: bool, first: bytes) -> None:
        self.response_started = True
        if self.gone:
            return
        door = self._door
        self._chunked = not (sized or self.old or status in _BODYLESS)  # HTTP/1.0 has none
        end = b"transfer-encoding: chunked\r\n\r\n" if self._chunked else b"\r\n"
        shown = STATUS_LINE[status] + door.constant() + head + last + end
        door.transport.write(shown + self._framed(first))

    def answer(self, status: int, head: Lines, body: bytes) -> bool:
        """See `Prompt`."""
        self.response_started = True
        if self.gone:
            return True
        door = self._door
        last = b"" if self.keep_alive else _CLOSE
        parts = (STATUS_LINE[status], door.constant(), head, last, len(body), body)
        door.transport.write(b"%b%b%b%bcontent-length: %d\r\n\r\n%b" % parts)
        self._complete()
        return not door.flow.write_paused

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        if not self.put(data):
            await self._door.flow.drain()

    def put(self, data: bytes) -> bool:
        """See `Prompt`."""
        if not data or self.gone:
            return True
        self._door.transport.write(self._framed(data))
        return not self._door.flow.write_paused

    def _framed(self, data: bytes) -> bytes:
        """Bytes of the body, as they go out."""
        return b"%x\r\n%b\r\n" % (len(data), data) if data and self._chunked else data

    async def drained(self) -> None:
        """See `Prompt`."""
        if self._door.flow.write_paused:
            await self._door.flow.drain()

    async def end(self, data: bytes = b"") -> None:
        """See `Exchange`."""
        if self.gone:
            return
        if last := self._framed(data) + (b"0\r\n\r\n" if self._chunked else b""):
            self._door.transport.write(last)
        self._complete()
        await self.drained()

    def _complete(self) -> None:
        self.response_complete = True
        self._callback = None
        if not self.keep_alive:
            self._door.transport.close()
        self._door.on_response_complete()


class Direct(Crowded):
    """The door, with inference routes taken off the ASGI way."""

    inference: Inference
    _idle_since = 0.0
    _constant: ClassVar[tuple[object, bytes]] = (None, b"")
    _route: Route

    def constant(self) -> bytes:
        """The header lines of every answer: uvicorn makes them anew each second, for the date."""
        named = self.server_state.default_headers
        known, written = self._constant
        if named is not known:
            written = b"".join([b"%b: %b\r\n" % pair for pair in named])
            Direct._constant = named, written  # for all connections: most have one stream
        return written

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; it has as long for its first request's head as for a later one's."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._look_later(self.timeout_keep_alive)

    def on_message_begin(self) -> None:
        """A request begins. Its ASGI scope is made when it turns out to need one."""
        self._size = self._fields = self._since = self._wasted = 0
        self._in_head, self._fresh = True, False
        self._begun += 1
        self.url, self.expect_100_continue, self.headers = b"", False, []

    def on_headers_complete(self) -> None:
        """The head is whole: who answers is known."""
        self._idle_since = inf
        if not self.parser.should_upgrade():
            path, query, route = self.url, b"", self.inference.route(self.url)
            if route is None:
                url = httptools.parse_url(path)
                path, query = url.path, url.query or b""
                route = self.inference.route(path)
            if route is not None:
                self._in_head, self._in_body = False, True
                self._begin(route, path, query)
                return
        url_, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url_, expects
        self.headers += headers
        super().on_headers_complete()

    def _begin(self, route: Route, path: bytes, query: bytes) -> None:
        parser = self.parser
        method = parser.get_method().decode("ascii")
        head = RequestHead(method, path.decode("ascii"), query, self.headers)
        old, expects = parser.get_http_version() == "1.0", self.expect_100_continue
        keep_alive, self._route = parser.should_keep_alive() and not old, route
        self._answer(DirectExchange(self, head, route, keep_alive, expects, old))

    def parsed(self) -> RequestHead | None:
        """See `Recalling`: one of an inference route, on a connection that is kept."""
        cycle: object = self.cycle
        return cycle.head if type(cycle) is DirectExchange and cycle.keep_alive else None

    def known(self, head: RequestHead, body: bytes | None) -> None:
        """See `Recalling`."""
        self._idle_since, self._wasted = inf, 0
        exchange = DirectExchange(self, head, self._route, keep_alive=True, expects=False)
        if body is not None:
            exchange.add(body)
            exchange.more_body = False
        self._answer(exchange)

    def _answer(self, exchange: DirectExchange) -> None:
        existing: RequestResponseCycle | None = self.cycle
        self.cycle = exchange  # type: ignore[assignment]  # by its shape, see the class
        if existing is None or existing.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.pipeline.appendleft((self.cycle, self.app))
            self.read_on()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """As uvicorn's, but without a turn of the loop to tell that the task has ended."""
        started: object = cycle
        if type(started) is not DirectExchange:
            super()._start_asgi_task(cycle, app)
            return
        self._running = cycle
        self.tasks.add(self.loop.create_task(cycle.run_asgi(app)))

    # One timer a connection, which looks again, in place of one a request. Bytes alone don't stop
    # it, a whole head does: who sends a byte now and then would hold its connection for ever.

    def _unset_keepalive_if_required(self) -> None:
        """Nothing: see above."""

    def on_response_complete(self) -> None:
        """An answer has ended: the next request begins, or the wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_later(self.timeout_keep_alive)

    def _look_later(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no request's head has come whole for long."""
        self.timeout_keep_alive_task = None
        if self.transport.is_closing() or self._idle_since == inf:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            self.transport.close()
        else:
            self._look_later(left)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client's side is closed."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def on_message_complete(self) -> None:
        """The request is whole."""
        cycle: object = self.cycle
        if type(cycle) is not DirectExchange:
            super().on_message_complete()
            return
        self._since = 0
        self._in_body, self._fresh = False, True
        if not cycle.response_complete:
            cycle.whole()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        cycle: object = self.cycle
        if type(cycle) is DirectExchange and not cycle.response_complete:
            self._since = 0
            cycle.add(body)
            return
        super().on_body(body)


def direct(inference: Inference) -> type[Direct]:
    """uvicorn makes its protocols itself, so the routes are bound to a class."""
    return type("BoundDirect", (Direct,), {"inference": inference})
