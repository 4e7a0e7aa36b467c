"""Training finds what is there, refuses too little, and keeps groups and sources apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from classifiers.difficulty import curves
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import gains
from classifiers.difficulty.features import BUCKETS
from classifiers.difficulty.training import TooFewRows, fold_of, train_any, train_pair

NONE = bytes(BUCKETS)
"""No word is common."""


def test_left_out_gains_rank_well_and_are_not_the_labels(examples: list[Example]) -> None:
    trained = train_pair(examples, "w", "s", NONE)
    assert curves.apgr(trained.gains, gains(examples)) > 0.65
    others = [examples[i] for i in np.random.default_rng(0).permutation(len(examples))]
    shuffled = [
        replace(e, y_weak=o.y_weak, y_strong=o.y_strong)
        for e, o in zip(examples, others, strict=True)
    ]
    noise = train_pair(shuffled, "w", "s", NONE)
    assert curves.apgr(noise.gains, gains(shuffled)) < 0.6


def test_a_group_is_always_in_one_fold() -> None:
    assert {fold_of(f"g{i}") for i in range(100)} == {0, 1, 2, 3, 4}
    assert fold_of("one") == fold_of("one")


def test_too_little_is_refused(examples: list[Example]) -> None:
    with pytest.raises(TooFewRows, match="49 rows"):
        train_pair(examples[:49], "w", "s", NONE)
    equal = [replace(e, y_weak=1.0, y_strong=1.0) for e in examples]
    with pytest.raises(TooFewRows):
        train_pair(equal, "w", "s", NONE)


def test_the_model_of_any_pair_knows_only_length(examples: list[Example]) -> None:
    trained = train_any(examples, NONE)
    assert trained.model.name == "*"
    assert not any(trained.tables.weak)
    assert sum(weight != 0 for weight in trained.model.head.linear) <= 1
    assert trained.model.head.directions == ()


def test_sources_of_other_levels_do_not_teach_the_model_of_any_pair(
    examples: list[Example],
) -> None:
    longer = [
        replace(
            e, source="long", y_weak=0.0, y_strong=1.0,
            features=replace(e.features, structure=tuple(v + 3 for v in e.features.structure)),
        )
        for e in examples
    ]  # fmt: skip
    flat = [
        replace(e, y_weak=float(i % 2), y_strong=float(i // 2 % 2)) for i, e in enumerate(examples)
    ]
    trained = train_any([*flat, *longer], NONE)
    assert float(np.ptp(trained.gains)) < 0.3, "only the level differs between the sources"


def test_the_envelope_holds_almost_all_training_rows(examples: list[Example]) -> None:
    envelope = train_pair(examples, "w", "s", NONE).model.envelope
    assert 3 <= envelope.words <= 5
    assert 0 < envelope.known <= 1
    assert envelope.calls == (0.0, 0.0, 0.0, 0.0)
