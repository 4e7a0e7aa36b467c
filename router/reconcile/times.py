"""Times as providers write them → microseconds since 1970; `UNKNOWN_TIME` for any other text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from router.reconcile.model import UNKNOWN_TIME

_FRACTION: Final = re.compile(r"(\.\d{6})\d+")


def instant(value: object) -> int:
    """ISO 8601 (without a zone: UTC), seconds, or milliseconds since 1970."""
    if isinstance(value, bool):
        return UNKNOWN_TIME
    if isinstance(value, int | float):
        seconds = value / 1000 if value > 1e11 else value
        return round(seconds * 1e6) if 0 <= seconds < 1e11 else UNKNOWN_TIME
    if not isinstance(value, str):
        return UNKNOWN_TIME
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", value.strip()))
    except ValueError:
        return UNKNOWN_TIME
    return micros(found)


def micros(when: datetime) -> int:
    """A time's microseconds; one without a zone is taken as UTC."""
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1e6)
