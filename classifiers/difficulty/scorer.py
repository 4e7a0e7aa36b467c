"""The hot path: features of one prompt to a signed gain, a probability or an abstention.

Nothing but the standard library. Table sums are integers, so they are exact in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul, sub
from typing import Final, NamedTuple

from classifiers.difficulty.artifact import ANY, Artifact, PairModel, Tables
from classifiers.difficulty.features import Features, extract
from classifiers.difficulty.gate import TEXT, Gate
from classifiers.view import PromptView

CLIP: Final = 3.0
_SHIFT: Final = 32
_LOW: Final = (1 << _SHIFT) - 1


class Score(NamedTuple):
    """`value`: expected quality of strong minus weak; `probability`: that strong is better.

    `abstained` means the model does not know, for `reason`: use the larger tier. `version` and
    `pair` name the model; `cut` says that only head and tail of the text were read.
    """

    value: float
    probability: float
    abstained: bool
    reason: str
    version: str
    pair: str
    cut: bool


class Scorer:
    """One pair's tables and head, unpacked for speed. Inputs that never count are left out."""

    __slots__ = (
        "_centre", "_directions", "_intercept", "_inverse", "_linear", "_model", "_table", "gate",
    )  # fmt: skip

    def __init__(self, model: PairModel, tables: Tables) -> None:
        # One lookup serves both heads: 32 bits each, bytes shifted to be positive.
        weak = tables.weak.translate(_OFFSET)
        strong = tables.strong.translate(_OFFSET)
        self._table = [low | high << _SHIFT for low, high in zip(weak, strong, strict=True)]
        self._model = model
        self.gate = Gate(model.envelope, tables.known)
        head = model.head
        # The text's structure always stays: the gate measures its distance.
        last = max(
            [2 + TEXT, *(1 + i for i, w in enumerate(head.linear) if w)]
            + [1 + i for one in head.directions for i, w in enumerate(one) if w]
        )
        self._centre = head.centre[:last]
        self._inverse = tuple(1.0 / spread for spread in head.spread[:last])
        self._intercept = head.intercept
        self._linear = head.linear[:last]
        self._directions = tuple(
            (weight, one[:last]) for weight, one in zip(head.weights, head.directions, strict=True)
        )

    def base(self, features: Features) -> tuple[float, float]:
        """Predicted quality of the weak and of the strong model by the linear heads."""
        size = len(features.buckets)
        total = sum(map(self._table.__getitem__, features.buckets))
        norm = sqrt(size) if size else 1.0
        model = self._model
        return (
            ((total & _LOW) - 128 * size) * model.scales[0] / norm + model.offsets[0],
            ((total >> _SHIFT) - 128 * size) * model.scales[1] / norm + model.offsets[1],
        )

    def standard(self, features: Features) -> list[float]:
        """z-scores of the inputs, not clipped: base heads first, then structure."""
        inputs = self.base(features) + features.structure
        return list(map(mul, map(sub, inputs, self._centre), self._inverse))

    def gain(self, standard: list[float]) -> float:
        """Signed gain of the whole model from `standard`; see `Head`."""
        z = [
            (v if v > -CLIP else -CLIP) if v < CLIP else CLIP  # noqa: FURB136 - a call costs more
            for v in standard
        ]
        value: float = self._intercept + sum(map(mul, self._linear, z))
        for weight, direction in self._directions:
            along: float = sum(map(mul, direction, z))
            value += weight * along * along
        return value


def interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Linear between increasing points, constant outside; 0.5 without points."""
    at = bisect_right(xs, x)
    if 0 < at < len(xs):
        left = xs[at - 1]
        return ys[at - 1] + (ys[at] - ys[at - 1]) * (x - left) / (xs[at] - left)
    return (ys[0] if at == 0 else ys[-1]) if ys else 0.5


class Difficulty:
    """Scores views for one pair; without a model of its own the pair is scored by `*`.

    Raises KeyError if the artifact has neither.
    """

    __slots__ = ("_knots", "_scorer", "model", "version")

    def __init__(self, artifact: Artifact, weak: str, strong: str) -> None:
        name = f"{weak}:{strong}"
        self.model = artifact.pairs[name if name in artifact.pairs else ANY]
        self.version = artifact.version()
        self._knots = [x for x, _ in self.model.knots], [y for _, y in self.model.knots]
        self._scorer = Scorer(self.model, artifact.tables[self.model.name])

    @property
    def own(self) -> bool:
        """True if the model was trained on outcomes of this very pair."""
        return self.model.name != ANY

    def score(self, view: PromptView) -> Score:
        """The score of one view. Total over views: it does not raise."""
        return self.judge(extract(view), view)

    def judge(self, features: Features, view: PromptView) -> Score:
        """The score of extracted features; `view` says what the text could not."""
        standard = self._scorer.standard(features)
        refusal = self._scorer.gate.refusal(features, view, standard)
        value = self._scorer.gain(standard)
        if not isfinite(value):
            value, refusal = 0.0, "not_finite"
        probability = interpolate(*self._knots, value)
        return Score(
            value, probability, bool(refusal), refusal, self.version,
            self.model.name, features.cut,
        )  # fmt: skip


_OFFSET: Final = bytes((byte + 128) & 255 for byte in range(256))
