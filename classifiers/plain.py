"""A text as a reader takes it: look-alikes, what isn't seen and escapes undone. Pure.

For looking only: what is found in the plain reading and not in the text itself was disguised.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

ROUNDS: Final = 5
# Not seen, and no letter's mark: format characters, fillers, selectors of variants, tags.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
# Marks laid over a digit or a sign, as a line through it, are no part of a word.
_OVERLAID: Final = re.compile(
    r"(?<=[\d@.+:-])[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]+"
)
_ESCAPE: Final = re.compile(
    r"\\{1,16}(?:u([0-9A-Fa-f]{4})|u\{0{0,6}([0-9A-Fa-f]{2,4})\}|x([0-9A-Fa-f]{2}))"
    r"|%([0-9A-Fa-f]{2})|&\#x0{0,8}([0-9A-Fa-f]{2,4});"
)
_ENTITY: Final = re.compile(
    r"&\#0{0,8}(\d{2,5});?|&(commat|period|plus|colon|hyphen|dash|nbsp|num);"
)
_NAMES: Final = {
    "commat": "@", "period": ".", "plus": "+", "colon": ":", "hyphen": "-", "dash": "-",
    "nbsp": " ", "num": "#",
}  # fmt: skip
_SPELLED: Final = re.compile(r"(?i)\s{0,3}[\[({<]\s{0,3}(at|dot|punkt|point)\s{0,3}[\])}>]\s{0,3}")
_DASHES: Final = re.compile("[\u2010-\u2015\u2212\u2043\ufe58\ufe63]")
_GAPS: Final = re.compile(r"(?<=\d)(?:[ ._-][ ._-]{1,2}|_)(?=\d)")
_HINTS: Final = re.compile(r"[\\%&\[({<_]|[ .-]{2}")
_KEPT: Final = frozenset("\"'\\\x7f")


class Layered(ValueError):
    """Escapes within escapes, deeper than anybody writes: what it says can't be told."""


def plain(text: str) -> str:
    """The plain reading of a text; the text itself when it is plain already.

    Raises:
        Layered: it holds more than `ROUNDS` layers of escapes.
    """
    if text.isascii() and not _HINTS.search(text):
        return text
    for _ in range(ROUNDS):
        read = _once(text)
        if read == text:
            return text
        text = read
    raise Layered(f"text is escaped more than {ROUNDS} times over")


def _once(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
        text = _DASHES.sub("-", _OVERLAID.sub("", _UNSEEN.sub("", text)))
        text = "".join(map(_digit, text)) if not text.isascii() else text
    text = _ENTITY.sub(_named, _ESCAPE.sub(_escaped, text))
    text = _SPELLED.sub(lambda m: "@" if m[1].lower() == "at" else ".", text)
    return _GAPS.sub(" ", text)


def _digit(one: str) -> str:
    """A digit of any script as 0 to 9."""
    return one if one.isascii() or not one.isdecimal() else str(unicodedata.decimal(one))


def _escaped(found: re.Match[str]) -> str:
    return _shown(int(next(filter(None, found.groups())), 16), found[0])


def _named(found: re.Match[str]) -> str:
    return _NAMES[found[2]] if found[2] else _shown(int(found[1]), found[0])


def _shown(code: int, written: str) -> str:
    """What can stand in an identifier; quotes and the like stay as they were written."""
    one = chr(code) if code < 0xD800 or 0xE000 <= code < 0x110000 else ""
    return one if one.isprintable() and one and one not in _KEPT else written
