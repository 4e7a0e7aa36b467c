"""One HTTP/1.1 connection: writes a request, parses its answer, says whether it can be reused."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import cast

import httptools

from router.transport.messages import (
    AnswerTooLarge,
    ConnectionLost,
    Fate,
    GarbledAnswer,
    Headers,
    TransportError,
)
from router.transport.reply import HIGH_WATER, Reply

HEAD_LIMIT = 64 * 1024
# Below this size head and body go out in one write.
_SMALL = 64 * 1024
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class Connection(asyncio.Protocol):
    """Carries one request at a time.

    `on_free` is called when an answer has ended and another request may follow, `on_lost` once
    when the connection is gone. `until`: loop time after which it gets no further request.
    """

    def __init__(
        self,
        sock: socket.socket,
        on_free: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
        head_limit: int = HEAD_LIMIT,
    ) -> None:
        self.idle_since = 0.0
        self.until = float("inf")
        self.keep_alive_for = float("inf")
        self._sock = sock
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._on_free = on_free
        self._on_lost = on_lost
        self._head_limit = head_limit
        self._parser = httptools.HttpResponseParser(self)
        self._paused = False
        self._reply: Reply | None = None
        self._used = 0
        self._lost = False
        self._unsent = False
        self._poisoned = False
        self._reset()

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._reason = self._trailers = self._fed = 0
        self._head_done = self._complete = self._bodiless = self._until_close = False

    # the pool's side

    def start(self, reply: Reply, head: bytes, body: bytes, method: str) -> None:
        """Write a request; its answer goes to `reply`."""
        self._reset()
        self._reply = reply
        self._used += 1
        self._bodiless = method == "HEAD"
        if len(body) < _SMALL:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)

    @property
    def lost(self) -> bool:
        """Whether the connection is gone."""
        return self._lost

    def usable(self) -> bool:
        """Whether a request can be written. Looks for a close that the loop has not seen yet."""
        if self._lost or self._poisoned or self._transport.is_closing():
            return False
        # Both an end and unasked-for bytes make an idle connection unusable.
        return not self._readable.poll(0)

    def close(self) -> None:
        """Close an idle connection."""
        self._transport.close()

    # the reply's side

    def pause(self) -> None:
        """See `Line`."""
        if not self._lost:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """See `Line`."""
        if self._paused and not self._lost and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def cut(self) -> None:
        """See `Line`."""
        self._poisoned = True
        self._reply = None
        if not self._lost:
            self._transport.abort()

    def fate(self) -> Fate:
        """See `Line`; `PARTLY_SENT` only while bytes are known to be here still."""
        return Fate.PARTLY_SENT if self._unsent else Fate.UNKNOWN

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask to hear of every byte that can't leave, since a request's fate depends on it."""
        self._transport = cast(asyncio.Transport, transport)
        if transport.get_extra_info("sslcontext") is None:
            self._transport.set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        """Bytes stay behind. Under TLS that isn't exact, and an unsure fate is `UNKNOWN`."""
        self._unsent = self._transport.get_extra_info("sslcontext") is None

    def resume_writing(self) -> None:
        """The last byte went to the kernel."""
        self._unsent = False

    def data_received(self, data: bytes) -> None:
        """Parse; the connection is freed only after the whole read was looked at."""
        if self._reply is None:
            self.cut()
            return
        if not self._head_done:
            self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(GarbledAnswer("the endpoint switched protocols", Fate.UNKNOWN))
        except httptools.HttpParserError as error:
            self._fail(_cause(error))
        else:
            if self._complete:
                self._end()
            elif not self._head_done and self._fed > self._head_limit:
                # The parser keeps an unfinished header line to itself: all of it counts.
                self._fail(self._too_large())

    def eof_received(self) -> bool:
        """The endpoint closed its side: the end of an answer without a length, else a loss."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Settle what was under way."""
        self._lost = True
        if exc is not None and self._reply is not None:
            self._last_read()
        reply, self._reply = self._reply, None
        if reply is not None and not reply.done:
            if exc is None and self._head_done and self._until_close:
                reply.finish()
            else:
                reply.fail(self._loss())
        self._on_lost(self)
        del self._parser  # it keeps this connection

    def _last_read(self) -> None:
        """Take what came before the connection broke: an endpoint that refuses a request early may
        answer, and close on what is still being written. Under TLS nothing can be read any more."""
        if self._transport.get_extra_info("sslcontext") is not None:
            return
        try:
            data = self._sock.recv(HIGH_WATER)
        except OSError:
            return  # nothing came, or nothing is left of the socket
        if data:
            self.data_received(data)

    def _loss(self) -> ConnectionLost:
        nothing = not self._head_done and not self._fed
        when = "before its answer" if nothing else "within its answer"
        stale = nothing and self._used > 1
        return ConnectionLost(f"the endpoint closed {when}", self.fate(), stale=stale)

    # the parser's side

    def on_message_begin(self) -> None:
        """A second answer to one request poisons the connection."""
        if self._complete:
            self._poisoned = True

    def on_status(self, reason: bytes) -> None:
        """Counts towards the head."""
        self._reason += len(reason)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collects; trailers after the body are counted and dropped."""
        if not self._head_done:
            self._headers.append((name.lower(), value))
            return
        self._trailers += len(name) + len(value) + 4
        if self._trailers > self._head_limit:
            raise self._too_large()

    def _bounded(self) -> None:
        """Count a head that came with more bytes than a head may have."""
        fields = sum([len(name) + len(value) + 4 for name, value in self._headers])
        if self._reason + fields > self._head_limit:
            raise self._too_large()

    def _too_large(self) -> AnswerTooLarge:
        return AnswerTooLarge(f"the answer's head is above {self._head_limit} bytes", Fate.UNKNOWN)

    def on_headers_complete(self) -> None:
        """Hand the head over, unless it is an interim one."""
        status = self._parser.get_status_code()
        if self._fed > self._head_limit:
            self._bounded()
        if status < 100:
            raise GarbledAnswer(
                "the endpoint's answer has a status that there is not", Fate.UNKNOWN
            )
        if status < 200:
            self._headers = []
            return
        if self._complete or self._reply is None:
            return
        self._head_done = True
        headers: Headers = tuple(self._headers)
        named = dict(headers)
        self._until_close = _FRAMING.isdisjoint(named) and status not in (204, 304)
        self._reply.open(status, headers)
        if b"keep-alive" in named:
            self._read_keep_alive(named[b"keep-alive"])
        if self._bodiless:
            self._complete = self._poisoned = True

    def _read_keep_alive(self, value: bytes) -> None:
        _, _, seconds = value.partition(b"timeout=")
        digits = seconds.split(b",")[0].strip()
        if digits.isdigit():
            self.keep_alive_for = float(digits)

    def on_body(self, data: bytes) -> None:
        """Hand bytes over. An interim head has none: they would stand before the answer's own."""
        if not self._head_done and not self._complete:
            raise GarbledAnswer("the endpoint's interim answer has a body", Fate.UNKNOWN)
        if self._reply is not None and not self._complete:
            self._reply.feed(data)

    def on_message_complete(self) -> None:
        """Only marks the end: bytes after it in the same read may still poison the connection."""
        if self._head_done and not self._complete:
            self._complete = True
            if not self._parser.should_keep_alive():
                self._poisoned = True

    # endings

    def _end(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.finish()
        if self._poisoned or self._unsent or self._lost:
            self._poisoned = True
            if not self._lost:
                self._transport.abort()
            return
        if self._paused:
            self.resume()
        self._on_free(self)

    def _fail(self, error: TransportError) -> None:
        if self._complete:
            # The answer is whole; what follows it is not ours to judge, only to keep out.
            self._poisoned = True
            self._end()
            return
        reply = self._reply
        if reply is not None:
            reply.fail(error)
        self.cut()


def _cause(error: httptools.HttpParserError) -> TransportError:
    inner = error.__context__
    if isinstance(inner, TransportError):
        return inner
    return GarbledAnswer("the endpoint's bytes are not an http answer", Fate.UNKNOWN)
