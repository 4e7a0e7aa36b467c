"""The retry budget: trouble is not doubled."""

from __future__ import annotations

from router.attempts.retrying import RetryBudget


def test_retries_follow_requests_by_the_ratio() -> None:
    budget = RetryBudget(ratio=0.25, burst=2)
    assert [budget.spend() for _ in range(3)] == [True, True, False]
    for _ in range(4):
        budget.earn()
    assert [budget.spend() for _ in range(2)] == [True, False]


def test_the_bucket_has_a_bottom_and_a_rim() -> None:
    budget = RetryBudget(ratio=1, burst=3)
    for _ in range(100):
        budget.earn()
    assert sum(budget.spend() for _ in range(100)) == 3
