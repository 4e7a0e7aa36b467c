"""The audit: quality drifts, the alarm fires, traffic returns to large, and it says why."""

from __future__ import annotations

import random
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.difficulty import audit as audit_module
from classifiers.difficulty.audit import STAKES, Event, Shadow, StandingAudit, Tier, explores


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


@pytest.mark.parametrize("bad", [40, 400, 4000])
def test_how_long_it_was_bad_does_not_matter_to_the_way_back(bad: int) -> None:
    audit = StandingAudit(tolerance=0.05, hold=100.0)
    worse, good = (Shadow("t", "c", "en", "small", small, 1.0) for small in (0.0, 1.0))
    assert len(feed(audit, [worse] * bad)) == 3
    events = feed(audit, [good] * 400, start=1e6)
    assert {event.change for event in events} == {"recovered"}
    last = events[-1]
    assert last.at - 1e6 < 220, "some two hundred requests without a loss show it"
    assert last.estimate.loss < 0.25, "only what is newer than the last proof of the contrary"
    assert audit.calm


@pytest.mark.parametrize("loss", [0.06, 0.1, 0.5])
def test_what_stays_bad_stays_with_large(loss: float) -> None:
    rng, audit = random.Random(5), StandingAudit(tolerance=0.05, hold=0.0)
    audit.resume("tenant=t", 0.0)
    rows = [Shadow("t", "c", "en", "small", float(rng.random() >= loss), 1.0) for _ in range(5000)]
    assert not [event for event in feed(audit, rows) if event.change == "recovered"]
    assert audit.returned("tenant=t")


def test_good_times_while_it_waits_do_not_outweigh_what_comes_after() -> None:
    audit = StandingAudit(tolerance=0.5, hold=10_000.0)
    audit.resume("tenant=t", 0.0)
    feed(audit, [Shadow("t", "c", "en", "small", 1.0, 1.0)] * 5000)
    assert audit.returned("tenant=t"), "the time is not over"
    feed(audit, [Shadow("t", "c", "en", "small", 0.0, 1.0)] * 60, start=5000)
    assert feed(audit, [Shadow("t", "c", "en", "small", 0.4, 1.0)] * 10, start=20_000) == []
    assert audit.returned("tenant=t")


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40))
def test_the_way_back_is_as_sure_as_the_alarm(losses: list[int]) -> None:
    """The law behind it: while losses are at the tolerance, what shows that a group is good again
    grows by one for each of its requests in the mean."""
    group = audit_module._Group()
    group.begin(0.0)
    for loss in losses:
        before = sum(group.back) / len(STAKES)
        grown = []
        for sign in (-1, 1):
            other = deepcopy(group)
            other.better(0.25 + sign * loss / 16, 0.25, 1e6)
            grown.append(sum(other.back) / len(STAKES) - before)
        assert sum(grown) / 2 == pytest.approx(1.0)
        group.better(0.25 + loss / 16, 0.25, 1e6)


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


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.integers(-4, 4)),
        min_size=1, max_size=60,
    )
)  # fmt: skip
def test_all_detectors_together_grow_by_three_for_each_request(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """The law behind the promise for a router as a whole, over any number of groups: as long as
    losses are at the tolerance, their sum grows by three a request in the mean. It takes that sum
    three times `run` before any alarms, so that happens after `run` requests at the earliest."""
    audit, run = StandingAudit(0.25, run=20.0), 20.0
    for number, (tenant, kind, language, loss) in enumerate(rows, 1):
        before = _all(audit)
        groups = Shadow(f"t{tenant}", f"k{kind}", f"l{language}", "small", 0.0, 0.0).groups()
        # The mean of two equally likely losses, as far above the tolerance as below it.
        grown = [
            _all(_with(audit, Shadow(*_of(groups), "small", 0.5, 0.75 + sign * loss / 16))) - before
            for sign in (-1, 1)
        ]
        assert sum(grown) / 2 == pytest.approx(3.0)
        calm = audit.observe(Shadow(*_of(groups), "small", 0.5, 0.75), 0.0) == ()
        assert calm or number >= run


def _of(groups: tuple[str, ...]) -> tuple[str, str, str]:
    tenant = groups[0].removeprefix("tenant=")
    return tenant, groups[1].partition("class=")[2], groups[2].partition("language=")[2]


def _with(audit: StandingAudit, shadow: Shadow) -> StandingAudit:
    other = deepcopy(audit)
    other.observe(shadow, 0.0)
    return other


def _all(audit: StandingAudit) -> float:
    return sum(sum(group.detectors) / len(STAKES) for group in audit._groups.values())


def test_three_groups_of_one_request_alarm_no_sooner_than_after_three_times_run() -> None:
    """Losses exactly at the tolerance are accepted: the detector counts requests, no more."""
    audit = StandingAudit(0.1, run=100.0)
    assert feed(audit, [Shadow("t", "c", "en", "small", 0.4, 0.5)] * 295) == []
    assert len(feed(audit, [Shadow("t", "c", "en", "small", 0.4, 0.5)] * 10)) == 3


def test_a_group_under_alarm_makes_room_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "GROUPS", 6)
    audit = StandingAudit(0.1)
    feed(audit, [Shadow("t", "c", "en", "small", 0.0, 1.0)] * 60)
    assert audit.unfollowed == 0
    feed(audit, [Shadow(f"t{n % 50}", "c", f"l{n}", "small", 1.0, 1.0) for n in range(5000)])
    assert audit.unfollowed == 3 * 5000 - (100 + 100 + 1)
    assert not audit.allows_small("t", "other", "xx")
    assert audit.returned("tenant=t")


def test_alarms_are_told_first_and_can_be_resumed() -> None:
    audit = StandingAudit(0.1)
    feed(audit, [Shadow("a", "c", "en", "small", 1.0, 1.0)] * 3)
    feed(audit, [Shadow("z", "c", "en", "small", 0.0, 1.0)] * 60)
    alarms = dict(audit.alarms())
    assert set(alarms) == {"tenant=z", "tenant=z class=c", "tenant=z language=en"}
    assert [name for name, _ in audit.estimates()][:3] == sorted(alarms)
    other = StandingAudit(0.1)
    assert other.resume("tenant=z", 5.0)
    assert not other.resume("tenant=z", 6.0)
    assert dict(other.alarms()) == {"tenant=z": 5.0}
    assert not other.allows_small("z", "c", "en")
