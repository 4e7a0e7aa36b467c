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
HEAD: Final = 600
TAIL: Final = 600

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
_ASCII: Final = bytes(range(128))

# Order is part of the artifact format. The last four are of the call, not of the text.
STRUCTURE: Final = (
    "length", "stem", "options_mean", "options", "digits", "options_digits", "math", "brackets",
    "word_length", "distinct", "sentences", "lines", "blank", "asks", "negated", "statement",
    "all_of", "latex", "turns", "tools", "json_schema", "system",
)  # fmt: skip
CALLS: Final = STRUCTURE[-4:]
TEXT: Final = len(STRUCTURE) - len(CALLS)
"""How many fields of the structure describe the text; those of the call come after."""
PLAIN: Final = (0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Features:
    """`words`, `pairs`: hashed words, and hashed pairs of words that no word shares; disjoint, in
    [0, BUCKETS). `count`: words, repeated ones too; `structure`: floats in the order of
    STRUCTURE; `wide`: share of bytes outside ASCII in [0, 1]; `distinct`: share of different
    words; `cut`: text was shortened.
    Made once per request and not shared, so it is not frozen: that costs a microsecond.
    """

    words: set[int]
    pairs: set[int]
    count: int
    structure: tuple[float, ...]
    wide: float
    distinct: float
    cut: bool

    @property
    def buckets(self) -> set[int]:
        """Words and pairs."""
        return self.words | self.pairs


def read(view: PromptView) -> tuple[bytes, bool]:
    """The bytes of the question of `view` (its last user text) that count, and if it was cut."""
    text = view.question
    cut = len(text) > HEAD + TAIL
    if cut:
        text = text[:HEAD] + "\n" + text[-TAIL:]
    return text.lower().encode("utf-8", "surrogatepass"), cut


def calls_of(view: PromptView) -> tuple[float, float, float, float]:
    """The last fields of the structure, which describe the call."""
    turns, tools, schema = view.turns, view.tools, view.json_schema
    parts = view.parts
    system = len(parts) > 1 and parts[0].role == "system"
    if turns < 2 and not (tools or schema or system):
        return PLAIN
    return (
        log(turns or 1), log(tools + 1), 1.0 if schema else 0.0, 1.0 if system else 0.0,
    )  # fmt: skip


def extract(view: PromptView) -> Features:
    """Features of the question of `view` and of the shape of the call."""
    data, cut = read(view)
    tokens = data.translate(_WORDS).split()
    hashes = list(map(crc32, tokens))
    words = set(map(and_, hashes, repeat(_MASK)))
    pairs = set(map(and_, map(crc32, tokens[1:], hashes), repeat(_MASK)))
    pairs -= words
    count = len(tokens)
    distinct = len(words) / (count or 1)
    structure = _structure(data, count or 1, distinct) + calls_of(view)
    wide = 0.0 if data.isascii() else len(data.translate(None, _ASCII)) / len(data)
    return Features(words, pairs, count, structure, wide, distinct, cut)


def _structure(data: bytes, count: int, distinct: float) -> tuple[float, ...]:
    size = len(data) + 1
    stem, _, options = data.partition(b"\na. ")
    lines = data.count(b"\n")
    choices = options.count(b"\n") + 1 if options else 0
    digits = size - 1 - len(data.translate(None, _DIGITS))
    letters = size - 1 - len(data.translate(None, _LETTERS))
    option_digits = len(options) - len(options.translate(None, _DIGITS))
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
    )  # fmt: skip
