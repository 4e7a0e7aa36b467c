"""One request and its answer, as inference routes see them, whatever server is in front.

Routes are written against `Exchange`. `AsgiExchange` puts it on any ASGI server; an adapter
nearer to the socket can stand beside it. Nothing here buffers an answer, and no header can break
out of its line.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import Any, Final, Protocol

from router.errors import ClientGone, RequestError
from router.frozen import frozen

Headers = Sequence[tuple[bytes, bytes]]
# The ASGI specification's own types: its messages are open dictionaries.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

OWN: Final = b"x-domicile-"
"""What the names of headers between clients and this router begin with."""

_ALIKE: Final = (OWN[:-1], b"x_domicile")
"""What they are mistaken for: gateways and CGI write `_` for `-`. See `said.attributes_in`."""
_NONE: Final[frozenset[bytes]] = frozenset()
_NAMES = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_BREAKS = re.compile(rb"[\r\n\0]")


@frozen
class RequestHead:
    """Method, decoded path, raw query string, and headers with lower-case names in order.

    `get` gives the first value of a header by its name, or `None`; `own` are the headers that
    are meant for this router, as they came; `repeated` the names that stand there twice.
    """

    method: str
    path: str
    query: bytes
    headers: Headers
    get: Callable[[bytes], bytes | None] = field(init=False, repr=False, compare=False)
    own: Headers = field(init=False, repr=False, compare=False)
    repeated: frozenset[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked for by every step that reads a header: looked through once.
        pairs = self.headers
        named = dict(reversed(pairs))
        object.__setattr__(self, "get", named.get)
        object.__setattr__(self, "repeated", _repeated(pairs, len(named)))
        own = tuple([pair for pair in pairs if pair[0].startswith(_ALIKE)])
        object.__setattr__(self, "own", own)

    def all(self, name: bytes) -> list[bytes]:
        """Every value of a header, by lower-case name, in order."""
        return [value for key, value in self.headers if key == name]


def _repeated(pairs: Headers, names: int) -> frozenset[bytes]:
    if len(pairs) == names:
        return _NONE
    counted = Counter(name for name, _ in pairs)
    return frozenset([name for name, times in counted.items() if times > 1])


class Exchange(Protocol):
    """A request whose head has come, and the writer of its answer.

    The writing methods return when the client can take more. They never raise because a client
    left: `gone` and `on_gone` tell.
    """

    @property
    def head(self) -> RequestHead:
        """The request's head."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the client has left."""
        ...

    @property
    def started(self) -> bool:
        """Whether the status has been sent, so that it can't change any more."""
        ...

    def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes, at most `limit` bytes in all.

        Raises RequestError `body_too_large`, before reading if content-length says so, and
        ClientGone.
        """
        ...

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises as `chunks` does."""
        ...

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """Set what is called, once, when the client leaves; at once if it has. Gives the old one.

        Works from the moment that the body was read, with no answer begun.
        """
        ...

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers. Raises ValueError for a header that isn't one line."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of the body."""
        ...

    async def end(self, data: bytes = b"") -> None:
        """Send the last bytes."""
        ...


Route = Callable[[Exchange, str], Awaitable[None]]


class Inference(Protocol):
    """What the direct adapter serves: some paths, each by a callable over an exchange."""

    def route(self, path: bytes) -> Route | None:
        """Who answers a raw path; `None` leaves it to ASGI."""
        ...


class Prompt:
    """An exchange that also gives and takes bytes at once, without a turn of the event loop.

    A plain class: to ask for an abstract one is a call of Python, twice a request.
    """

    __slots__ = ()

    def here(self, limit: int) -> bytes | None:
        """The body, where it is here already in one piece; else `None`, and see `Exchange.body`."""
        raise NotImplementedError

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        """Send the head of an answer whose length is not known, and the first bytes of its body
        with it; as `Exchange.start`, and as `put`."""
        raise NotImplementedError

    def answer(self, status: int, head: Lines, body: bytes) -> bool:
        """Send a whole answer now, with `content-length`; as `put`."""
        raise NotImplementedError

    def put(self, data: bytes) -> bool:
        """Send bytes of the body now; whether the client can take more, else see `drained`."""
        raise NotImplementedError

    async def drained(self) -> None:
        """Wait until the client can take more, or has left."""
        raise NotImplementedError


