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
        if not 0 <= value < 1e14:  # also what is no number, and what is too large for a float
            return UNKNOWN_TIME
        return round((value / 1000 if value > 1e11 else value) * 1e6)
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
