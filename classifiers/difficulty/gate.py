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
_READ: Final = HEAD + TAIL
_LONGEST: Final = LONG * _READ
_REPEATS: Final = 20
BESIDE: Final = 256
"""Characters outside the dialogue, other than those of tools and schemas, that are not looked at:
ids and settings. What is longer may be documents or a template, which a model reads."""
SPARSE: Final = 12
"""Texts of more characters for each word are none of words, such as base64 behind a question, or
blanks. No row of the prior has more than 11 bytes for one."""
_WIDE: Final = 0.25
"""From this share of bytes outside ASCII on, a script may have no blanks between words."""


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
        images, media, unknown, _, truncated, beside = view[6:12]
        if images or media or unknown or truncated:
            return "not_text" if images or media else "unread"
        _, distance, known, wide, distinct, words, cut, calls, code = measured
        limits = self._envelope
        if words < limits.words:
            return "too_short"
        if (beside or calls != PLAIN) and (new := self._new(calls, view)):
            return new
        if wide > limits.wide:
            return "script"
        if cut and view[1] > _LONGEST and len(view.question) > _LONGEST:
            return "too_long"
        if words >= _REPEATS and distinct < limits.distinct:
            return "repetition"
        if code > limits.code:
            return "code"
        if known < limits.known:
            return "vocabulary"
        most = SPARSE * (words + 1)
        # What is read of a cut text is as long as can be; asking for a question costs more.
        if (
            (_READ if cut else view[1]) > most
            and wide < _WIDE
            and (cut or len(view.question) > most)
        ):
            return "few_words"
        return "distance" if distance > self._distance else ""

    def _new(self, calls: tuple[float, ...], view: PromptView) -> str:
        """The first field of the call that is larger than in any training row, or what is beside
        the dialogue."""
        for value, limit, name in zip(calls, self._envelope.calls, CALLS, strict=True):
            if value > limit:
                return f"new_{name}"
        long = len(view.beside) > BESIDE and not (view.tools or view.json_schema)
        return "beside" if long else ""
