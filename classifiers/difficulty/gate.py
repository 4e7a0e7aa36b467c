"""The gate: what a model was not trained on it must not judge. Abstaining means the large tier.

Reasons are stable words for records and metrics. Limits come from the envelope of the training
rows, so a model trained on local conversations accepts them and the shipped prior does not.
"""

from __future__ import annotations

from typing import Final

from classifiers.difficulty.artifact import Envelope
from classifiers.difficulty.features import CALLS, HEAD, PLAIN, TAIL, TEXT
from classifiers.view import PromptView

LONG: Final = 12
"""Texts longer than this many times what is read (head and tail) are not judged."""
_LONGEST: Final = LONG * (HEAD + TAIL)
_REPEATS: Final = 20


Measured = tuple[float, float, float, float, float, int, bool, tuple[float, ...], float]
"""What a scorer knows of one text. A plain tuple: names would cost more than the gate itself.

gain: expected quality of strong minus weak; distance: sum of the squared z-scores of the text's
structure; known: share of its distinct words that training rows had; wide and distinct as in
`Features`; how many words; cut as in `Features`; fields of the call; code as in `Features`.
"""


class Gate:
    """`refusal(measured, view)`: why the model abstains, or an empty string."""

    __slots__ = ("_distance", "_envelope")

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._distance = envelope.distance * TEXT

    def refusal(self, measured: Measured, view: PromptView) -> str:
        """The first reason not to judge; certain ones first."""
        # A slice costs less than reading each field by its name.
        images, media, unknown, _, truncated = view[6:11]
        if images or media:
            return "not_text"
        if unknown or truncated:
            return "unread"
        _, distance, known, wide, distinct, words, cut, calls, code = measured
        limits = self._envelope
        if words < limits.words:
            return "too_short"
        if calls != PLAIN and (new := self._new(calls)):
            return new
        if wide > limits.wide:
            return "script"
        if cut and view.characters > _LONGEST and len(view.question) > _LONGEST:
            return "too_long"
        if words >= _REPEATS and distinct < limits.distinct:
            return "repetition"
        if code > limits.code:
            return "code"
        if known < limits.known:
            return "vocabulary"
        return "distance" if distance > self._distance else ""

    def _new(self, calls: tuple[float, ...]) -> str:
        """The first field of the call that is larger than in any training row."""
        for value, limit, name in zip(calls, self._envelope.calls, CALLS, strict=True):
            if value > limit:
                return f"new_{name}"
        return ""
