"""The fast scorer is the trained model, total over views, and sure of nothing it should not be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty.artifact import ANY, Artifact
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import BUCKETS
from classifiers.difficulty.head import CLIP, UNIT
from classifiers.difficulty.scorer import Difficulty, Scorer, interpolate
from classifiers.view import PromptView


def reference(artifact: Artifact, example: Example) -> tuple[float, float, float, float]:
    """Weak, strong, commonness and gain by numpy from the artifact's fields."""
    model, tables = artifact.pairs["w:s"], artifact.tables["w:s"]
    x = np.zeros(BUCKETS)
    x[example.features.words] = 1 / math.sqrt(len(example.features.words))
    base = [
        float(x @ (np.frombuffer(table, np.int8) * scale)) + offset
        for table, scale, offset in zip(
            (tables.weak, tables.strong), model.scales, model.offsets, strict=True
        )
    ]
    head = model.head
    levels = np.frombuffer(artifact.common, np.uint8)
    base.append(float(levels[sorted(example.features.options) or example.features.words].mean()))
    inputs = np.array([*base, *example.features.structure])
    z = np.clip((inputs - head.centre) / head.spread, -CLIP, CLIP)
    gain = head.intercept + z @ np.array(head.linear)
    gain += (np.array(head.directions) @ z) ** 2 @ np.array(head.weights)
    return base[0], base[1], base[2], float(gain)


def test_equal_to_numpy_on_every_row(artifact: Artifact, examples: list[Example]) -> None:
    scorer = Scorer(artifact.pairs["w:s"], artifact.tables["w:s"], artifact.common)
    for example in examples:
        weak, strong, common, gain = reference(artifact, example)
        base, known = scorer.base(example.features)
        assert base == pytest.approx((weak, strong, common), abs=1e-12)
        flags = [artifact.tables["w:s"].known[word] for word in example.features.words]
        assert known == sum(flags) / len(flags)
        # z-scores are whole numbers of 1 / UNIT.
        assert scorer.measure(example.features.fields)[0] == pytest.approx(gain, abs=40 / UNIT)


def test_hard_prompts_score_higher(artifact: Artifact, fresh: list[Example]) -> None:
    difficulty = Difficulty(artifact, "w", "s")
    values = {kind: [] for kind in ("hard", "easy")}  # type: dict[str, list[float]]
    for example in fresh:
        values[example.category].append(difficulty.score(example.view).value)
    assert np.mean(values["hard"]) > np.mean(values["easy"]) + 0.3


def test_each_score_names_model_and_pair(artifact: Artifact, fresh: list[Example]) -> None:
    score = Difficulty(artifact, "w", "s").score(fresh[0].view)
    assert score.version == artifact.version()
    assert score.pair == "w:s"
    assert not score.abstained
    assert 0 < score.probability < 1


def test_another_pair_uses_the_model_of_any_pair(artifact: Artifact) -> None:
    other = Difficulty(artifact, "unknown", "pair")
    assert not other.own
    assert other.score(PromptView.of_text("what is this about then?")).pair == ANY
    pairs = {"w:s": artifact.pairs["w:s"]}
    with pytest.raises(KeyError):
        Difficulty(replace(artifact, pairs=pairs), "unknown", "pair")


def test_not_a_number_abstains(artifact: Artifact, fresh: list[Example]) -> None:
    model = artifact.pairs["w:s"]
    broken = replace(model, head=replace(model.head, intercept=float("nan")))
    score = Difficulty(replace(artifact, pairs={"w:s": broken}), "w", "s").score(fresh[0].view)
    assert score.abstained
    assert score.reason == "not_finite"


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(), max_size=300))
def test_total_over_text(artifact: Artifact, text: str) -> None:
    score = Difficulty(artifact, "w", "s").score(PromptView.of_text(text))
    assert math.isfinite(score.value)
    assert bool(score.reason) == score.abstained


@pytest.mark.parametrize(
    ("x", "y"), [(-1, 0.1), (0, 0.1), (1, 0.2), (1.5, 0.4), (2, 0.6), (9, 0.6)]
)
def test_interpolation(x: float, y: float) -> None:
    assert interpolate((0, 1, 2), (0.1, 0.2, 0.6), x) == pytest.approx(y)
    assert interpolate((), (), x) == 0.5
