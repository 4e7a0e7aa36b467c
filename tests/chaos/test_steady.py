"""A region is lost under a steady rate; `python -m tests.chaos.steady` plays it at 500 a second."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
import uvloop

from tests.chaos.steady import EACH, MEAN, steady

RATE = 100.0


@pytest.mark.slow
@pytest.mark.chaos
def test_a_region_lost_under_a_steady_rate_stays_inside_and_returns_without_a_herd(
    tmp_path: Path,
) -> None:
    course = uvloop.run(steady(tmp_path, RATE, 12.0))
    sys.stdout.write(f"\n{course}\n")
    assert course.outside == 0
    codes = Counter(one.code for one in course.heard)
    # What ran when the region was lost is more than the retry budget pays for at once.
    assert set(codes) <= {"ok", "overloaded"}
    assert codes["overloaded"] <= MEAN * 2 * EACH
    assert max(course.dark, course.after) <= 2
