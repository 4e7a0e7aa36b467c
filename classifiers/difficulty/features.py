"""Features of a prompt: hashed words and word pairs, and a short vector of its structure.

One pass over a bounded text. Hashes are CRC-32 of UTF-8 bytes, so they are the same in every
process and language; the text cannot be read back from the model. Longer texts follow one rule:
the first `HEAD` and the last `TAIL` characters are read, and `cut` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from math import log
from operator import and_
from typing import Final
from zlib import crc32

from classifiers.view import PromptView

BITS: Final = 16
BUCKETS: Final = 1 << BITS
HEAD: Final = 1200
TAIL: Final = 1200

_MASK: Final = BUCKETS - 1
# Bytes outside words become blanks: translate and split cost a sixth of a regular expression.
_WORDS: Final = bytes(
    byte if 97 <= byte < 123 or 48 <= byte < 58 or byte >= 128 or byte in b"\\$=%^" else 32
    for byte in range(256)
)
_DIGITS: Final = b"0123456789"
_MATH: Final = b"=+^*/\\$<>|"
_BRACKETS: Final = b"()[]{}"
_LETTERS: Final = bytes(range(97, 123)) + bytes(range(128, 256))

# Order is part of the artifact format. The last four are of the call, not of the text.
STRUCTURE: Final = (
    "length", "stem", "options_mean", "options", "digits", "options_digits", "math", "brackets",
    "word_length", "distinct", "sentences", "lines", "blank", "asks", "negated", "statement",
    "all_of", "latex", "turns", "tools", "json_schema", "system",
)  # fmt: skip


@dataclass(slots=True)
class Features:
    """`buckets`: distinct hashed words and pairs, each in [0, BUCKETS); `words`: one bucket per
    token in order; `structure`: floats in the order of STRUCTURE; `wide`: share of bytes
    outside ASCII in [0, 1]; `distinct`: share of different tokens; `cut`: text was shortened.
    Made once per request and not shared, so it is not frozen: that costs a microsecond.
    """

    buckets: set[int]
    words: list[int]
    structure: tuple[float, ...]
    wide: float
    distinct: float
    cut: bool


def extract(view: PromptView) -> Features:
    """Features of the question of `view` (its last user text) and of the shape of the call."""
    text = view.question
    cut = len(text) > HEAD + TAIL
    if cut:
        text = text[:HEAD] + "\n" + text[-TAIL:]
    data = text.lower().encode("utf-8", "surrogatepass")
    tokens = data.translate(_WORDS).split()
    hashes = list(map(crc32, tokens))
    pairs = map(crc32, tokens[1:], hashes)
    words = list(map(and_, hashes, repeat(_MASK)))
    buckets = set(words)
    count = len(words) or 1
    distinct = len(buckets) / count
    buckets.update(map(and_, pairs, repeat(_MASK)))
    structure = _structure(data, count, distinct, view)
    wide = 0.0 if data.isascii() else _wide(data)
    return Features(buckets, words, structure, wide, distinct, cut)


def _structure(data: bytes, count: int, distinct: float, view: PromptView) -> tuple[float, ...]:
    size = len(data) + 1
    stem, _, options = data.partition(b"\na. ")
    lines = data.count(b"\n")
    choices = options.count(b"\n") + 1 if options else 0
    digits = size - 1 - len(data.translate(None, _DIGITS))
    letters = size - 1 - len(data.translate(None, _LETTERS))
    option_digits = len(options) - len(options.translate(None, _DIGITS))
    system = len(view.parts) > 1 and view.parts[0].role == "system"
    return (
        log(size), log(len(stem) + 1), log(len(options) / choices) if choices else 0.0,
        float(choices), digits / size, option_digits / (len(options) + 1),
        (size - 1 - len(data.translate(None, _MATH))) / size,
        (size - 1 - len(data.translate(None, _BRACKETS))) / size,
        letters / count, distinct, log(stem.count(b". ") + 1), log(lines + 1),
        1.0 if b"__" in stem else 0.0, 1.0 if b"?" in stem else 0.0,
        1.0 if b" not " in stem or b"except" in stem or b" least " in stem else 0.0,
        1.0 if b"statement" in stem else 0.0,
        1.0 if b"all of the" in options or b"none of" in options else 0.0,
        1.0 if b"\\" in data or b"$" in data else 0.0,
        log(view.turns or 1), log(view.tools + 1), 1.0 if view.json_schema else 0.0,
        1.0 if system else 0.0,
    )  # fmt: skip


def _wide(data: bytes) -> float:
    return 1.0 - len(data.decode("utf-8", "ignore").encode("ascii", "ignore")) / len(data)
