"""Step 2, admit: own limits of the key, the body's size, one parse.

Whatever is reserved here is given back when the request ends, by `Lease.close`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import orjson

from router.capacity.load import Held
from router.capacity.quotas import Reservation
from router.errors import RequestError
from router.providers.bodies import refuse_duplicates

if TYPE_CHECKING:
    from router.inbound.idempotency import Once

ELSEWHERE: Final = 1 << 31
"""No limit here: the key's own is counted with its others, see `Quotas`."""
_MAGIC: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
"""How gzip, zstd and zlib begin; nothing tells of brotli."""
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Concurrency:
    """Open requests per key, exact within one process.

    `limit` is for keys without one of their own; of several workers each allows its `share` of
    every limit, one request at least.
    """

    __slots__ = ("_open", "limit", "share")

    def __init__(self, limit: int, share: float = 1.0) -> None:
        self.limit = limit
        self.share = share
        self._open: dict[str, int] = {}

    def enter(self, key: str, limit: int | None) -> Lease:
        """Take a place for one request.

        Raises:
            RequestError: the key has as many open requests as it may.
        """
        allowed = self.limit if limit is None else limit
        if self.share < 1:
            allowed = max(1, int(allowed * self.share))
        count = self._open.get(key, 0)
        if count >= allowed:
            raise RequestError(
                "concurrency_limit",
                f"key `{key}` has {count} requests open, its limit; wait for one to end",
                retry_after=1.0,
            )
        self._open[key] = count + 1
        return Lease(self, key)

    def leave(self, key: str) -> None:
        """Give a place back."""
        count = self._open[key] - 1
        if count:
            self._open[key] = count
        else:
            del self._open[key]

    @property
    def total(self) -> int:
        """Requests open now, of all keys."""
        return sum(self._open.values())


class Lease:
    """One request's place, what it holds of limits, and its place at a replica.

    Closing it twice gives it back once. `tokens` are what it is expected to cost, 0 before that
    is known; `once` is what it holds of its idempotency key.
    """

    __slots__ = ("_key", "_limits", "_place", "once", "reservation", "tokens")

    def __init__(self, limits: Concurrency, key: str) -> None:
        self._limits: Concurrency | None = limits
        self._key = key
        self.reservation: Reservation | None = None
        self.once: Once | None = None
        self.tokens = 0
        self._place: Held | None = None

    def hold(self, place: Held | None, tokens: int) -> None:
        """Keep a place at a replica, of so many tokens, until it is taken or the request ends."""
        if self._place is not None:
            self._place.close()
        self._place, self.tokens = place, tokens

    @property
    def replica(self) -> str | None:
        """Where a place is kept."""
        return None if self._place is None else self._place.key

    @property
    def elsewhere(self) -> int:
        """Prompt tokens that another endpoint is to compute before the place is used."""
        return 0 if self._place is None else self._place.elsewhere

    def taken(self, replica: str) -> Held | None:
        """The place, if it is at this replica; one elsewhere is given back."""
        place, self._place = self._place, None
        if place is not None and place.key != replica:
            place.close()
            return None
        return place

    def close(self) -> None:
        """Give the place back."""
        limits, self._limits = self._limits, None
        if limits is not None:
            limits.leave(self._key)
        if self._place is not None:
            self._place.close()
        if self.reservation is not None:
            self.reservation.close()
        if self.once is not None:
            self.once.close()


def refuse_coded(coding: bytes) -> None:
    """A body that the head says is compressed is never unpacked here: its size would be unknown.

    Raises:
        RequestError: `content-encoding` names any coding but `identity`.
    """
    if coding.strip().lower() not in (b"", b"identity"):
        raise _packed("`content-encoding` must be left out or `identity`")


def _packed(why: str) -> RequestError:
    message = f"a compressed body is not read, {why}; send the JSON itself, in UTF-8"
    return RequestError("unsupported_media_type", message, param="content-encoding")


def _unreadable(raw: bytes, error: orjson.JSONDecodeError) -> RequestError:
    """What to do about a body that is no JSON. Holds none of its text."""
    if raw.startswith(_MAGIC):
        return _packed("whatever its headers say")
    if raw.startswith(_MARKS):
        said = "begins with a byte order mark; send it without, in UTF-8"
    elif b"\0" in raw[:4]:
        said = "is no UTF-8, more like UTF-16 or UTF-32; send UTF-8"
    elif "surrogate" in error.msg:
        place = f"at line {error.lineno} column {error.colno}"
        said = f"holds half of a character, {place}; cut texts between characters"
    else:
        said = f"is no valid JSON, at line {error.lineno} column {error.colno}"
    return RequestError("invalid_json", f"the body {said}")


def parse(raw: bytes) -> Mapping[str, object]:
    """The body as a JSON object: the one parse of a request.

    Raises:
        RequestError: no JSON, no UTF-8, too deep, not an object, or an object in it that has
            one key twice: what is decided on must be what every parser after us reads. The
            parser's words about the place of the fault hold none of the body's text.
    """
    if not raw:
        raise RequestError("invalid_json", "the body is empty; send a JSON object")
    try:
        body: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _unreadable(raw, error) from None
    if not isinstance(body, dict):
        raise RequestError("invalid_request", "the body must be a JSON object")
    refuse_duplicates(raw, body)
    return body


def require(body: Mapping[str, object], name: str, kind: type, what: str) -> object:
    """A parameter that must be there and of one type.

    Raises:
        RequestError: missing, or of another type; names the parameter.
    """
    value = body.get(name)
    if value is None:
        raise RequestError("invalid_request", f"`{name}` is missing; it must be {what}", param=name)
    if not isinstance(value, kind):
        raise RequestError("invalid_request", f"`{name}` must be {what}", param=name)
    return value


def optional_flag(body: Mapping[str, object], name: str) -> bool:
    """A parameter that may be absent or null, else true or false.

    Raises:
        RequestError: of another type.
    """
    value = body.get(name)
    if value is None or value is False:
        return False
    if value is True:
        return True
    raise RequestError("invalid_request", f"`{name}` must be true or false", param=name)
