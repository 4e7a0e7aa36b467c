"""The gate: what a model was not trained on it must not judge. Abstaining means the large tier.

Reasons are stable words for records and metrics. Limits come from the envelope of the training
rows, so a model trained on local conversations accepts them and the shipped prior does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Final

from classifiers.difficulty.artifact import Envelope
from classifiers.difficulty.features import HEAD, STRUCTURE, TAIL, Features
from classifiers.view import PromptView

CALLS: Final = ("turns", "tools", "json_schema", "system")
LONG: Final = 8
"""Texts longer than this many times what is read (head and tail) are not judged."""
TEXT: Final = len(STRUCTURE) - len(CALLS)
"""How many fields of the structure describe the text; those of the call come after."""
_REPEATS: Final = 20
_PLAIN: Final = (0.0,) * len(CALLS)


class Gate:
    """`refusal(features, view, standard)`: why the model abstains, or an empty string."""

    __slots__ = ("_envelope", "_known")

    def __init__(self, envelope: Envelope, known: bytes) -> None:
        self._envelope = envelope
        self._known = known

    def refusal(self, features: Features, view: PromptView, standard: Sequence[float]) -> str:
        """The first reason not to judge; cheap and certain ones first.

        `standard`: z-scores of two base heads and of the structure, as the scorer makes them.
        """
        return self._unreadable(view) or self._strange(features, view, standard)

    def _unreadable(self, view: PromptView) -> str:
        if view.images or view.media:
            return "not_text"
        if view.unknown or view.truncated:
            return "unread"
        return ""

    def _strange(self, features: Features, view: PromptView, standard: Sequence[float]) -> str:
        limits = self._envelope
        count = len(features.words)
        if count < limits.words:
            return "too_short"
        call = features.structure[TEXT:]
        if call != _PLAIN:
            for value, limit, name in zip(call, limits.calls, CALLS, strict=True):
                if value > limit:
                    return f"new_{name}"
        if features.wide > limits.wide:
            return "script"
        if features.cut and len(view.question) > LONG * (HEAD + TAIL):
            return "too_long"
        if count >= _REPEATS and features.distinct < limits.distinct:
            return "repetition"
        if self.known(features) < limits.known:
            return "vocabulary"
        text = standard[2 : 2 + TEXT]
        return "distance" if sum(map(mul, text, text)) > limits.distance * TEXT else ""

    def known(self, features: Features) -> float:
        """Share of words whose bucket at least two training prompts had, in [0, 1]."""
        count = len(features.words)
        return sum(map(self._known.__getitem__, features.words)) / count if count else 0.0
