"""What passes the transport seam: one request, one answer, and how far a request got.

The failure contract needs to know, of every failed attempt, whether the endpoint may have
begun to work. So each error carries a `Fate`, and an unsure fate is `UNKNOWN`, never `NOT_SENT`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, Self
from urllib.parse import urlsplit

from router.frozen import frozen

Headers = tuple[tuple[bytes, bytes], ...]
Clock = Callable[[], float]

_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|[0-9a-f:.]+")


class Fate(enum.Enum):
    """How far a request got at its endpoint."""

    NOT_SENT = "not_sent"  # no byte of it left this process
    PARTLY_SENT = "partly_sent"  # some bytes left, its end did not: it can't have been run
    REFUSED = "refused"  # the endpoint answered that it did not do it
    UNKNOWN = "unknown"  # it was written and may have been run


class AttemptFailed(Exception):
    """An attempt at an endpoint that gave no answer to pass on.

    `code` is stable and safe to log; the message names host and port only, never a path, a
    header or a body, because each can hold a key or a prompt. `detail` is as stable, of few words,
    where there is more to tell. `call_id` is the endpoint's own id of the call, where its answer
    got as far as telling one. `hurried` says that the request's own deadline ended it, or a limit
    of ours: nothing is known of the endpoint then.
    """

    code = "failed"
    detail = ""
    hurried = False

    def __init__(self, message: str, fate: Fate) -> None:
        super().__init__(message)
        self.fate = fate
        self.call_id: str | None = None

    @property
    def told(self) -> str:
        """The code, with its detail where there is one."""
        return f"{self.code}:{self.detail}" if self.detail else self.code

    def again(self) -> Self:
        """The same error, to be raised by who keeps this one.

        What was raised holds the frames that it came through, and they hold who keeps it: until
        the collector of cycles comes, with everything that a request and its answer had.
        """
        made = type(self).__new__(type(self), *self.args)
        made.__dict__.update(self.__dict__)
        made.__cause__ = self.__cause__
        return made


class TransportError(AttemptFailed):
    """A request that got no whole answer on the wire."""

    code = "transport"


class ConnectFailed(TransportError):
    """No connection was made. `reason`: `dns`, `refused`, `tls`, `timeout`, `full`, `closed`."""

    code = "connect_failed"

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message, Fate.NOT_SENT)
        self.reason = reason


class TlsFailed(ConnectFailed):
    """Somebody listens, but TLS with them failed. `detail`:

    `expired`, `not_yet_valid`, `unknown_authority`, `wrong_name`; `bad_certificate`, refused for
    anything else; `handshake`, where it did not get as far as a certificate.
    """

    code = "tls_failed"

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message, "tls")
        self.detail = detail


class NoRoomHere(TransportError):
    """This process has no file descriptor or memory left for a connection; that says nothing of
    the endpoint."""

    code = "no_room_here"
    hurried = True

    def __init__(self, message: str) -> None:
        super().__init__(message, Fate.NOT_SENT)


class ConnectionLost(TransportError):
    """The connection ended before the answer did.

    `stale` says that it had served an earlier request and gave no byte of an answer, so that the
    peer most likely closed an idle connection.
    """

    code = "connection_lost"

    def __init__(self, message: str, fate: Fate, *, stale: bool = False) -> None:
        super().__init__(message, fate)
        self.stale = stale


class AnswerTimeout(TransportError):
    """No byte of an answer came in time."""

    code = "timeout"


class GarbledAnswer(TransportError):
    """The bytes that came are not the HTTP answer to one request."""

    code = "garbled"


class AnswerTooLarge(TransportError):
    """The head or the body of an answer is above its limit."""

    code = "too_large"


class Aborted(TransportError):
    """The answer was given up on this side, by `abort`."""

    code = "aborted"


class UnsafeRequest(ValueError):
    """A request that would not mean on the wire what it says: a bug here, nothing was sent."""


@dataclass(frozen=True, slots=True)
class Tls:
    """What differs from the usual in one endpoint's TLS. Contents, not paths: with other
    authorities it is another origin, so nothing is sent over a connection made under the old ones.

    `ca`: PEM text of the only authorities that count, instead of the system's. `name`: what a
    certificate must prove, where replicas are found by address; the URL's host without it.
    `identity`: PEM text of our own key and certificate, for endpoints that ask for one.
    """

    ca: str | None = field(default=None, repr=False)
    name: str | None = None
    identity: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an endpoint listens: the only host that a request to it can reach."""

    scheme: str
    host: str
    port: int
    tls: Tls | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        # It is looked up by several times for every request.
        return self._hash

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.scheme, self.host, self.port, self.tls)))
        if self.scheme not in ("http", "https"):
            raise ValueError(f"scheme `{self.scheme}` is not `http` or `https`")
        if not _HOST.fullmatch(self.host):
            raise ValueError(f"`{self.host}` is not a lower-case host name or address")
        if not 0 < self.port < 65536:
            raise ValueError(f"port `{self.port}` is not between 1 and 65535")

    @classmethod
    def parse(cls, url: str, tls: Tls | None = None) -> Origin:
        """The origin of `scheme://host[:port][/...]`. Raises ValueError for user names and such."""
        if not url.isprintable() or " " in url:
            raise ValueError("an endpoint's url holds a blank or a control character")
        if not url.isascii():
            raise ValueError(
                "an endpoint's url is not ascii: write its name as `xn--…`, its path with `%`"
            )
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ValueError("an endpoint's url holds a user name: give credentials by reference")
        port = parts.port if parts.port is not None else {"https": 443}.get(parts.scheme, 80)
        return cls(parts.scheme, (parts.hostname or "").lower(), port, tls)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@frozen
