"""The threshold meets the target share, follows drift, and every doubt means large."""

from __future__ import annotations

import math
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty.grader import Grader, Recent, share_of_quality
from classifiers.difficulty.scorer import Score
from classifiers.view import PromptView

VIEW = PromptView.of_text("x")
FLOOR = ((0.0, 0.0), (0.25, 0.4), (0.5, 0.7), (0.75, 0.9), (1.0, 1.0))


def scored(value: float, reason: str = "") -> Score:
    return Score(value, 0.5, bool(reason), reason, "m@1", "w:s", False)


class Scripted:
    """A model that gives what the test says next."""

    def __init__(self) -> None:
        self.next: Score | Exception = scored(0.0)

    def score(self, view: PromptView) -> Score:
        assert view is VIEW
        if isinstance(self.next, Exception):
            raise self.next
        return self.next


def run(grader: Grader, model: Scripted, scores: list[Score], tenant: str = "t") -> float:
    """The share graded large."""
    large = 0
    for score in scores:
        model.next = score
        large += grader.grade(VIEW, tenant).tier == "large"
    return large / len(scores)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.7, 1.0])
def test_the_share_is_met_whatever_the_scale_of_scores(share: float) -> None:
    rng, model = random.Random(1), Scripted()
    grader = Grader(model, share, [])
    run(grader, model, [scored(rng.lognormvariate(5, 2)) for _ in range(2000)])
    met = run(grader, model, [scored(rng.lognormvariate(5, 2)) for _ in range(3000)])
    assert met == pytest.approx(share, abs=0.03)


def test_the_threshold_follows_a_drift() -> None:
    rng, model = random.Random(2), Scripted()
    grader = Grader(model, 0.4, [])
    for shift in (0.0, 1.0, -2.0):
        run(grader, model, [scored(rng.gauss(shift, 1)) for _ in range(2500)])
        met = run(grader, model, [scored(rng.gauss(shift, 1)) for _ in range(2000)])
        assert met == pytest.approx(0.4, abs=0.04)


def test_abstentions_count_as_strong_calls() -> None:
    rng, model = random.Random(3), Scripted()
    grader = Grader(model, 0.5, [])
    mixed = [scored(rng.random(), "script" if rng.random() < 0.3 else "") for _ in range(5000)]
    run(grader, model, mixed[:2000])
    assert run(grader, model, mixed[2000:]) == pytest.approx(0.5, abs=0.04)


def test_what_abstains_buys_no_quality_for_what_does_not() -> None:
    rng, model = random.Random(3), Scripted()
    grader = Grader(model, 0.1, [], FLOOR, quality=0.85)
    mixed = [scored(rng.random(), "script" if rng.random() < 0.8 else "") for _ in range(4000)]
    run(grader, model, mixed[:2000])
    judged = [one for one in mixed[2000:] if not one.abstained]
    assert run(grader, model, judged[:100]) == pytest.approx(grader.share, abs=0.12)


def test_a_new_tenant_starts_from_the_training_scores() -> None:
    model = Scripted()
    grader = Grader(model, 0.5, [i / 100 for i in range(101)])
    model.next = scored(0.9)
    assert grader.grade(VIEW, "new").tier == "large"
    model.next = scored(0.1)
    assert grader.grade(VIEW, "other").tier == "small"


def test_tenants_do_not_move_each_other() -> None:
    model = Scripted()
    grader = Grader(model, 0.5, [i / 100 for i in range(101)])
    run(grader, model, [scored(0.0)] * 3000, tenant="flood")
    model.next = scored(0.3)
    assert grader.grade(VIEW, "quiet").tier == "small"
    assert grader.grade(VIEW, "flood").tier == "large"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_means_large_and_is_counted(value: float) -> None:
    model, counted = Scripted(), list[str]()
    grader = Grader(model, 0.0, [0.0], on_failure=counted.append)
    model.next = scored(value)
    grade = grader.grade(VIEW, "t")
    assert grade.tier == "large"
    assert counted == ["not_finite"]


def test_a_failing_model_means_large_and_is_counted() -> None:
    model, counted = Scripted(), list[str]()
    grader = Grader(model, 0.0, [0.0], on_failure=counted.append)
    model.next = ValueError("the prompt itself")
    grade = grader.grade(VIEW, "t")
    assert (grade.tier, grade.reason, grade.score) == ("large", "failed:ValueError", None)
    assert counted == ["ValueError"]


def test_gate_reason_and_wish_for_more_are_kept() -> None:
    model = Scripted()
    grader = Grader(model, 0.0, [0.0])
    model.next = scored(-9.0, "script")
    assert grader.grade(VIEW, "t").reason == "script"
    model.next = scored(-9.0)
    assert grader.grade(VIEW, "t").tier == "small"
    asked = grader.grade(VIEW, "t", asked_large=True)
    assert (asked.tier, asked.reason) == ("large", "asked")


def test_without_any_scores_everything_is_large() -> None:
    assert Grader(Scripted(), 0.5, []).grade(VIEW, "t").tier == "large"


def test_quality_raises_the_share() -> None:
    assert Grader(Scripted(), 0.1, [0.0], FLOOR, quality=0.85).share == 0.75
    assert Grader(Scripted(), 0.9, [0.0], FLOOR, quality=0.85).share == 0.9
    assert share_of_quality(FLOOR, 0.7) == 0.5
    assert share_of_quality(FLOOR, 1.1) == 1.0
    assert share_of_quality((), 0.5) == 1.0


@pytest.mark.parametrize(("target", "quality"), [(-0.1, 0.0), (1.1, 0.0), (0.5, 2.0)])
def test_targets_out_of_range_are_refused(target: float, quality: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Grader(Scripted(), target, [], quality=quality)


@settings(max_examples=60)
@given(
    values=st.lists(st.floats(-5, 5) | st.none(), min_size=1, max_size=80),
    share=st.floats(0, 1),
)
def test_a_window_is_what_its_last_scores_say(values: list[float | None], share: float) -> None:
    recent = Recent((), window=20)
    for value in values:
        recent.observe(value)
    last = values[-20:]
    numbers = [v for v in last if v is not None]
    threshold = recent.threshold(share)
    strong = sum(v >= threshold for v in numbers) + len(last) - len(numbers)
    assert strong >= min(math.ceil(share * len(last)), len(last))


def test_a_full_window_takes_less_than_40_kb() -> None:
    """There is one for each of 10,000 tenants."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        recent = Recent(())
        for number in range(5000):
            recent.observe(number / 7)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 40_000
