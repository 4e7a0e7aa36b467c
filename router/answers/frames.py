"""What an endpoint's answer says, piece by piece, whatever it was written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

_KIND = re.compile(r"[^A-Za-z0-9_.-]+")

_STATUS_OF_KIND: Mapping[str, int] = MappingProxyType(
    {
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "insufficient_quota": 429,
        "throttlingexception": 429,
        "too_many_requests": 429,
        "toomanyrequestserror": 429,
        "servicequotaexceededexception": 429,
        "overloaded_error": 529,
        "overloaded": 529,
        "serviceunavailableexception": 503,
        "service_unavailable": 503,
        "serviceunavailableerror": 503,
        "modelnotreadyexception": 503,
        "modeltimeoutexception": 504,
        "timeout_error": 504,
        "invalid_request_error": 400,
        "badrequesterror": 400,
        "bad_request_error": 400,
        "validationexception": 400,
        "context_length_exceeded": 400,
        "authentication_error": 401,
        "permission_error": 403,
        "accessdeniedexception": 403,
        "not_found_error": 404,
        "notfounderror": 404,
        "resourcenotfoundexception": 404,
        "request_too_large": 413,
    }
)


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error that an endpoint wrote into an answer of status 200.

    Attributes:
        status: the HTTP status that it amounts to, 400 to 599; 500 when it doesn't tell.
        kind: its type or code, cleaned and at most 64 characters: safe to log.
        message: the endpoint's own words, at most 2,000 characters: may repeat a prompt, so it
            goes into no log, metric or trace.
        code, param: its own, at most 64 characters as they came: to be looked up in lists only.
    """

    status: int
    kind: str
    message: str
    code: str = ""
    param: str = ""

    @classmethod
    def read(cls, value: object) -> StreamError:
        """From the `error` member of an answer, whatever it holds."""
        if not isinstance(value, Mapping):
            return cls(500, "error", str(value)[:2000])
        names = [value.get(key) for key in ("type", "code", "status")]
        words = [name for name in names if isinstance(name, str) and name]
        kind = _KIND.sub("_", words[0])[:64] if words else "error"
        message = str(value.get("message", ""))[:2000]
        more = [_word(value.get(key)) for key in ("code", "param")]
        return cls(_status(names), kind, message, *more)


def _word(value: object) -> str:
    return value[:64] if isinstance(value, str) else ""


def _status(names: list[object]) -> int:
    for name in names:
        if isinstance(name, str) and name.isdecimal() and len(name) == 3:
            name = int(name)
        if isinstance(name, int) and 400 <= name <= 599:
            return name
    for name in names:
        if isinstance(name, str) and name.lower() in _STATUS_OF_KIND:
            return _STATUS_OF_KIND[name.lower()]
    return 500


class Frame(NamedTuple):
    """Whole events for the client, and what they say.

    Attributes:
        data: bytes as the client gets them; may be empty for a frame that only tells.
        content: text, reasoning, a tool call or a refusal is in it.
        finish: which answers have their reason to stop in it, a bit each: the first is 1.
        done: the answer's last frame.
        usage: the token counts as the endpoint wrote them.
        error: an error that the endpoint wrote; `data` is then not passed on.
    """

    data: bytes
    content: bool = False
    finish: int = 0
    done: bool = False
    usage: Mapping[str, object] | None = None
    error: StreamError | None = None


class Decoder(Protocol):
    """Turns the bytes of one streamed answer into frames. Raises ValueError for other bytes."""

    @property
    def media_type(self) -> bytes:
        """What the endpoint's content-type must be: lower case, without parameters."""
        ...

    @property
    def malformed(self) -> int:
        """Events left out so far because they can't be read."""
        ...

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole after these bytes."""
        ...

    def like(self, data: bytes) -> bytes | None:
        """What these bytes are passed on as, if they are one event like those before: content and
        nothing else. `None` if they must be fed."""
        ...

    def finish(self) -> list[Frame]:
        """What is left at the clean end of the body."""
        ...


WholeDecoder = Callable[[bytes], Frame]
"""The whole body of an answer that was not asked for as a stream, as one frame.

Raises ValueError when it isn't such an answer.
"""
