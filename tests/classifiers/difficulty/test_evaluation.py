"""Measuring: abstentions, draws of whole groups, and a difference that is paired."""

from __future__ import annotations

from functools import partial

import numpy as np

from classifiers.difficulty import evaluation
from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import Scores
from classifiers.difficulty.features import BUCKETS


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


def test_false_easy_counts_only_what_went_to_small() -> None:
    scores = Scores(np.array([0.1, 0.1, 0.9, 0.1]), np.full(4, 0.5), np.array([0, 0, 0, 1], bool))
    gain = np.array([1.0, 0.0, 1.0, 1.0])
    assert evaluation.false_easy(scores, gain, 0.5) == 0.5
    assert evaluation.false_easy(scores, gain, 0.0) == 0.0


def test_generic_is_a_pair_without_its_own_model(
    artifact: Artifact, examples: list[Example]
) -> None:
    assert not evaluation.is_generic(artifact, examples[0])
