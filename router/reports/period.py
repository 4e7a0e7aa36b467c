"""The time a report is about, in one time zone, cut into equal steps for its timeline."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from router.audit.errors import AuditError

_MICROS: Final = 1_000_000
_FORM: Final = (
    "write a period as 2026, 2026-Q4, 2026-11, 2026-11-29, or FROM/TO with two days or times: "
    "2026-11-01/2026-11-15; TO as a day is the last one inside"
)
_YEAR: Final = re.compile(r"(\d{4})")
_QUARTER: Final = re.compile(r"(\d{4})-?Q([1-4])")
_MONTH: Final = re.compile(r"(\d{4})-(\d{2})")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class PeriodRefused(AuditError):
    """A period or time zone that can't be read; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` (inside) to `until` (outside), microseconds since 1970.

    `starts` are the steps of the timeline, ascending, the first is `since`; `step` is what one is:
    an hour, a day, a week or a month of `zone`.
    """

    since: int
    until: int
    zone: tzinfo
    starts: tuple[int, ...]
    step: str

    def holds(self, micros: int) -> bool:
        """Whether a time is inside."""
        return self.since <= micros < self.until

    def bucket(self, micros: int) -> int:
        """The number of the step that holds a time inside."""
        return bisect_right(self.starts, micros) - 1

    def ends(self, number: int) -> int:
        """Where a step ends."""
        return self.starts[number + 1] if number + 1 < len(self.starts) else self.until

    def shown(self, micros: int, timespec: str = "seconds") -> str:
        """A time in the period's zone, with its offset."""
        return datetime.fromtimestamp(micros / _MICROS, self.zone).isoformat(timespec=timespec)

    def day(self, micros: int) -> str:
        """The day or hour of a time, as the timeline names it."""
        at = datetime.fromtimestamp(micros / _MICROS, self.zone)
        return at.strftime("%Y-%m-%d %H:%M" if self.step == "hour" else "%Y-%m-%d")

    @property
    def label(self) -> str:
        """Both ends, as a reader reads them."""
        return f"{self.shown(self.since)} to before {self.shown(self.until)}"


def zone(name: str) -> tzinfo:
    """A time zone by its name in the tz database, or `UTC`. Raises PeriodRefused."""
    if name == "UTC":
        return timezone.utc  # noqa: UP017
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PeriodRefused(
            f"time zone `{name}` is not known here; write it as `Europe/Berlin` or `UTC`"
        ) from None


def period(text: str, where: tzinfo) -> Period:
    """What `--period` says, in a time zone. Raises PeriodRefused."""
    try:
        first, last = _ends(text.strip(), where)
        since, until = _micros(first), _micros(last)
    except (ValueError, OverflowError):
        raise PeriodRefused(f"`{text}` is no period; {_FORM}") from None
    return between(since, until, where)


def between(since: int, until: int, where: tzinfo) -> Period:
    """From one time to another. Raises PeriodRefused unless it is some time after 1970."""
    if not 0 <= since < until:
        raise PeriodRefused(f"a period ends after it begins, and after 1970; {_FORM}")
    step = _step(until - since)
    return Period(since, until, where, tuple(_starts(since, until, where, step)), step)


def _ends(text: str, where: tzinfo) -> tuple[datetime, datetime]:
    if found := _YEAR.fullmatch(text):
        year = int(found[1])
        return datetime(year, 1, 1, tzinfo=where), datetime(year + 1, 1, 1, tzinfo=where)
    if found := _QUARTER.fullmatch(text):
        first = datetime(int(found[1]), 3 * int(found[2]) - 2, 1, tzinfo=where)
        return first, _months_on(first, 3)
    if found := _MONTH.fullmatch(text):
        first = datetime(int(found[1]), int(found[2]), 1, tzinfo=where)
        return first, _months_on(first, 1)
    one, slash, other = text.partition("/")
    return _moment(one, where), _moment(other if slash else one, where, end=True)


def _moment(text: str, where: tzinfo, *, end: bool = False) -> datetime:
    if _DAY.fullmatch(text):
        day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
        return datetime(day.year, day.month, day.day, tzinfo=where)
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=where)


def _months_on(at: datetime, count: int) -> datetime:
    month = at.month - 1 + count
    return at.replace(year=at.year + month // 12, month=month % 12 + 1)


def _step(length: int) -> str:
    days = length / (86_400 * _MICROS)
    return "hour" if days <= 3 else "day" if days <= 100 else "week" if days <= 750 else "month"


def _starts(since: int, until: int, where: tzinfo, step: str) -> Iterator[int]:
    yield since
    at = datetime.fromtimestamp(since / _MICROS, where)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if step == "week":
        day -= timedelta(days=day.weekday())
    elif step == "month":
        day = day.replace(day=1)
    last = since
    while True:
        day = _next(day, step)
        start = _micros(day)
        if start >= until:
            return
        if start > last:
            yield start
            last = start


def _next(at: datetime, step: str) -> datetime:
    if step == "hour":
        # Hours pass in real time: a local clock set back or forth would lose or repeat one.
        return datetime.fromtimestamp(at.timestamp() + 3600, at.tzinfo)
    if step == "month":
        return _months_on(at, 1)
    return at + timedelta(days=7 if step == "week" else 1)


def _micros(at: datetime) -> int:
    return round(at.timestamp() * _MICROS)
