"""Periods, time zones and the steps of a timeline."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.reports.period import PeriodRefused, between, period, zone


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


@pytest.mark.parametrize(
    ("text", "where", "since", "until"),
    [
        ("2026", "UTC", "2026-01-01T00:00+00:00", "2027-01-01T00:00+00:00"),
        ("2026-Q4", "UTC", "2026-10-01T00:00+00:00", "2027-01-01T00:00+00:00"),
        ("2026-12", "UTC", "2026-12-01T00:00+00:00", "2027-01-01T00:00+00:00"),
        ("2026-11-29", "UTC", "2026-11-29T00:00+00:00", "2026-11-30T00:00+00:00"),
        ("2026-11-01/2026-11-15", "UTC", "2026-11-01T00:00+00:00", "2026-11-16T00:00+00:00"),
        ("2026-07", "Europe/Berlin", "2026-07-01T00:00+02:00", "2026-08-01T00:00+02:00"),
        ("2026-03-29", "Europe/Berlin", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("2026-01-01T10:00Z/2026-01-01T11:30", "Asia/Kolkata",
         "2026-01-01T10:00+00:00", "2026-01-01T11:30+05:30"),
    ],
)  # fmt: skip
def test_what_can_be_written(text: str, where: str, since: str, until: str) -> None:
    if since > until or text.startswith("2026-01-01T10"):
        with pytest.raises(PeriodRefused, match="ends after it begins"):
            period(text, zone(where))
        return
    found = period(text, zone(where))
    assert (found.since, found.until) == (at(since), at(until))


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-13", "2026-Q5", "2026-11-31", "2026-11-05/2026-11-01", "1900", "9999"],
)
def test_what_can_not(text: str) -> None:
    with pytest.raises(PeriodRefused, match="period"):
        period(text, zone("UTC"))


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "", "/etc/localtime"])
def test_a_zone_nobody_knows(name: str) -> None:
    with pytest.raises(PeriodRefused, match="time zone"):
        zone(name)


def test_days_of_a_zone_are_its_own_also_when_the_clock_changes() -> None:
    assert period("2026-03-28/2026-03-31", zone("Europe/Berlin")).step == "day"
    assert period("2026-03-29", zone("Europe/Berlin")).step == "hour"
    assert len(period("2026-03-29", zone("Europe/Berlin")).starts) == 23
    days = period("2026-03", zone("Europe/Berlin"))
    lengths = {(b - a) // 3_600_000_000 for a, b in zip(days.starts, days.starts[1:], strict=False)}
    assert lengths == {23, 24}
    late = at("2026-03-31T23:30+02:00")  # still March there, and already was March in UTC
    assert days.holds(late)
    assert days.day(late) == "2026-03-31"
    assert not period("2026-03", zone("UTC")).holds(at("2026-04-01T00:30+00:00"))
    assert days.shown(late).endswith("+02:00")


@given(
    st.integers(0, 4_000_000_000), st.integers(1, 900_000_000),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]),
)  # fmt: skip
def test_every_time_inside_is_in_exactly_one_step(since: int, length: int, where: str) -> None:
    found = between(since * 10**6, (since + length) * 10**6, zone(where))
    assert found.starts[0] == found.since
    assert list(found.starts) == sorted(set(found.starts))
    assert len(found.starts) <= 800
    for micros in (found.since, (found.since + found.until) // 2, found.until - 1):
        number = found.bucket(micros)
        assert found.starts[number] <= micros < found.ends(number)
