"""Measuring a difficulty model on rows it has not seen, with bootstrap bounds.

APGR, CPT and calibration are of the scores of all rows. `gated` is the APGR of the router: there
an abstained row goes to the strong model first, whatever its score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.difficulty import curves
from classifiers.difficulty.artifact import ANY, Artifact
from classifiers.difficulty.curves import Interval
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.scorer import Difficulty
from classifiers.difficulty.training import FOLDS, Trained, fold_of, train_pair

Vector = NDArray[np.float64]
DRAWS: Final = 1000


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of rows (n,): ranking score, probability that strong is better, abstained flags."""

    rank: Vector
    probability: Vector
    abstained: NDArray[np.bool_]

    @property
    def gated(self) -> Vector:
        """Ranking scores of the router: abstained rows first."""
        return np.where(self.abstained, np.inf, self.rank)


@dataclass(frozen=True, slots=True)
class Report:
    """One measurement; `gap` is mean quality of strong minus weak."""

    n: int
    gap: float
    apgr: Interval
    cpt50: Interval
    cpt80: Interval
    ece: float
    ece_debiased: float
    brier: float
    abstained: float
    gated: float


def score(artifact: Artifact, examples: Sequence[Example]) -> Scores:
    """Score each row by its pair's model, or by `*` if the artifact has no model of the pair."""
    models: dict[str, Difficulty] = {}
    rank, probability, abstained = [], [], []
    for example in examples:
        if example.pair not in models:
            models[example.pair] = Difficulty(artifact, example.weak, example.strong)
        one = models[example.pair].judge(example.features, example.view)
        rank.append(one.value)
        probability.append(one.probability)
        abstained.append(one.abstained)
    return Scores(np.array(rank), np.array(probability), np.array(abstained, bool))


def gains(examples: Sequence[Example]) -> Vector:
    """Quality of strong minus weak of each row."""
    return np.array([e.y_strong - e.y_weak for e in examples], float)


def report(scores: Scores, gain: Vector, draws: int = DRAWS, seed: int = 0) -> Report:
    """All numbers of one set of rows; bootstrap over rows, seeded."""
    rng = np.random.default_rng(seed)
    metrics: tuple[Callable[[Vector, Vector], float], ...] = (
        curves.apgr,
        lambda s, g: curves.cpt(s, g, 0.5),
        lambda s, g: curves.cpt(s, g, 0.8),
    )
    drawn: list[list[float]] = [[], [], []]
    for _ in range(draws):
        rows = rng.integers(0, len(gain), len(gain))
        if gain[rows].mean() > 0:
            for kept, metric in zip(drawn, metrics, strict=True):
                kept.append(metric(scores.rank[rows], gain[rows]))
    intervals = [
        curves.bounds(kept, metric(scores.rank, gain))
        for kept, metric in zip(drawn, metrics, strict=True)
    ]
    better = (gain > 0).astype(float)
    probability = scores.probability
    return Report(
        len(gain), float(gain.mean()), intervals[0], intervals[1], intervals[2],
        curves.ece(probability, better), curves.debiased_ece(probability, better, rng),
        curves.brier(probability, better), float(scores.abstained.mean()),
        curves.apgr(scores.gated, gain),
    )  # fmt: skip


def as_artifact(trained: Trained, common: bytes, name: str = "local") -> Artifact:
    """An artifact that holds one trained pair."""
    key = trained.model.name
    return Artifact(name, {}, {key: trained.model}, {key: trained.tables}, common)


def fit_and_score(train: Sequence[Example], test: Sequence[Example], common: bytes) -> Scores:
    """Train on some rows of one pair and score others of the same pair."""
    first = train[0]
    trained = train_pair(train, first.weak, first.strong, common)
    return score(as_artifact(trained, common), test)


def fold(example: Example) -> int:
    """The fold of a row in grouped 5-fold evaluation; other folds than those of training."""
    return fold_of(example.group, "evaluate-v1:")


def cross_validated(
    examples: Sequence[Example], fit: Callable[[Sequence[Example], Sequence[Example]], Scores]
) -> Scores:
    """Scores by grouped 5-fold: each row by a model trained without its fold."""
    folds = np.array([fold(e) for e in examples])
    rank, probability = np.zeros(len(examples)), np.zeros(len(examples))
    abstained = np.zeros(len(examples), bool)
    for one in range(FOLDS):
        held = [int(i) for i in np.flatnonzero(folds == one)]
        kept = [e for e, f in zip(examples, folds, strict=True) if f != one]
        if held:
            part = fit(kept, [examples[i] for i in held])
            rank[held], probability[held] = part.rank, part.probability
            abstained[held] = part.abstained
    return Scores(rank, probability, abstained)


def draw(examples: Sequence[Example], labels: int, seed: int) -> tuple[list[int], list[int]]:
    """Rows with about `labels` labels, whole groups, at most `labels`; and all other rows."""
    groups = sorted({e.group for e in examples})
    order = np.random.default_rng(seed).permutation(len(groups))
    sizes: dict[str, int] = {}
    for example in examples:
        sizes[example.group] = sizes.get(example.group, 0) + 1
    chosen: set[str] = set()
    room = labels
    for index in order:
        if sizes[groups[index]] <= room:
            chosen.add(groups[index])
            room -= sizes[groups[index]]
        if room == 0:
            break
    inside = [i for i, e in enumerate(examples) if e.group in chosen]
    return inside, [i for i, e in enumerate(examples) if e.group not in chosen]


def difference(a: Vector, b: Vector, gain: Vector, draws: int = DRAWS, seed: int = 0) -> Interval:
    """APGR of ranking `a` minus that of `b` on the same rows, paired bootstrap."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        rows = rng.integers(0, len(gain), len(gain))
        if gain[rows].mean() > 0:
            drawn.append(curves.apgr(a[rows], gain[rows]) - curves.apgr(b[rows], gain[rows]))
    return curves.bounds(drawn, curves.apgr(a, gain) - curves.apgr(b, gain))


def false_easy(scores: Scores, gain: Vector, threshold: float) -> float:
    """Share of rows sent to weak (score below threshold) where only strong was right."""
    small = ~scores.abstained & (scores.rank < threshold)
    return float((gain[small] > 0).mean()) if small.any() else 0.0


def is_generic(artifact: Artifact, example: Example) -> bool:
    """True if the artifact can only score this row's pair by its model of any pair."""
    return example.pair not in artifact.pairs and ANY in artifact.pairs
