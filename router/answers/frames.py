"""What an endpoint's answer says, piece by piece, whatever it was written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from router.answers.words import NAMED, begins_with_limit, worded

_KIND = re.compile(r"[^A-Za-z0-9_.-]+")

# What vendors call an error, without its case and punctuation, and the status it amounts to: the
# first that is found in the name.
_STATUS_OF_NAME: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(names), status)
    for names, status in (
        (
            r"ratelimit|toomanyrequest|throttl|resourceexhausted|quota|capacity|concurrencylimit",
            429,
        ),
        (r"overload", 529),
        (r"timeout|deadlineexceeded", 504),
        (r"serviceunavailable|modelnotready|^unavailable$", 503),
        (r"invalidrequest|badrequest|invalidargument|validation|contextlength|unprocessable", 400),
        (r"authentication|unauthenticated|unauthorized", 401),
        (r"permission|accessdenied|forbidden", 403),
        (r"notfound", 404),
        (r"requesttoolarge", 413),
    )
)
_NOT_LETTERS = re.compile(r"[^a-z]+")
# Words of an error that tells nothing else. Only where they begin it: later ones may be a prompt's.
_SAID = re.compile(
    r"(?:(?:error|status|code|http|api|upstream|request|response|streaming|failed|with|from)\W*)*"
    r"\b([45]\d\d)\b",
    re.IGNORECASE,
)
NO_CALLS: Final = "no_calls"
"""A reason to stop that is a call, and no call."""
UNUSABLE: Final = frozenset(
    {NO_CALLS, "malformed_function_call", "malformed_model_output", "malformed_tool_use"}
)
"""What a model made of one request that can't be used: nothing against who runs it."""


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
    def read(cls, value: object, beside: Mapping[str, object] | None = None) -> StreamError:
        """From the `error` member of an answer, whatever it holds, and what stands `beside` it."""
        error = value if isinstance(value, Mapping) else {"message": str(value)}
        names = [one.get(key) for one in (error, beside or {}) for key in NAMED]
        called = [error.get(key) for key in ("type", "code", "status")]
        words = [name for name in called if isinstance(name, str) and name]
        kind = _KIND.sub("_", words[0])[:64] if words else "error"
        message = worded(error)[:2000]
        more = [_word(error.get(key)) for key in ("code", "param")]
        return cls(_status(names) or _said(message, told=bool(words)), kind, message, *more)


def _word(value: object) -> str:
    return value[:64] if isinstance(value, str) else ""


def _status(names: list[object]) -> int | None:
    """The first number that is a status of failure, else what the first known name means."""
    for name in names:
        if isinstance(name, str) and name.isdecimal() and len(name) == 3:
            name = int(name)
        if isinstance(name, int | float) and 400 <= name <= 599:
            return int(name)
    for name in names:
        if isinstance(name, str):
            bare = _NOT_LETTERS.sub("", name.lower())
            for known, status in _STATUS_OF_NAME:
                if known.search(bare):
                    return status
    return None


def _said(message: str, *, told: bool) -> int:
    """The status of an error that tells none; `told`: it has a name, though nobody knows it."""
    if (number := _SAID.match(message)) is not None:
        return int(number[1])
    return 429 if not told and begins_with_limit(message) else 500


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
