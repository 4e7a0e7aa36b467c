"""The hot path: features of one prompt to a signed gain, a probability or an abstention.

Nothing but the standard library. Sums over tables and over the head are of integers: exact in any
order, the same in every Python and in `compiled.c`, and several of them fit into one number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from classifiers.difficulty.artifact import ANY, BASE, Artifact, PairModel, Tables
from classifiers.difficulty.compiled import Library, load
from classifiers.difficulty.features import TEXT, Extracted, Features, extracted
from classifiers.difficulty.gate import Gate, Measured
from classifiers.difficulty.head import CLIP, UNIT, WEIGHT, whole
from classifiers.view import PromptView

# Sums of up to 1,023 words in one number of 63 bits: weak, strong, known, common.
_SHIFT: Final = 19
_LOW: Final = (1 << _SHIFT) - 1
_KNOWN: Final = 2 * _SHIFT
_COMMON: Final = _KNOWN + 10
_KNOWN_LOW: Final = (1 << 10) - 1
_LANE: Final = 64
_HALF: Final = 1 << (_LANE - 1)
_DOWN: Final = 1.0 / (UNIT * WEIGHT)
_SQUARE: Final = 1.0 / (UNIT * UNIT)
_TOP: Final = CLIP * UNIT
_BOTTOM: Final = -_TOP
_MADE: Final = tuple.__new__
"""What a NamedTuple calls to make itself, at half of its cost."""


class Score(NamedTuple):
    """`value`: expected quality of strong minus weak; `probability`: that strong is better.

    `abstained` means the model does not know, for `reason`: use the larger tier. `version` and
    `pair` name the model; `cut` says that only head and tail of the text were read. `known`: share
    of the text's different words that training rows had.
    """

    value: float
    probability: float
    abstained: bool
    reason: str
    version: str
    pair: str
    cut: bool
    known: float = 1.0


class Scorer:
    """One pair's tables and head, packed for speed. Raises ValueError as `whole` does."""

    __slots__ = (
        "_centre", "_intercept", "_inverse", "_line", "_packed", "_size", "_squares", "_start",
        "_sums", "_unpack",
    )  # fmt: skip

    def __init__(self, model: PairModel, tables: Tables, common: bytes) -> None:
        # One lookup serves four sums; signed bytes are shifted to be positive.
        weak, strong = tables.weak.translate(_OFFSET), tables.strong.translate(_OFFSET)
        # Equal numbers are one object: few of them, so that they stay in the processor's cache.
        one: dict[int, int] = {}
        table = [
            one.setdefault(sums := w | s << _SHIFT | known << _KNOWN | level << _COMMON, sums)
            for w, s, known, level in zip(weak, strong, tables.known, common, strict=True)
        ]
        self._sums = table.__getitem__
        head = whole(model.head)
        self._centre, self._inverse = head.centre, head.inverse
        self._intercept, self._squares = head.intercept, head.squares
        self._line = *model.scales, *model.offsets
        # One multiplication serves all rows: 64 bits each. At the end they are shifted to be
        # positive, and the highest bit of each, turned back, makes them signed again.
        shifts = range(0, _LANE * len(head.rows), _LANE)
        self._packed = tuple(
            sum(weight << shift for weight, shift in zip(column, shifts, strict=True))
            for column in zip(*head.rows, strict=True)
        )
        self._start = sum(_HALF << shift for shift in shifts)
        lanes = Struct(f"<{len(head.rows)}q")
        self._unpack, self._size = lanes.unpack, lanes.size

    def measure(self, fields: Extracted) -> Measured:
        """What the gate and the score need of the fields of `Features`."""
        stem, options, count, structure, wide, distinct, cut, code = fields
        base, known = self._base(stem, options)
        inputs = base + structure
        standard = [
            (x - centre) * inverse
            for x, centre, inverse in zip(inputs, self._centre, self._inverse)  # noqa: B905
        ]
        a, b, c, d, e, f, g = standard[BASE : BASE + TEXT]
        distance = a * a + b * b + c * c + d * d + e * e + f * f + g * g
        return (
            self._gain(standard), distance * _SQUARE, known, wide, distinct, count, cut,
            structure[TEXT:], code,
        )  # fmt: skip

    def base(self, features: Features) -> tuple[tuple[float, float, float], float]:
        """Predicted quality of both models and how common words are; the share of known words."""
        return self._base(features.stem, features.options)

    def _base(self, stem: set[int], options: set[int]) -> tuple[tuple[float, float, float], float]:
        size = len(stem) + len(options)
        sums = self._sums
        first = sum(map(sums, options)) if options else 0
        total = first + sum(map(sums, stem))
        least = size or 1
        weak, strong, from_weak, from_strong = self._line
        norm, shift = sqrt(least), 128 * size
        common = (first >> _COMMON) / len(options) if options else (total >> _COMMON) / least
        return (
            ((total & _LOW) - shift) * weak / norm + from_weak,
            ((total >> _SHIFT & _LOW) - shift) * strong / norm + from_strong,
            common,
        ), (total >> _KNOWN & _KNOWN_LOW) / least

    def _gain(self, standard: list[float]) -> float:
        """Signed gain of the whole model from z-scores times UNIT; see `Head`."""
        clipped = [
            int(z if _BOTTOM < z < _TOP else _BOTTOM if z <= _BOTTOM else _TOP) for z in standard
        ]
        total = sum(map(mul, clipped, self._packed), self._start)
        linear, *along = self._unpack((total ^ self._start).to_bytes(self._size, "little"))
        value: float = self._intercept + linear * _DOWN
        for weight, lane in zip(self._squares, along, strict=True):
            size = lane * _DOWN
            value += weight * size * size
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

    With a compiled `library` views are measured by it, to the same numbers. Raises KeyError if
    the artifact has neither model, ValueError for a head as `whole` does.
    """

    __slots__ = (
        "_common",
        "_compiled",
        "_gains",
        "_library",
        "_odds",
        "_pair",
        "_refusal",
        "_scorer",
        "_tables",
        "model",
        "version",
    )

    def __init__(
        self, artifact: Artifact, weak: str, strong: str, library: Library | None = None
    ) -> None:
        name = f"{weak}:{strong}"
        model = artifact.pairs[name if name in artifact.pairs else ANY]
        tables = artifact.tables[model.name]
        self._fill(model, tables, artifact.common, artifact.version(), library)

    def _fill(
        self,
        model: PairModel,
        tables: Tables,
        common: bytes,
        version: str,
        library: Library | None,
    ) -> None:
        self.model, self.version = model, version
        self._tables, self._common, self._library = tables, common, library
        self._gains, self._odds = [x for x, _ in model.knots], [y for _, y in model.knots]
        self._scorer = Scorer(model, tables, common)
        self._pair, self._refusal = model.name, Gate(model.envelope).refusal
        head = whole(model.head)
        self._compiled = None if library is None else library.scorer(model, tables, common, head)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Made anew in another process: a library's addresses mean nothing there."""
        path = None if self._library is None else self._library.path
        return _again, (self.model, self._tables, self._common, self.version, path)

    @property
    def own(self) -> bool:
        """True if the model was trained on outcomes of this very pair."""
        return self.model.name != ANY

    def score(self, view: PromptView) -> Score:
        """The score of one view. Total over views: it does not raise."""
        if self._compiled is not None:
            return self._judged(self._compiled.measure(view), view)
        return self._judged(self._scorer.measure(extracted(view)), view)

    def judge(self, features: Features, view: PromptView) -> Score:
        """The score of extracted features; `view` says what the text could not."""
        return self._judged(self._scorer.measure(features.fields), view)

    def _judged(self, measured: Measured, view: PromptView) -> Score:
        refusal = self._refusal(measured, view)
        value = measured[0]
        if not isfinite(value):
            value, refusal = 0.0, "not_finite"
        probability = interpolate(self._gains, self._odds, value)
        return _MADE(Score, (
            value, probability, refusal != "", refusal, self.version, self._pair, measured[6],
            measured[2],
        ))  # fmt: skip


def _again(
    model: PairModel, tables: Tables, common: bytes, version: str, path: Path | None
) -> Difficulty:
    made = Difficulty.__new__(Difficulty)
    library = None if path is None else load(path)
    made._fill(model, tables, common, version, library)  # noqa: SLF001
    return made


_OFFSET: Final = bytes((byte + 128) & 255 for byte in range(256))
