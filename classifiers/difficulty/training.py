"""Training: two hashed ridge heads per pair, then a small quadratic head over them.

The signed gain is what routing needs, but its labels are mostly zero. Predicting the quality of
each model first, out of fold, and combining both with the structure of the prompt ranks better
than one ridge on the gain: the gain is largest where the weak model fails and the strong one
does not yet. Everything is solved in a fixed order and rounded, so a recipe repeats exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from classifiers.difficulty import commonness, ridge
from classifiers.difficulty.artifact import ANY, BASE, Envelope, Head, PairModel, Tables
from classifiers.difficulty.calibration import platt_knots
from classifiers.difficulty.curves import floor_points
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import BUCKETS, STRUCTURE, TEXT
from classifiers.difficulty.head import CLIP

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
FOLDS: Final = 5
RANK: Final = 6
PENALTIES: Final = (100.0, 300.0, 1000.0, 3000.0, 10000.0)
MANY: Final = 3000
_DIGITS: Final = 9
_LEAST: Final = 1e-12
_STEM: Final = BASE + STRUCTURE.index("stem")


class TooFewRows(Exception):
    """There are not enough rows, or only one kind of outcome, to train on."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A pair model, its tables, and its gains on its own rows, each made without that row."""

    model: PairModel
    tables: Tables
    gains: Vector


def fold_of(group: str, salt: str = "fold-v1:", folds: int = FOLDS) -> int:
    """The fold of a group: fixed by its name, so that a stem never parts."""
    return crc32((salt + group).encode()) % folds


def train_pair(examples: Sequence[Example], weak: str, strong: str, common: bytes) -> Trained:
    """Train the model of one pair. Raises TooFewRows below 50 rows, or without any gain."""
    _enough(examples)
    y = _outcomes(examples)
    x = ridge.design([e.features for e in examples])
    penalty = 10.0 if len(examples) >= MANY else 5.0
    base = _out_of_fold(x, y, [fold_of(e.group) for e in examples], penalty)
    weights, means = ridge.fit(x, y, penalty)
    square = 0.5 if len(examples) >= MANY else 0.3
    inputs = np.hstack([base, _structure(examples, common)])
    trained = _assembled(examples, (weak, strong), inputs, y, _quantised(weights), means, square,
                         range(inputs.shape[1]))  # fmt: skip
    return _floored(trained, examples)


def train_any(examples: Sequence[Example], common: bytes) -> Trained:
    """The model for pairs without their own: longer questions gain more, nothing else.

    Words learned from one pair order the prompts of another no better than chance, or worse
    (measured by leaving sources out), so its tables are empty. Rows are centred by source.
    """
    _enough(examples)
    y = _outcomes(examples)
    sources = np.array([e.source for e in examples])
    overall = y.mean(axis=0)
    for source in sorted(set(sources)):
        y[sources == source] += overall - y[sources == source].mean(axis=0)
    inputs = np.hstack([np.tile(overall, (len(y), 1)), _structure(examples, common)])
    empty = _quantised(np.zeros((BUCKETS, 2)))
    trained = _assembled(examples, (ANY, ANY), inputs, y, empty, overall, 0.0, (_STEM,))
    return _floored(trained, examples)


def _enough(examples: Sequence[Example]) -> None:
    if len(examples) < 50:
        raise TooFewRows(f"{len(examples)} rows; at least 50 are needed")
    if all(e.y_strong == e.y_weak for e in examples):
        raise TooFewRows(
            f"both models have the same outcome in all {len(examples)} rows of "
            f"`{examples[0].pair}` (outcomes are cut at 0.5): there is nothing to learn"
        )


def _outcomes(examples: Sequence[Example]) -> Matrix:
    return np.array([(e.y_weak, e.y_strong) for e in examples])


def _structure(examples: Sequence[Example], common: bytes) -> Matrix:
    return np.array(
        [(commonness.mean(common, e.features), *e.features.structure) for e in examples]
    )


def _assembled(
    examples: Sequence[Example],
    pair: tuple[str, str],
    inputs: Matrix,
    y: Matrix,
    quantised: tuple[tuple[bytes, bytes], tuple[float, float]],
    means: Vector,
    square: float,
    only: Sequence[int],
) -> Trained:
    """All but the `floor`, see `_floored`."""
    gain = y[:, 1] - y[:, 0]
    head, gains = _fit_head(inputs, gain, square, only)
    true = np.array([e.y_strong - e.y_weak for e in examples])
    known = _known(examples, _common(examples))
    model = PairModel(
        pair[0], pair[1], len(examples), quantised[1], (_rounded(means[0]), _rounded(means[1])),
        head, _envelope(examples, inputs[:, BASE:], head), platt_knots(gains, true > 0),
        tuple(_rounded(q) for q in np.quantile(gains, np.linspace(0, 1, 101))),
        (),
    )  # fmt: skip
    return Trained(model, Tables(*quantised[0], known.tobytes()), gains)


def _floored(trained: Trained, examples: Sequence[Example]) -> Trained:
    gain = np.array([e.y_strong - e.y_weak for e in examples])
    floor = floor_points(trained.gains, gain, groups=[e.group for e in examples])
    return replace(trained, model=replace(trained.model, floor=floor))


