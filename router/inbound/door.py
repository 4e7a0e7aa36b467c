"""The HTTP/1.1 parser in front of every route: what no route sees is refused here.

A request that is no HTTP, or whose head has no end, gets the same error shape as any other.
Nothing that came over the wire is repeated, and nothing unread is kept beyond fixed bounds.
"""

from __future__ import annotations

import re
from typing import Final

import httptools
import orjson
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from router.errors import RequestError

HEAD_LIMIT: Final = 64 << 10
"""Bytes of a request's line and headers together, and of a trailer or chunk head."""
FIELDS_LIMIT: Final = 256
"""Header lines of one request, trailers included."""
BEHIND: Final = 8
"""Requests behind the one that is being answered, of one connection, before reading stops."""
WASTE_LIMIT: Final = 64 << 20
"""Bytes of a body read and dropped after its request was refused, so that the client hears it."""

_BODIES: Final = frozenset({b"content-length", b"transfer-encoding"})
# RFC 3986, 3.2.2: a name, which may be empty, or an address, with or without a port. The parser
# leaves the spaces that may follow a value.
_HOST: Final = re.compile(
    rb"(?>\[[0-9A-Fa-f:.]++(?>%25[\w.~-]++)?\]|\[[vV][0-9A-Fa-f]++\.[\w.~!$&'()*+,;=:-]++\]"
    rb"|(?>[\w.~!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})*+)(?>:[0-9]*+)?[ \t]*+"
)
CHUNK: Final = 16
"""Bytes that one chunk may take beside what it holds, and as many again as that is twice; all that
a body has beyond is bounded by `HEAD_LIMIT`: extensions of chunks, which nothing here reads."""
_UPGRADE: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})


class HeadTooLarge(Exception):
    """A head above the limits; ends the connection."""


class Ambiguous(Exception):
    """A head that another server may read as another request; ends the connection."""


