"""Characters that no font here can draw: told by their numbers, for a PDF would show empty boxes.

typst brings fonts for Latin, Greek and Cyrillic; what else is drawn is up to the fonts of the
machine. None is shipped here: those of Chinese, Japanese and Korean alone are larger than all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from unicodedata import category

NOTE: Final = (
    "Characters that no font here can draw stand as [U+…], their numbers: install fonts for them, "
    "as Noto CJK, or read the HTML."
)
_ALWAYS: Final = (
    (0x20, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x1E00, 0x1EFF), (0x2010, 0x2027),
    (0x2030, 0x205E),
)  # fmt: skip
_DRAWN: Final = "LMNPS"


def lacking(text: str, fonts: Iterable[str]) -> frozenset[str]:
    """The characters of a text that neither typst's own fonts nor these files can draw."""
    left = {one for one in set(text) if category(one)[0] in _DRAWN and not _always(one)}
    for path in fonts:
        if not left:
            break
        left -= _drawn(left, path)
    return frozenset(left)


def named(lacks: Iterable[str]) -> Mapping[int, str]:
    """What `str.translate` puts in the place of such characters."""
    return {ord(one): f"[U+{ord(one):04X}]" for one in lacks}


def _always(one: str) -> bool:
    return any(low <= ord(one) <= high for low, high in _ALWAYS)


def _drawn(wanted: Iterable[str], path: str) -> set[str]:
    from matplotlib.ft2font import FT2Font

    try:
        known = FT2Font(path).get_charmap()
    except (RuntimeError, OSError):
        return set()  # typst may read it, we can't: then its characters are told by numbers
    return {one for one in wanted if ord(one) in known}
