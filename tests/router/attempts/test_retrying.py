"""The retry budget: trouble is not doubled."""

from __future__ import annotations

from router.attempts.retrying import OWN, Retries, RetryBudget


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


def test_a_tenant_that_fails_everywhere_leaves_others_their_retries() -> None:
    budget = Retries(ratio=0.5, burst=100)

    def fail(tenant: str, requests: int, each: int = 3) -> int:
        made = 0
        for _ in range(requests):
            budget.earn(tenant)
            made += sum(budget.spend(tenant) for _ in range(each))
        return made

    assert 100 <= fail("hog", 1000) <= 600
    assert fail("clinic", 5, each=1) == 5
    assert [budget.spend("late") for _ in range(11)] == [True] * 10 + [False]
    # Each that fails for long has what its own requests earn, and no more.
    assert fail("hog", 1000) <= 501
    assert 500 <= fail("clinic", 1000) <= 510


def test_alone_a_tenant_has_what_all_have() -> None:
    budget = Retries(ratio=1, burst=30)
    assert sum(budget.spend("one") for _ in range(100)) == 30
    for _ in range(100):
        budget.earn("one")
    assert sum(budget.spend("one") for _ in range(100)) == 30
    assert sum(budget.spend("other") for _ in range(100)) == OWN
