"""When to come back, as the headers of an error say it, its members or its words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from router.answers.words import worded
from router.transport.messages import Headers, header

RETRY_CEILING = 3600.0
"""Seconds: the longest `retry-after` that is believed and told; health honours less of it."""

_REMAINING, _RESET = b"ratelimit-remaining", b"ratelimit-reset"  # also behind an `x-`
_AFTER = ((b"retry-after-ms", 1000.0), (b"x-ms-retry-after-ms", 1000.0), (b"retry-after", 1.0))
_UNIX = ((1e11, 1000.0), (1e8, 1.0))
"""A number that great is no wait: from when on it is a time, and its units a second."""
# `try again in 6m0s`, `retry after 59 seconds`, `(reset after 2m 13s)`, `available again in 7 s`.
_AGAIN = re.compile(
    r"\b(?:try|retry|wait|reset|available)\w*\b[^.\d]{0,24}(\d[\d.a-z ]{0,40})", re.IGNORECASE
)
_PART = (
    r"(\d+(?:\.\d+)?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)"
    r"(?![a-z])"
)
_SPAN = re.compile(_PART, re.IGNORECASE)
_SPANS = re.compile(rf"(?:{_PART} ?)+", re.IGNORECASE)
_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MEMBERS: Mapping[str, float] = {
    "retry_after_ms": 1000.0, "retryAfterMs": 1000.0, "retry_after": 1.0, "retryAfter": 1.0,
    "retry_after_seconds": 1.0, "retryAfterSeconds": 1.0, "resets_in_seconds": 1.0,
}  # fmt: skip
"""What tells it, and how much of that is a second."""


def retry_after(headers: Headers, now: float, ceiling: float = RETRY_CEILING) -> float | None:
    """Seconds to wait as the upstream told, within [0, ceiling]; `None` if it told nothing sane.

    `retry-after-ms`, and `retry-after` in seconds or as an HTTP date. Without them
    when the last of the limits that have nothing left is full again: `x-ratelimit-remaining-X: 0`
    and `x-ratelimit-reset-X`, with `x-` or without, as OpenAI and servers like it write them. Times
    are against the answer's own `date`, for that is by the same clock, or against `now`.
    """
    sent = _date((header(headers, b"date") or b"").decode("latin-1"))
    now = now if sent is None else sent
    for name, scale in _AFTER:
        told = (header(headers, name) or b"").decode("latin-1").strip()
        seconds = number(told)
        if seconds is not None:
            return min(max(seconds / scale, 0.0), ceiling)
        if told and (at := _date(told)) is not None:
            return min(max(at - now, 0.0), ceiling)
    spent = [
        name.replace(_REMAINING, _RESET)
        for name, value in headers
        if name.removeprefix(b"x-").startswith(_REMAINING)
        and number(value.decode("latin-1")) == 0.0
    ]
    resets = [_reset((header(headers, name) or b"").decode("latin-1"), now) for name in spent]
    waits = [min(max(one, 0.0), ceiling) for one in resets if one is not None]
    return max(waits, default=None)


def _reset(text: str, now: float) -> float | None:
    """Seconds until a limit is full again: told as `6m0s`, in seconds, or as a time of Unix, in
    seconds or milliseconds."""
    told = text.strip()
    seconds = number(told)
    if seconds is not None:
        unix = next((seconds / unit for least, unit in _UNIX if seconds >= least), None)
        return seconds if unix is None else unix - now
    return _span(told) if _SPANS.fullmatch(told) else None


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_in(error: Mapping[str, object], ceiling: float = RETRY_CEILING) -> float | None:
    """Seconds within [0, ceiling]; `None` if nothing sane is told.

    Args:
        error: OpenAI's error object, or Google's, whose `details` may hold a `retryDelay`.
    """
    found = _by_member(error)
    if found is None:
        again = _AGAIN.search(worded(error))
        found = None if again is None else _span(again[1])
    return None if found is None else min(max(found, 0.0), ceiling)


def _by_member(error: Mapping[str, object]) -> float | None:
    beside = error.get("metadata")
    for holder in (error, beside if isinstance(beside, Mapping) else {}):
        for name, scale in MEMBERS.items():
            told = holder.get(name)
            if isinstance(told, str | int | float) and (seconds := number(str(told))) is not None:
                return seconds / scale
    details = error.get("details")
    for one in details if isinstance(details, list) else ():
        delay = one.get("retryDelay") if isinstance(one, Mapping) else None
        if isinstance(delay, str) and (seconds := _span(delay)) is not None:
            return seconds
    return None


def _span(text: str) -> float | None:
    """Seconds in a text as `6m0s` or `26.7 seconds`."""
    spans = _SPANS.match(text)
    if spans is None:
        return None
    return sum(float(much) * _unit(unit.lower()) for much, unit in _SPAN.findall(spans[0]))


def _unit(name: str) -> float:
    return 0.001 if name.startswith(("ms", "milli")) else _SECONDS[name[0]]


def number(text: str) -> float | None:
    """A finite number written in a text; `None` where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
