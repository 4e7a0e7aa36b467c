"""The groups that quality is followed in: the kind of a request, and the script of its question.

Both are closed sets, so that they may stand in logs, metrics and stored outcomes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Final

from classifiers.view import PromptView

KINDS: Final = ("tools", "json", "conversation", "code", "question")
SCRIPTS: Final = (
    "latin", "greek", "cyrillic", "hebrew", "arabic", "indic", "thai", "hangul", "kana", "han",
    "other", "none",
)  # fmt: skip
_SAMPLE: Final = 512
_CODE: Final = ("```", "def ", "#include", "function ", "SELECT ", "public class ")
# Unicode blocks by their first code point; what is not listed counts as `other`.
_STARTS: Final = (
    0x41, 0x250, 0x370, 0x400, 0x530, 0x590, 0x600, 0x780, 0x900, 0xE00, 0xE80, 0x1100, 0x1200,
    0x3040, 0x3100, 0x3400, 0xA000, 0xAC00, 0xD7B0, 0xF900, 0xFB00, 0x20000, 0x32000,
)  # fmt: skip
_NAMES: Final = (
    "latin", "other", "greek", "cyrillic", "other", "hebrew", "arabic", "other", "indic", "thai",
    "other", "hangul", "other", "kana", "other", "han", "other", "hangul", "other", "han", "other",
    "han", "other",
)  # fmt: skip


def kind_of(view: PromptView) -> str:
    """One of KINDS, by the shape of the call first."""
    if view.tools:
        return "tools"
    if view.json_schema:
        return "json"
    if view.turns > 1:
        return "conversation"
    start = view.question[:_SAMPLE]
    return "code" if any(sign in start for sign in _CODE) else "question"


def script_of(view: PromptView) -> str:
    """One of SCRIPTS: what most letters at the question's beginning belong to."""
    start = view.question[:_SAMPLE]
    if start.isascii():
        return "latin" if any(map(str.isalpha, start)) else "none"
    found = Counter(
        _NAMES[bisect_right(_STARTS, ord(letter)) - 1] for letter in start if letter.isalpha()
    )
    return found.most_common(1)[0][0] if found else "none"
