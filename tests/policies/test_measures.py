"""Numbers with a unit: what they come to, and what is none."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.measures import duration, measure, rate, spending


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25), ("300s", 300), ("300 S", 300), ("1.5h", 5400), ("3y", 3 * 31_557_600),
        ("24h", 86_400), ("1.5d", 129_600), ("5m", 300), ("5min", 300), ("2w", 1_209_600),
    ],
)  # fmt: skip
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "24", "s", "h", "-1s", "-1d", "1 0s", "1 month", "٣s", "9" * 400 + "d"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs a number and a unit of ms, .*90d|too large"):
        duration(text)


def test_an_amount_per_time() -> None:
    assert rate("600/min") == (600, 60.0)
    assert rate("1.5M / h") == (1_500_000, 3600.0)
    for text in ("600", "x/min", "600/fortnight"):
        with pytest.raises(ValueError, match="600/min"):
            rate(text)
    for text in ("0/min", "0.5/min", "0.0009k/h"):  # a bucket of nothing has no rate to wait by
        with pytest.raises(ValueError, match=r"1 or more: write 0\.5/min as 30/h"):
            rate(text)
    for text in ("1.5/min", "1.0015k/h", "0.0000015M/s", "1000000.1/d"):
        with pytest.raises(ValueError, match=r"a whole number: write 1\.5/min as 90/h"):
            rate(text)
    with pytest.raises(ValueError, match="400 digits is too large"):
        rate("9" * 400 + "/min")


@given(
    amount=st.integers(1, 10**15), digits=st.integers(0, 6), scale=st.sampled_from(("", "k", "M"))
)
def test_an_amount_is_exactly_what_is_written_or_refused(
    amount: int, digits: int, scale: str
) -> None:
    exact = Decimal(amount).scaleb(-digits)
    whole = exact * {"": 1, "k": 1000, "M": 1000000}[scale]
    try:
        found, _ = rate(f"{exact:f}{scale}/min")
    except ValueError:
        assert whole != whole.to_integral_value() or whole < 1
    else:
        assert found == whole


def test_other_units_are_the_callers() -> None:
    assert measure("2 Kb", {"kb": 1000.0}, "2kb") == 2000
    with pytest.raises(ValueError, match="`2s` needs a number and a unit of kb, as 2kb"):
        measure("2s", {"kb": 1000.0}, "2kb")


def test_what_may_be_spent_is_in_hours_or_days() -> None:
    assert spending("2.50/h", 100, "20/h") == (250, 3600.0)
    assert spending("1.5M / d", 1, "20/h") == (1_500_000, 86400.0)
    for text in ("20", "20/min", "20/week", "-1/h", "x/h"):
        with pytest.raises(ValueError, match="write an amount per hour or day, as 20/h"):
            spending(text, 1, "20/h")
    with pytest.raises(ValueError, match="nothing could ever be spent of that"):
        spending("0.4/h", 1, "20/h")