class Lines(bytes):
    """Header lines as they go out, `name: value` with a line end each; see `lines`."""

    __slots__ = ()

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The headers."""
        return [(name, value) for name, _, value in
                [line.partition(b": ") for line in self.split(b"\r\n")[:-1]]]  # fmt: skip


def lines(headers: Headers) -> Lines:
    """Headers as lines. Raises ValueError as `check_headers` does."""
    check_headers(headers)
    return Lines(b"".join([b"%b: %b\r\n" % pair for pair in headers]))


def check_headers(headers: Headers) -> None:
    """Raises ValueError unless each name is a lower-case token and each value one line."""
    names = [name for name, _ in headers]
    if not all(names) or (names and not _NAMES.fullmatch(b"".join(names))):
        raise ValueError("an answer's header name holds a character that is not allowed there")
    if _BREAKS.search(b" ".join([value for _, value in headers])):
        raise ValueError("an answer's header value holds a line end or a null byte")


class while_connected:  # noqa: N801 - reads as a statement, like asyncio.timeout
    """Cancels what is awaited inside as soon as the client leaves, and raises ClientGone.

    For everything that waits before an answer exists: a queue, a connection, a first token. It
    works on the entering task, as `asyncio.timeout` does, and costs no task of its own.
    """

    __slots__ = ("_before", "_exchange", "_fired", "_outer", "_task")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._fired = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("`while_connected` needs a task")
        self._task = task
        if self._exchange.gone:
            raise ClientGone
        self._before = task.cancelling()
        self._outer = self._exchange.on_gone(self._leave)

    def _leave(self) -> None:
        self._fired = True
        self._task.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exchange.on_gone(self._outer)
        if not self._fired:
            return
        others = self._task.uncancel() > self._before
        if kind is asyncio.CancelledError:
            if not others:
                raise ClientGone from error
            return
        # The block ended in the same turn: take the cancellation that is still on its way, so
        # that it does not hit the next await. What the block made stays the caller's.
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if others:
                raise


class AsgiExchange:
    """`Exchange` on ASGI: pass it `scope`, `receive` and `send` of an `http` connection."""

    __slots__ = (
        "_ended",
        "_gone",
        "_on_gone",
        "_read",
        "_receive",
        "_send",
        "_started",
        "_watch",
        "head",
    )

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.head = RequestHead(
            scope["method"], scope["path"], scope["query_string"], scope["headers"]
        )
        self._receive = receive
        self._send = send
        self._gone = False
        self._read = False
        self._started = False
        self._ended = False
        self._on_gone: Callable[[], None] | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        """See `Exchange`."""
        return self._gone

    @property
    def started(self) -> bool:
        """See `Exchange`."""
        return self._started

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """See `Exchange`."""
        self._refuse_declared(limit)
        size = 0
        while not self._read:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._leave()
                raise ClientGone
            self._read = not message.get("more_body", False)
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise too_large(limit)
            if part:
                yield part

    def _refuse_declared(self, limit: int) -> None:
        declared = self.head.get(b"content-length") or b""
        if declared.isdigit() and int(declared) > limit:
            raise too_large(limit)

    async def body(self, limit: int) -> bytes:
        """See `Exchange`."""
        parts = [part async for part in self.chunks(limit)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """See `Exchange`. The first call starts one task that listens for the disconnect."""
        before, self._on_gone = self._on_gone, callback
        if callback is None:
            return before
        if self._gone:
            self._on_gone = None
            callback()
        elif self._watch is None and self._read:
            self._watch = asyncio.get_running_loop().create_task(self._listen())
        return before

    async def _listen(self) -> None:
        while not (self._gone or self._ended):
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._leave()

    def _leave(self) -> None:
        # After the last write a server reports every connection as disconnected.
        if self._ended:
            return
        self._gone = True
        callback, self._on_gone = self._on_gone, None
        if callback is not None:
            callback()

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        check_headers(headers)
        self._started = True
        await self._put({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        if data:
            await self._put({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """See `Exchange`."""
        self._ended = True
        await self._put({"type": "http.response.body", "body": data})
        self.close()

    async def _put(self, message: Message) -> None:
        if self._gone:
            return
        try:
            await self._send(message)
        except OSError:
            # ASGI 2.4: a server may say so in this way, before the disconnect message.
            self._leave()

    def close(self) -> None:
        """Stop listening for the disconnect. For the server's side, when a route is done."""
        watch, self._watch = self._watch, None
        self._on_gone = None
        if watch is not None:
            watch.cancel()


def too_large(limit: int) -> RequestError:
    """What is said of a body above the limit, in bytes."""
    return RequestError("body_too_large", f"the body is above {limit} bytes: send less")
