"""The audit: quality drifts, the alarm fires, traffic returns to large, and it says why."""

from __future__ import annotations

import random

import pytest

from classifiers.difficulty.audit import Event, Shadow, StandingAudit, Tier, explores


def shadow(rng: random.Random, small: float, tenant: str = "t", language: str = "en") -> Shadow:
    """A request graded small; the small model is right with probability `small`."""
    right = float(rng.random() < 0.9)
    good = right if rng.random() < small else 0.0
    return Shadow(tenant, "chat", language, "small", good, right)


def feed(audit: StandingAudit, rows: list[Shadow], start: float = 0.0) -> list[Event]:
    return [e for i, row in enumerate(rows) for e in audit.observe(row, start + i)]


def test_the_lane_takes_its_share() -> None:
    rng = random.Random(0)
    taken = sum(explores(0.02, rng.random()) for _ in range(50_000))
    assert 800 < taken < 1200
    assert not explores(0.0, 0.0)
    with pytest.raises(ValueError, match=r"between 0 and 0\.05"):
        explores(0.2, 0.1)


def test_quality_drifts_and_traffic_returns_to_large() -> None:
    rng = random.Random(1)
    audit = StandingAudit(tolerance=0.1)
    assert feed(audit, [shadow(rng, 0.97) for _ in range(600)]) == []
    assert audit.allows_small("t", "chat", "en")
    events = feed(audit, [shadow(rng, 0.5) for _ in range(300)], start=600)
    first = events[0]
    assert (first.change, first.reason, first.group[:8]) == ("alarm", "quality", "tenant=t")
    assert 600 < first.at < 760, "a halved quality is found within 160 audited requests"
    assert not audit.allows_small("t", "chat", "en")
    assert audit.allows_small("other", "chat", "en")


def test_false_alarms_are_rare() -> None:
    alarms = 0
    for seed in range(20):
        rng = random.Random(seed)
        # Exactly at the tolerance: the worst case that is still accepted.
        rows = [
            Shadow("t", "c", "en", "small", float(rng.random() >= 0.1), 1.0) for _ in range(2000)
        ]
        alarms += bool(feed(StandingAudit(tolerance=0.1), rows))
    assert alarms <= 3


def test_a_language_alone_can_alarm() -> None:
    rng = random.Random(3)
    audit = StandingAudit(tolerance=0.1)
    rows = [
        shadow(rng, 0.4, language="pl") if i % 12 == 0 else shadow(rng, 0.99) for i in range(2400)
    ]
    assert {event.group for event in feed(audit, rows)} == {"tenant=t language=pl"}
    assert not audit.allows_small("t", "chat", "pl")
    assert audit.allows_small("t", "chat", "en")


def test_recovery_needs_time_and_evidence() -> None:
    rng = random.Random(4)
    audit = StandingAudit(tolerance=0.15, hold=100.0)
    events = feed(audit, [shadow(rng, 0.2) for _ in range(200)])
    assert {event.change for event in events} == {"alarm"}
    assert feed(audit, [shadow(rng, 1.0) for _ in range(40)], start=150) == []
    assert not audit.allows_small("t", "chat", "en")
    after = feed(audit, [shadow(rng, 1.0) for _ in range(900)], start=400)
    assert {event.change for event in after} == {"recovered"}
    assert audit.allows_small("t", "chat", "en")


def test_drift_of_the_traffic_also_returns_to_large() -> None:
    audit = StandingAudit(tolerance=0.1)
    (event,) = audit.drifted("t", "score", now=5.0)
    assert (event.change, event.reason, event.at) == ("alarm", "drift:score", 5.0)
    assert audit.drifted("t", "score", now=6.0) == ()
    assert not audit.allows_small("t", "chat", "en")
    assert audit.accept("tenant=t")
    assert audit.allows_small("t", "chat", "en")
    assert not audit.accept("tenant=t")


def test_what_grading_sent_to_large_costs_no_quality() -> None:
    audit = StandingAudit(tolerance=0.0)
    rows = [Shadow("t", "c", "en", "large", 0.0, 1.0) for _ in range(2000)]
    assert feed(audit, rows) == []
    estimate = dict(audit.estimates())["tenant=t"]
    assert (estimate.n, estimate.loss) == (2000, 0.0)


def test_bounds_hold_the_true_loss() -> None:
    misses = 0
    for seed in range(40):
        rng, audit = random.Random(seed), StandingAudit(tolerance=0.9)
        feed(
            audit,
            [Shadow("t", "c", "en", "small", float(rng.random() < 0.7), 1.0) for _ in range(200)],
        )
        estimate = dict(audit.estimates())["tenant=t"]
        misses += not estimate.low <= 0.3 <= estimate.high
    assert misses <= 2


@pytest.mark.parametrize("tolerance", [-0.1, 1.0])
def test_a_tolerance_out_of_range_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        StandingAudit(tolerance)


def test_an_estimate_says_what_each_tier_alone_would_have_been_worth() -> None:
    audit = StandingAudit(0.9)
    for number in range(100):
        tier: Tier = "small" if number % 2 else "large"
        audit.observe(Shadow("t", "chat", "latin", tier, 0.5, 1.0), 0.0)
    found = dict(audit.estimates())["tenant=t"]
    assert (found.n, found.small, found.large, found.loss) == (100, 0.5, 1.0, 0.25)
    assert not audit.returned("tenant=t")