def _out_of_fold(x: sparse.csr_matrix, y: Matrix, fold: Sequence[int], penalty: float) -> Matrix:
    folds = np.array(fold)
    predicted = np.tile(y.mean(axis=0), (len(folds), 1))
    for one in range(FOLDS):
        held = folds == one
        if held.any() and not held.all():
            predicted[held] = ridge.predict(x[held], ridge.fit(x[~held], y[~held], penalty))
    return predicted


def _quantised(weights: Matrix) -> tuple[tuple[bytes, bytes], tuple[float, float]]:
    tables, scales = [], []
    for head in range(2):
        scale = _rounded(float(np.abs(weights[:, head]).max()) / 127 or 1.0)
        tables.append(np.rint(weights[:, head] / scale).clip(-127, 127).astype(np.int8).tobytes())
        scales.append(scale)
    return (tables[0], tables[1]), (scales[0], scales[1])


def _fit_head(
    inputs: Matrix, gain: Vector, square: float, only: Sequence[int]
) -> tuple[Head, Vector]:
    """Ridge on z and `square` * products of z; the penalty by leave-one-out error.

    `only`: the inputs that may count. Also returns the left-out gains (rows,).
    """
    centre, spread = inputs.mean(axis=0), inputs.std(axis=0)
    spread[spread < 1e-9] = 1.0
    z = np.clip((inputs - centre) / spread, -CLIP, CLIP)
    z[:, [i for i in range(z.shape[1]) if i not in only]] = 0.0
    left, right = np.triu_indices(z.shape[1])
    terms = np.hstack([z, square * z[:, left] * z[:, right]]) if square else z
    weights, loo = _leave_one_out(terms - terms.mean(axis=0), gain)
    linear, products = weights[: z.shape[1]], np.zeros((z.shape[1], z.shape[1]))
    if square:
        products[left, right] = square * weights[z.shape[1] :]
    values, vectors = np.linalg.eigh((products + products.T) / 2)
    best = np.argsort(-np.abs(values), kind="stable")[: RANK if square else 0]
    # What counts for nothing may point anywhere, on each kind of processor elsewhere.
    best = best[np.abs(values[best]) >= _LEAST]
    raw = z @ linear + (z @ vectors[:, best]) ** 2 @ values[best]
    head = Head(
        _rounded(float(gain.mean() - raw.mean())), _numbers(centre), _numbers(spread),
        _numbers(linear), _numbers(values[best]),
        tuple(_numbers(vector) for vector in _signed(vectors[:, best]).T),
    )  # fmt: skip
    return head, loo


def _leave_one_out(terms: Matrix, gain: Vector) -> tuple[Vector, Vector]:
    u, s, vt = np.linalg.svd(terms, full_matrices=False)
    mean, along = gain.mean(), u.T @ (gain - gain.mean())
    fits = []
    for penalty in PENALTIES:
        shrink = s * s / (s * s + penalty)
        leverage = (u * u) @ shrink + 1 / len(gain)
        error = (gain - mean - u @ (shrink * along)) / (1 - leverage)
        weights = vt.T @ (s / (s * s + penalty) * along)
        fits.append((float((error * error).mean()), weights, gain - error))
    _, weights, left_out = min(fits, key=lambda fit: fit[0])
    return weights, left_out


def _common(examples: Sequence[Example]) -> int:
    """How many rows a word must be in to be known: two, or one row in a thousand.

    Among many rows a few are in other languages, and any word shares a bucket with some rare one.
    """
    return max(2, len(examples) // 1000)


def _known(examples: Sequence[Example], least: int) -> NDArray[np.uint8]:
    counts = np.zeros(BUCKETS, np.int64)
    for example in examples:
        counts[example.features.words] += 1
    return (counts >= least).astype(np.uint8)


def _envelope(examples: Sequence[Example], structure: Matrix, head: Head) -> Envelope:
    # One more: a row's own words do not vouch for it.
    others = _known(examples, _common(examples) + 1)
    words = [e.features.words for e in examples]
    known = [float(others[w].mean()) if w else 0.0 for w in words]
    distinct = [e.features.distinct for e in examples if e.features.count >= 20] or [0.0]
    centre, spread = np.array(head.centre[BASE:]), np.array(head.spread[BASE:])
    distance = (((structure - centre) / spread)[:, :TEXT] ** 2).mean(axis=1)
    return Envelope(
        known=_rounded(float(np.quantile(known, 0.001))),
        wide=_rounded(max(0.02, float(np.quantile([e.features.wide for e in examples], 0.999)))),
        distinct=_rounded(float(np.quantile(distinct, 0.0005))),
        distance=_rounded(float(np.quantile(distance, 0.999))),
        words=min(5, max(3, int(np.quantile([e.features.count for e in examples], 0.0005)))),
        calls=_numbers(structure[:, TEXT:].max(axis=0)),
        # Questions about code among others are few: what they have must not open the gate for it.
        code=_rounded(max(0.002, float(np.quantile([e.features.code for e in examples], 0.995)))),
    )


def _signed(vectors: Matrix) -> Matrix:
    """The columns with their largest part positive: of a vector and its opposite, which mean the
    same here, one kind of processor finds the one and another the other."""
    largest = np.abs(vectors).round(_DIGITS).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _rounded(value: float) -> float:
    """To _DIGITS digits, and to nothing below _LEAST: there it is only the order of additions."""
    value = float(value)
    return float(f"{value:.{_DIGITS}g}") if abs(value) >= _LEAST else 0.0


def _numbers(values: Vector) -> tuple[float, ...]:
    return tuple(_rounded(value) for value in values)
