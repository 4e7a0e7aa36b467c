"""Measuring a difficulty model on rows it has not seen, with bootstrap bounds.

APGR, CPT and calibration are of the scores of all rows. `gated` is the APGR of the router: there
an abstained row goes to the strong model first, whatever its score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.difficulty import curves
from classifiers.difficulty.artifact import ANY, Artifact
from classifiers.difficulty.bootstrap import Resampled, drawing
from classifiers.difficulty.curves import FEW, Interval
from classifiers.difficulty.dataset import TOLD_EACH, Example
from classifiers.difficulty.scorer import Difficulty
from classifiers.difficulty.training import FOLDS, TooFewRows, Trained, fold_of, train_pair

Vector = NDArray[np.float64]
DRAWS: Final = 1000
SURE: Final = 50
"""Bootstrap bounds of fewer different prompts than this are too narrow."""
Passed = Callable[[int], None]
"""Progress: how much is done."""


class NoRows(Exception):
    """There is nothing to measure on."""


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

    def only(self, rows: NDArray[np.bool_]) -> Scores:
        """The scores of some of the rows."""
        return Scores(self.rank[rows], self.probability[rows], self.abstained[rows])


@dataclass(frozen=True, slots=True)
class Report:
    """One measurement; `gap` is mean quality of strong minus weak.

    `left_out`: share of bootstrap draws without a gap, which the bounds are not of. `unsaid`: why
    there are no APGR and CPT (then they are not numbers), or an empty string. `prompts`: how many
    different ones the rows have.
    """

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
    left_out: float = 0.0
    unsaid: str = ""
    prompts: int = 0


def score(
    artifact: Artifact, examples: Sequence[Example], passed: Passed = lambda _: None
) -> Scores:
    """Score each row by its pair's model, or by `*` if the artifact has no model of the pair.

    `passed` is told how many rows are scored, now and then.
    """
    models: dict[str, Difficulty] = {}
    rank, probability, abstained = [], [], []
    for number, example in enumerate(examples):
        if number % TOLD_EACH == 0:
            passed(number)
        if example.pair not in models:
            models[example.pair] = Difficulty(artifact, example.weak, example.strong)
        one = models[example.pair].judge(example.features, example.view)
        rank.append(one.value)
        probability.append(one.probability)
        abstained.append(one.abstained)
    return Scores(np.array(rank), np.array(probability), np.array(abstained, bool))


def groups_of(examples: Sequence[Example]) -> list[str]:
    """The group of each row."""
    return [e.group for e in examples]


def gains(examples: Sequence[Example]) -> Vector:
    """Quality of strong minus weak of each row."""
    return np.array([e.y_strong - e.y_weak for e in examples], float)


def report(
    scores: Scores,
    gain: Vector,
    draws: int = DRAWS,
    seed: int = 0,
    passed: Passed = lambda _: None,
    groups: Sequence[str] = (),
) -> Report:
    """All numbers of one set of rows; bootstrap, seeded. Raises NoRows for none.

    `groups`: rows of one group are drawn together, so that copies of a row make nothing surer.
    `passed` is told before each draw how many there were.
    """
    if not len(gain):
        raise NoRows("there are no rows to measure on")
    rng = np.random.default_rng(seed)
    drawn, left_out = _drawn(scores.rank, gain, draws, rng, passed, groups)
    unsaid = _unsaid(gain)
    metrics: tuple[Callable[[Vector, Vector], float], ...] = (
        curves.apgr, partial(curves.cpt, target=0.5), partial(curves.cpt, target=0.8),
    )  # fmt: skip
    intervals = [
        Interval(nan, nan, nan) if unsaid else curves.bounds(kept, metric(scores.rank, gain))
        for kept, metric in zip(drawn, metrics, strict=True)
    ]
    better = (gain > 0).astype(float)
    probability = scores.probability
    return Report(
        len(gain), float(gain.mean()), intervals[0], intervals[1], intervals[2],
        curves.ece(probability, better), curves.debiased_ece(probability, better, rng),
        curves.brier(probability, better), float(scores.abstained.mean()),
        nan if unsaid else curves.apgr(scores.gated, gain), left_out, unsaid,
        len(set(groups)) or len(gain),
    )  # fmt: skip


def _drawn(
    rank: Vector,
    gain: Vector,
    draws: int,
    rng: np.random.Generator,
    passed: Passed,
    groups: Sequence[str],
) -> tuple[tuple[list[float], list[float], list[float]], float]:
    """APGR, CPT50 and CPT80 of each draw that has a gain; the share of draws that have none."""
    resampled, drawn = Resampled(rank, gain), drawing(len(gain), groups)
    areas: list[float] = []
    halves: list[float] = []
    most: list[float] = []
    for number in range(draws):
        passed(number)
        curve = resampled.curve(drawn(rng))
        if curve is not None:
            areas.append(curve.area())
            halves.append(curve.reach(0.5))
            most.append(curve.reach(0.8))
    return (areas, halves, most), 1.0 - len(areas) / max(draws, 1)


def _unsaid(gain: Vector) -> str:
    """Why there is no recovered quality to speak of, or an empty string."""
    mean = float(gain.mean())
    if mean > 0:
        return ""
    if mean < 0:
        return (
            f"strong is worse than weak on these rows (by {-mean:.4f} on average): there is no "
            "quality to recover; is the pair the other way round?"
        )
    return "strong is as good as weak on these rows: there is no quality to recover"


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
    """Scores by grouped 5-fold: each row by a model trained without its fold.

    Raises TooFewRows, also where all rows are in one fold.
    """
    folds = np.array([fold(e) for e in examples])
    rank, probability = np.zeros(len(examples)), np.zeros(len(examples))
    abstained = np.zeros(len(examples), bool)
    for one in range(FOLDS):
        held = [int(i) for i in np.flatnonzero(folds == one)]
        kept = [e for e, f in zip(examples, folds, strict=True) if f != one]
        if held and not kept:
            raise TooFewRows(f"all {len(held)} rows are in one fold: there is nothing to train on")
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


def difference(
    a: Vector,
    b: Vector,
    gain: Vector,
    draws: int = DRAWS,
    seed: int = 0,
    groups: Sequence[str] = (),
) -> Interval:
    """APGR of ranking `a` minus that of `b` on the same rows, paired bootstrap.

    `groups`: rows of one group are drawn together, so that copies of a row make nothing surer.
    Not a number where strong is not better than weak on the rows; bounds are none either where
    that is so in more than one draw in forty, since they would leave those out.
    """
    rng = np.random.default_rng(seed)
    first, second, drawn = Resampled(a, gain), Resampled(b, gain), []
    draw_one = drawing(len(gain), groups)
    for _ in range(draws):
        counts = draw_one(rng)
        one, other = first.curve(counts), second.curve(counts)
        if one is not None and other is not None:
            drawn.append(one.area() - other.area())
    if not gain.mean() > 0:
        return Interval(nan, nan, nan)
    value = curves.apgr(a, gain) - curves.apgr(b, gain)
    sure = len(drawn) >= draws * (1 - FEW)
    return curves.bounds(drawn, value) if sure else Interval(value, nan, nan)


def false_easy(scores: Scores, gain: Vector, threshold: float) -> float:
    """Share of rows sent to weak (score below threshold) where only strong was right."""
    small = ~scores.abstained & (scores.rank < threshold)
    return float((gain[small] > 0).mean()) if small.any() else 0.0


def is_generic(artifact: Artifact, example: Example) -> bool:
    """True if the artifact can only score this row's pair by its model of any pair."""
    return example.pair not in artifact.pairs and ANY in artifact.pairs
