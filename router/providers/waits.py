"""When to come back, where no header of an error says it but its members or words do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

# `try again in 6m0s`, `retry after 59 seconds`, `(reset after 2m 13s)`, `available again in 7 s`.
_AGAIN = re.compile(
    r"\b(?:try|retry|wait|reset|available)\w*\b[^.\d]{0,24}(\d[\d.a-z ]{0,40})", re.IGNORECASE
)
_PART = (
    r"(\d{1,9}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)"
    r"(?![a-z])"
)
_SPAN = re.compile(_PART, re.IGNORECASE)
_SPANS = re.compile(rf"(?:{_PART} ?)+", re.IGNORECASE)
_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0}
MEMBERS: Mapping[str, float] = {
    "retry_after_ms": 1000.0, "retryAfterMs": 1000.0, "retry_after": 1.0, "retryAfter": 1.0,
    "retry_after_seconds": 1.0, "retryAfterSeconds": 1.0, "resets_in_seconds": 1.0,
}  # fmt: skip
"""What tells it, and how much of that is a second."""


def retry_in(error: Mapping[str, object], ceiling: float) -> float | None:
    """Seconds within [0, ceiling]; `None` if nothing sane is told.

    Args:
        error: OpenAI's error object, or Google's, whose `details` may hold a `retryDelay`.
    """
    found = _by_member(error)
    if found is None:
        message = error.get("message") or error.get("detail")
        again = _AGAIN.search(message) if isinstance(message, str) else None
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
