from __future__ import annotations

from datetime import datetime

import pytest

from router.reconcile.model import UNKNOWN_TIME
from router.reconcile.times import instant, micros


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("2026-11-29T20:04:20Z", 1_795_982_660),
        ("2026-11-29T20:04:20.1234567Z", 1_795_982_660.123456),
        ("2026-11-29T21:04:20+01:00", 1_795_982_660),
        ("2026-11-29T20:04:20", 1_795_982_660),
        ("20261129T200420Z", 1_795_982_660),
        (1_795_982_660, 1_795_982_660),
        (1_795_982_660_500, 1_795_982_660.5),
    ],
)
def test_what_providers_write(told: object, seconds: float) -> None:
    assert instant(told) == round(seconds * 1e6)


@pytest.mark.parametrize(
    "told",
    ["", "yesterday", None, True, -1, 1e30, 10**400, float("nan"), float("inf"), [], "2026-13-01"],
)
def test_anything_else_is_no_time(told: object) -> None:
    assert instant(told) == UNKNOWN_TIME


def test_a_time_without_a_zone_is_utc() -> None:
    assert micros(datetime.fromisoformat("1970-01-01T00:00:01")) == 1_000_000
