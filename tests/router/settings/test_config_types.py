"""Sizes, times and references, as configuration files write them."""

from __future__ import annotations

import pytest

from router.settings.config_types import Strict, size


def test_a_size_counts_in_1024s() -> None:
    assert (size("100b"), size("512KiB"), size("20 MiB")) == (100, 524_288, 20 << 20)
    with pytest.raises(ValueError, match="20MiB"):
        size("20MB")


def test_a_setting_that_nothing_reads_is_refused() -> None:
    class One(Strict):
        a: int = 1

    with pytest.raises(ValueError, match="extra"):
        One.model_validate({"b": 2})
