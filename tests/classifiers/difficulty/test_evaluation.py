"""Measuring: abstentions, draws of whole groups, and a difference that is paired."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from classifiers.difficulty import evaluation
from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import Scores
from classifiers.difficulty.features import BUCKETS
from classifiers.difficulty.training import TooFewRows


def test_fresh_rows_are_ranked_and_calibrated(artifact: Artifact, fresh: list[Example]) -> None:
    scores = evaluation.score(artifact, fresh)
    report = evaluation.report(scores, evaluation.gains(fresh), draws=100)
    assert report.n == 400
    assert report.apgr.low > 0.6
    assert report.apgr.low < report.apgr.value < report.apgr.high
    assert report.cpt50.value < 0.4
    assert report.ece_debiased < 0.05


def test_abstained_rows_come_first_for_the_router() -> None:
    scores = Scores(np.array([1.0, 2.0]), np.array([0.5, 0.5]), np.array([True, False]))
    assert scores.gated.tolist() == [np.inf, 2.0]


def test_a_draw_keeps_groups_whole_and_never_exceeds(examples: list[Example]) -> None:
    doubled = examples + examples
    inside, outside = evaluation.draw(doubled, 101, seed=3)
    assert len(inside) == 100
    assert sorted(inside + outside) == list(range(len(doubled)))
    groups = {doubled[i].group for i in inside}
    assert groups.isdisjoint({doubled[i].group for i in outside})
    assert evaluation.draw(doubled, 101, seed=4)[0] != inside


def test_grouped_folds_score_every_row_without_it(examples: list[Example]) -> None:
    fit = partial(evaluation.fit_and_score, common=bytes(BUCKETS))
    scores = evaluation.cross_validated(examples, fit)
    report = evaluation.report(scores, evaluation.gains(examples), draws=20)
    assert 0.6 < report.apgr.value < 0.95


def test_difference_of_a_ranking_to_itself_and_to_noise(
    artifact: Artifact, fresh: list[Example]
) -> None:
    gain = evaluation.gains(fresh)
    ranks = evaluation.score(artifact, fresh).rank
    same = evaluation.difference(ranks, ranks, gain, draws=50)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    noise = np.random.default_rng(0).random(len(gain))
    assert evaluation.difference(ranks, noise, gain, draws=100).low > 0


def test_copies_of_rows_make_no_difference_surer() -> None:
    random = np.random.default_rng(3)
    gain = (random.random(30) < 0.5).astype(float)
    a, b = gain + random.random(30), random.random(30)
    once = evaluation.difference(a, b, gain, draws=300)
    first, second, gained = (np.tile(one, 20) for one in (a, b, gain))
    groups = [str(number) for number in range(30)] * 20
    again = evaluation.difference(first, second, gained, draws=300, groups=groups)
    unseen = evaluation.difference(first, second, gained, draws=300)
    assert again.value == pytest.approx(once.value, abs=0.03)
    assert again.high - again.low == pytest.approx(once.high - once.low, rel=0.25)
    assert unseen.high - unseen.low < (again.high - again.low) / 2


def test_copies_of_rows_make_no_report_surer(artifact: Artifact, fresh: list[Example]) -> None:
    rows, copied = fresh[:100], fresh[:100] * 10
    scores = evaluation.score(artifact, rows)
    many = evaluation.score(artifact, copied)
    once = evaluation.report(scores, evaluation.gains(rows), draws=300)
    again = evaluation.report(
        many, evaluation.gains(copied), draws=300, groups=evaluation.groups_of(copied)
    )
    assert (once.prompts, again.prompts, again.n) == (100, 100, 1000)
    for name in ("apgr", "cpt50", "cpt80"):
        one, other = getattr(once, name), getattr(again, name)
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.1)


def test_without_a_gap_there_is_no_difference_and_with_an_unsure_one_no_bound() -> None:
    ranks, noise = np.arange(40.0), np.arange(40.0)[::-1]
    even = np.array([1.0, -1.0] * 20)
    assert np.isnan(evaluation.difference(ranks, noise, even, draws=200).low)
    unsure = np.array([1.0] + [1.0, -1.0] * 19 + [1.0])
    found = evaluation.difference(ranks, noise, unsure, draws=200)
    assert np.isfinite(found.value)
    assert np.isnan(found.low)


def test_folds_that_leave_nothing_to_train_on_are_told(examples: list[Example]) -> None:
    fit = partial(evaluation.fit_and_score, common=bytes(BUCKETS))
    with pytest.raises(TooFewRows, match="all 60 rows are in one fold"):
        evaluation.cross_validated([examples[0]] * 60, fit)


def test_false_easy_counts_only_what_went_to_small() -> None:
    scores = Scores(np.array([0.1, 0.1, 0.9, 0.1]), np.full(4, 0.5), np.array([0, 0, 0, 1], bool))
    gain = np.array([1.0, 0.0, 1.0, 1.0])
    assert evaluation.false_easy(scores, gain, 0.5) == 0.5
    assert evaluation.false_easy(scores, gain, 0.0) == 0.0


def test_generic_is_a_pair_without_its_own_model(
    artifact: Artifact, examples: list[Example]
) -> None:
    assert not evaluation.is_generic(artifact, examples[0])