class OutboundRequest:
    """One request to one endpoint.

    `target` is the raw path and query, starting with `/`. `host`, `content-length` and
    `connection` come from the transport. `replay_safe` says that running it twice does no harm
    (stateless inference on a self-operated endpoint): only then is it written again after a
    pooled connection turned out to be stale. The last `own` headers are this request's alone. What
    may hold a key or a prompt stays out of `repr`.
    """

    origin: Origin
    method: str
    target: str = field(repr=False)
    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    replay_safe: bool = False
    own: int = 1


@frozen
class Timeouts:
    """How long one attempt may take. `deadline` is loop time and bounds everything.

    `connect` (seconds) covers name, TCP and TLS; `first_byte` (seconds) runs from the moment that
    the request is handed to the connection to the head of the answer.
    """

    deadline: float
    connect: float = 5.0
    first_byte: float = float("inf")


class OutboundResponse(Protocol):
    """An answer whose head has come. Header names are lower case."""

    @property
    def status(self) -> int:
        """The final status, 200 to 599."""
        ...

    @property
    def headers(self) -> Headers:
        """The headers in their order, names in lower case."""
        ...

    async def chunk(self, until: float) -> bytes:
        """The next bytes of the body, `b""` at its clean end.

        Raises AnswerTimeout when none came by `until` (loop time) or by the deadline, and
        ConnectionLost, GarbledAnswer or Aborted. After an error the connection is gone.
        """
        ...

    def abort(self) -> None:
        """Give the answer up: the endpoint sees a closed connection at once. Idempotent."""
        ...


class Pushing:
    """An answer that also hands its bytes over by itself, in the turn in which they come."""

    __slots__ = ()

    async def push(self, take: Callable[[bytes], bool], idle: float, clock: Clock) -> bool:
        """Give all further bytes to `take` until it says no, or the body ends.

        `idle` is the most seconds between bytes, `clock` gives loop time. True at the clean end.
        Raises as `chunk` does, and what `take` raises.
        """
        raise NotImplementedError

    def unheard(self) -> None:
        """Said by `take`: these bytes don't count, the time since those before them goes on."""
        raise NotImplementedError


class Transport(Protocol):
    """The one seam to the outside: the simulated world stands behind it too."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """Send one request and return at the head of its answer.

        Raises TransportError. Cancelling it closes the connection.
        """
        ...


def header(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a header, by lower-case name."""
    for key, value in headers:
        if key == name:
            return value
    return None


@lru_cache(256)
def media_type_of(content_type: bytes | None) -> bytes:
    """What a `content-type` names, in lower case and without parameters; empty for none."""
    return (content_type or b"").split(b";")[0].strip().lower()


async def read_body(response: OutboundResponse, limit: int, until: float) -> bytes:
    """The whole body, at most `limit` bytes. Raises TransportError; aborts on any error."""
    try:
        declared = header(response.headers, b"content-length") or b""
        whole = int(declared) if declared.isdigit() else -1
        if whole > limit:
            raise AnswerTooLarge(f"the answer is above {limit} bytes", Fate.UNKNOWN)
        parts: list[bytes] = []
        size = 0
        while part := await response.chunk(until):
            if len(part) == whole and not parts:
                return part  # as nearly all come
            parts.append(part)
            size += len(part)
            if size == whole:
                break
            if size > limit:
                raise AnswerTooLarge(f"the answer is above {limit} bytes", Fate.UNKNOWN)
    except BaseException:
        response.abort()
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)
