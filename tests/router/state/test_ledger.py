"""The arithmetic of buckets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.state.ledger import Bucket, Take, missing, refilled

BUCKET = Bucket("tokens", "t", 100, 50)


def test_refill_and_wait() -> None:
    assert refilled(0, 10, BUCKET) == 20
    assert refilled(90, 10, BUCKET) == 100
    assert refilled(50, -10, BUCKET) == 50
    assert missing(50, Take(BUCKET, 50)) == 0
    assert missing(0, Take(BUCKET, 50)) == 25
    assert missing(100, Take(BUCKET, 1000)) == 0


@given(st.floats(-200, 100), st.integers(1, 500))
def test_after_the_wait_it_fits(level: float, amount: int) -> None:
    take = Take(BUCKET, amount)
    later = refilled(level, missing(level, take), BUCKET)
    assert missing(later, take) < 1e-6