class Door(HttpToolsProtocol):
    """uvicorn's protocol with bounds, errors as JSON, and no trailer taken for a header."""

    _size = 0
    _fields = 0
    _since = 0
    _excess = 0
    _wasted = 0
    _in_head = False
    _in_body = False
    _too_large = False
    _declined = False
    _running: RequestResponseCycle | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left. uvicorn tells the newest request alone; the one that is being
        answered may be another, before it."""
        super().connection_lost(exc)
        running = self._running
        if running is not None and not (running.response_complete or running.disconnected):
            running.disconnected = True
            running.message_event.set()
        # A cycle knows its connection: kept by each other, both would wait for the collector.
        self.cycle = self._running = None  # type: ignore[assignment]  # as uvicorn begins
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        """Bytes came. A parser that reports nothing for long is holding an endless element."""
        self._unset_keepalive_if_required()
        self._since += len(data)
        self._excess += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._declined:
                self._decline(data[upgrade.args[0] :])
            elif any(name in _BODIES for name, _ in self.headers):
                self._refuse()
            return
        except httptools.HttpParserError:
            self._refuse()
            return
        self._excess = max(self._excess, 0)  # what one chunk holds pays for no later extension
        most = HEAD_LIMIT + len(data)
        if self._since > most or self._excess > most + self._size:
            self._too_large = True
            self._refuse()

    def declines(self) -> bool:
        """Whether the request whose head is whole asks for another protocol, and has a body.

        None is offered. Without a body it is answered as it stands. With one it is read anew: the
        parser has given the body up as belonging to the other protocol. Java's client asks for
        HTTP/2 with the first request of each connection. One behind another that is being answered
        is not: each would be read within the reading of the one before.
        """
        asks = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        cycle: RequestResponseCycle | None = self.cycle
        alone = cycle is None or cycle.response_complete
        self._declined = asks and alone and any(name in _BODIES for name, _ in self.headers)
        return self._declined

    def _decline(self, rest: bytes) -> None:
        """Read a request as if it had asked for no other protocol; `rest` follows its head."""
        version = self.parser.get_http_version().encode("ascii")
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % pair for pair in self.headers if pair[0] not in _UPGRADE]
        if any(n == b"connection" and b"close" in v.lower() for n, v in self.headers):
            lines.append(b"connection: close")
        self._declined = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        Door.data_received(self, b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._size = self._fields = self._since = self._excess = self._wasted = 0
        self._in_head = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the request line."""
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the head it is a trailer, which nothing here reads."""
        # As uvicorn's, and `_grow`: one call a header, not three.
        self._fields += 1
        self._since = 0
        self._size += len(name) + len(value)
        if self._size > HEAD_LIMIT or self._fields > FIELDS_LIMIT:
            self._grow(0)
        if not self._in_head:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self.declines():
            return
        self.one_meaning()
        self._in_head, self._in_body = False, True
        super().on_headers_complete()
        if self.pipeline:
            self.read_on()

    def one_meaning(self) -> None:
        """Whether every server before this one takes the request for the same (RFC 9112, 3.2, 6.1):
        it names one host, by what can be one, and its body's end is not told by codings that old or
        other servers pass by. An empty name is one (3.3): nothing is chosen by it here. Raises
        Ambiguous, which the parser tells as an error of its own."""
        hosts = codings = 0
        for name, value in self.headers:
            if name == b"host":
                hosts += 1 if _HOST.fullmatch(value) else 2
            elif name == b"transfer-encoding":
                codings += 1 if value.strip().lower() == b"chunked" else 2
        old = self.parser.get_http_version() == "1.0"
        if hosts > 1 or not (hosts or old) or codings > 1 or (codings and old):
            raise Ambiguous

    def read_on(self) -> None:
        """A request came behind one that is being answered. uvicorn stops reading then; but only
        who reads hears that the client has left, so that is put off until more wait."""
        if len(self.pipeline) < BEHIND:
            self.flow.resume_reading()
        else:
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """An answer has ended."""
        self.part()
        super().on_response_complete()

    def part(self) -> None:
        """Close where a body was held back until it is asked for, and never was: what comes next
        may be the body, or another request that must not be taken for it."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or not self.expect_100_continue:
            return
        if cycle.response_complete and cycle.more_body:
            self.transport.close()

    def on_chunk_header(self) -> None:
        """A chunk of the body begins."""
        self._excess -= CHUNK

    def on_body(self, body: bytes) -> None:
        """A piece of the body; what comes after the answer is dropped, up to a bound."""
        self._since = 0
        self._excess -= 3 * len(body)
        if self.cycle.response_complete:
            self._wasted += len(body)
            if self._wasted > WASTE_LIMIT:
                self.transport.close()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._declined:
            return
        self._since = 0
        self._in_body = False
        super().on_message_complete()

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > HEAD_LIMIT or self._fields > FIELDS_LIMIT:
            self._too_large = True
            raise HeadTooLarge

    def _refuse(self) -> None:
        """Say so once, then close; never in the middle of an answer that has begun."""
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        alone = cycle is None or (cycle.response_complete and not self._in_body)
        if cycle is not None and not (alone or self.pipeline or cycle.response_started):
            alone = cycle.disconnected = True
            cycle.message_event.set()
        if alone:
            self.transport.write(refusal(too_large=self._too_large))
        self.transport.close()


def refusal(*, too_large: bool) -> bytes:
    """The whole answer to bytes that are no acceptable request."""
    if too_large:
        error = RequestError(
            "headers_too_large",
            f"the request's head is above {HEAD_LIMIT} bytes or {FIELDS_LIMIT} headers: send less",
        )
    else:
        error = RequestError("invalid_http", "this is no valid HTTP/1.1 request")
    return last_answer(error)


def last_answer(error: RequestError) -> bytes:
    """A whole answer after which the connection is closed."""
    body = orjson.dumps(error.body())
    again = b"x-should-retry: false\r\n"
    if error.retry_after is not None:
        again = b"x-should-retry: true\r\nretry-after: %d\r\n" % error.retry_after
    head = b"content-type: application/json\r\ncontent-length: %d\r\n%bconnection: close\r\n\r\n"
    return STATUS_LINE[error.status] + head % (len(body), again) + body
