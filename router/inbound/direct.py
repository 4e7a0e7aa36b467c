"""The direct adapter: `Exchange` on uvicorn's parser, without the ASGI cycle between them.

Inference requests skip scope, messages and two tasks' wake-ups; every other route takes the
ASGI way. `DirectExchange` stands where uvicorn keeps its cycle, so parsing, pipelining, keep-alive
and shutdown stay uvicorn's. Contract tests run both adapters through the same cases.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import ClassVar

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from router.inbound.backlog import Backlog
from router.inbound.crowded import Crowded
from router.inbound.direct_exchange import DirectExchange
from router.inbound.exchange import Inference, RequestHead, Route


class Direct(Crowded):
    """The door, with inference routes taken off the ASGI way."""

    inference: Inference
    backlog: Backlog | None = None
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
        if self.backlog is not None:
            self.backlog.look(self._another)
        self._idle_since = self.loop.time()
        self._look_later(self.timeout_keep_alive)

    def _another(self) -> Direct:
        """The protocol of one more connection of this listener."""
        return type(self)(self.config, self.server_state, self.app_state, self.loop)

    def on_message_begin(self) -> None:
        """A request begins. Its ASGI scope is made when it turns out to need one."""
        self._size = self._fields = self._since = self._excess = self._wasted = 0
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
                self.one_meaning()
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
        self._answer(
            DirectExchange(self, head, self._route, keep_alive=True, expects=False, body=body)
        )

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
        cycle: object = self.cycle
        if type(cycle) is not DirectExchange:  # which says so in its head
            self.part()
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
            self._excess -= 3 * len(body)
            cycle.add(body)
            return
        super().on_body(body)


def direct(inference: Inference, backlog: Backlog | None = None) -> type[Direct]:
    """uvicorn makes its protocols itself, so the routes are bound to a class."""
    return type("BoundDirect", (Direct,), {"inference": inference, "backlog": backlog})
