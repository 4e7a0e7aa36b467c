"""Sizes, times and references, as configuration files write them."""

from __future__ import annotations

import pytest

from router.config_types import Strict, duration, size


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("300s", 300), ("1.5h", 5400), ("3y", 3 * 31_557_600)]
)
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "-1s", "1w", "1 0s", "9" * 400 + "y"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs a number and a unit|too large"):
        duration(text)


def test_a_size_counts_in_1024s() -> None:
    assert (size("100b"), size("512KiB"), size("20 MiB")) == (100, 524_288, 20 << 20)
    with pytest.raises(ValueError, match="20MiB"):
        size("20MB")


def test_a_setting_that_nothing_reads_is_refused() -> None:
    class One(Strict):
        a: int = 1

    with pytest.raises(ValueError, match="extra"):
        One.model_validate({"b": 2})
