"""The gate: what a model was not trained on it must not judge. Abstaining means the large tier.

Reasons are stable words for records and metrics. Limits come from the envelope of the training
rows, so a model trained on local conversations accepts them and the shipped prior does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from classifiers.difficulty.artifact import Envelope
from classifiers.difficulty.features import HEAD, STRUCTURE, TAIL, Features
from classifiers.view import PromptView

CALLS: Final = ("turns", "tools", "json_schema", "system")
LONG: Final = 8
"""Texts longer than this many times what is read (head and tail) are not judged."""
_TEXT: Final = len(STRUCTURE) - len(CALLS)
_REPEATS: Final = 20


class Gate:
    """`refusal(features, view)`: why the model abstains, or an empty string."""

    __slots__ = ("_centre", "_envelope", "_known", "_spread")

    def __init__(
        self, envelope: Envelope, centre: Sequence[float], spread: Sequence[float], known: bytes
    ) -> None:
        self._envelope = envelope
        self._centre = tuple(centre[:_TEXT])
        self._spread = tuple(1.0 / one for one in spread[:_TEXT])
        self._known = known

    def refusal(self, features: Features, view: PromptView) -> str:
        """The first reason not to judge; cheap and certain ones first."""
        return self._unreadable(view) or self._strange(features, view)

    def _unreadable(self, view: PromptView) -> str:
        if view.images or view.media:
            return "not_text"
        if view.unknown or view.truncated:
            return "unread"
        return ""

    def _strange(self, features: Features, view: PromptView) -> str:
        limits = self._envelope
        count = len(features.words)
        if count < limits.words:
            return "too_short"
        for value, limit, name in zip(features.structure[_TEXT:], limits.calls, CALLS, strict=True):
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
        return "distance" if self.distance(features) > limits.distance else ""

    def known(self, features: Features) -> float:
        """Share of words whose bucket at least two training prompts had, in [0, 1]."""
        count = len(features.words)
        return sum(map(self._known.__getitem__, features.words)) / count if count else 0.0

    def distance(self, features: Features) -> float:
        """Mean squared z-score of the text's structure."""
        total = 0.0
        for x, c, s in zip(features.structure, self._centre, self._spread, strict=False):
            z = (x - c) * s
            total += z * z
        return total / _TEXT
