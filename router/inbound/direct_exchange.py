"""The exchange of the direct adapter: one request on one connection of uvicorn's.

`DirectExchange` stands where uvicorn keeps its cycle; `router.inbound.direct` makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from router.errors import ClientGone
from router.inbound.exchange import Headers, Lines, Prompt, RequestHead, Route, lines, too_large

if TYPE_CHECKING:
    from router.inbound.direct import Direct

_BODYLESS: Final = frozenset({204, 304})
_HIGH_WATER: Final = 1 << 16
_CLOSE: Final = b"connection: close\r\n"


class DirectExchange(Prompt):
    """One request on one connection. See `Exchange`; the other members are uvicorn's."""

    __slots__ = (
        "_callback", "_chunked", "_door", "_expects", "_parts", "_route", "_size",
        "_stuck", "_waiter", "gone", "head", "keep_alive", "more_body", "old", "response_complete",
        "response_started",
    )  # fmt: skip

    def __init__(
        self, door: Direct, head: RequestHead, route: Route, keep_alive: bool, expects: bool,
        old: bool = False, body: bytes | None = None,
    ) -> None:  # fmt: skip
        self.head = head
        self.old = old
        self.keep_alive = keep_alive
        self.more_body = body is None
        self.response_started = self.response_complete = self.gone = False
        self._door = door
        self._route = route
        self._parts = [] if body is None else [body]
        self._size = 0 if body is None else len(body)
        if self._size > _HIGH_WATER:
            door.flow.pause_reading()
        self._chunked = False
        self._expects = expects
        self._stuck = False
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
            if self._stuck:
                door.transport.abort()  # waited for long enough: it may never take it
            elif not self.response_complete and not self.gone:
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
        checked, named, last = lines(headers), dict(headers), self._last()
        if named.get(b"connection", b"").lower() == b"close":
            self.keep_alive, last = False, b""
        self._start(status, checked, last, b"content-length" in named, b"")

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        """See `Prompt`."""
        self._start(status, head, self._last(), sized=False, first=first)
        return not self._door.flow.write_paused

    def _last(self) -> bytes:
        """A head's last line, where no other request is read here. Nor is one by whose client the
        body was held back: nobody could tell whether that comes next, or another request."""
        if self._expects and self.more_body and not self._size:
            self.keep_alive = False
        return b"" if self.keep_alive else _CLOSE

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
        parts = (STATUS_LINE[status], door.constant(), head, self._last(), len(body), body)
        door.transport.write(b"%b%b%b%bcontent-length: %d\r\n\r\n%b" % parts)
        self._complete()
        return not door.flow.write_paused

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        if not self.put(data):
            await self.drained()

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
            self._stuck = True
            await self._door.flow.drain()
            self._stuck = False

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
