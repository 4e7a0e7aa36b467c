"""The hot path: features of one prompt to a signed gain, a probability or an abstention.

Nothing but the standard library. Table sums are integers, so they are exact in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from operator import mul
from typing import Final

from classifiers.difficulty.artifact import ANY, Artifact, PairModel, Tables
from classifiers.difficulty.features import Features, extract
from classifiers.difficulty.gate import Gate
from classifiers.view import PromptView

CLIP: Final = 3.0
_SHIFT: Final = 32
_LOW: Final = (1 << _SHIFT) - 1


@dataclass(frozen=True, slots=True)
class Score:
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
    """One pair's tables and head, unpacked for speed."""

    __slots__ = ("_centre", "_directions", "_linear", "_model", "_spread", "_table", "gate")

    def __init__(self, model: PairModel, tables: Tables) -> None:
        # One lookup serves both heads: 32 bits each, bytes shifted to be positive.
        weak = tables.weak.translate(_OFFSET)
        strong = tables.strong.translate(_OFFSET)
        self._table = [low | high << _SHIFT for low, high in zip(weak, strong, strict=True)]
        self._model = model
        head = model.head
        self._centre, self._linear = head.centre, head.linear
        self._spread = tuple(1.0 / one for one in head.spread)
        self._directions = tuple(zip(head.weights, head.directions, strict=True))
        self.gate = Gate(model.envelope, head.centre[2:], head.spread[2:], tables.known)

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

    def gain(self, features: Features) -> float:
        """Signed gain of the whole model; see `Head`."""
        inputs = self.base(features) + features.structure
        z = [
            CLIP if v > CLIP else max(v, -CLIP)
            for v in [
                (x - c) * s for x, c, s in zip(inputs, self._centre, self._spread, strict=True)
            ]
        ]
        value: float = self._model.head.intercept + sum(map(mul, self._linear, z))
        for weight, direction in self._directions:
            along: float = sum(map(mul, direction, z))
            value += weight * along * along
        return value


def interpolate(knots: Sequence[tuple[float, float]], x: float) -> float:
    """Linear between increasing knots, constant outside; 0.5 without knots."""
    if not knots:
        return 0.5
    at = bisect_right(knots, (x, float("inf")))
    if at == 0:
        return knots[0][1]
    if at == len(knots):
        return knots[-1][1]
    (x0, y0), (x1, y1) = knots[at - 1], knots[at]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


class Difficulty:
    """Scores views for one pair; without a model of its own the pair is scored by `*`.

    Raises KeyError if the artifact has neither.
    """

    __slots__ = ("_scorer", "model", "version")

    def __init__(self, artifact: Artifact, weak: str, strong: str) -> None:
        name = f"{weak}:{strong}"
        self.model = artifact.pairs[name if name in artifact.pairs else ANY]
        self.version = artifact.version()
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
        refusal = self._scorer.gate.refusal(features, view)
        value = self._scorer.gain(features)
        if not isfinite(value):
            value, refusal = 0.0, "not_finite"
        return Score(
            value, interpolate(self.model.knots, value), bool(refusal), refusal, self.version,
            self.model.name, features.cut,
        )  # fmt: skip


_OFFSET: Final = bytes((byte + 128) & 255 for byte in range(256))
