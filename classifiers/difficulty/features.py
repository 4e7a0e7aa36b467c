"""Features of a prompt: hashed words, and a short vector of its structure.

One pass over a bounded text. Hashes are CRC-32 of UTF-8 bytes, so they are the same in every
process and language; the text cannot be read back from the model. Longer texts follow one rule:
the first `HEAD` and the last `TAIL` characters are read, and `cut` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from operator import mul
from typing import Final
from zlib import crc32

from classifiers.view import PromptView

BITS: Final = 16
BUCKETS: Final = 1 << BITS
HEAD: Final = 400
TAIL: Final = 400

_MASK: Final = BUCKETS - 1
# Bytes outside words become blanks: translate and split cost a sixth of a regular expression.
_WORDS: Final = bytes(
    byte if 97 <= byte < 123 or 48 <= byte < 58 or byte >= 128 or byte in b"\\$=%^" else 32
    for byte in range(256)
)
_WHICH: Final = b"which of the following"
_DIGITS: Final = b"0123456789"
_SYMBOLS: Final = b"=+^*/\\$<>|()[]{}"
_NEITHER: Final = bytes(set(range(256)) - {*_DIGITS, *_SYMBOLS})
_LETTERS: Final = bytes(range(97, 123)) + bytes(range(128, 256))
_ASCII: Final = bytes(range(128))
_CODE: Final = (
    (ord("\n"), (b"\n ",)),
    (ord("\t"), (b"\n\t",)),
    (ord("{"), (b"{\n",)),
    (ord(";"), (b";\n", b");", b"];")),
    (ord(")"), (b"()", b"):")),
    (ord('"'), (b'":', b'",')),
    (ord(">"), (b"->", b"/>")),
    (ord("<"), (b"</",)),
)
"""Pairs of bytes that code, markup and data files have and that prose and formulas rarely have.
The two bytes of a pair differ, so that no occurrence overlaps another. Before them is the byte
without which there are none: most texts have few of these. It is a number because looking for
`bytes` with `in` first makes and drops a TypeError."""

# Order is part of the artifact format. The last four are of the call, not of the text.
STRUCTURE: Final = (
    "options_distinct", "options_spread", "options_numeric", "digits", "which", "symbols", "stem",
    "turns", "tools", "json_schema", "system",
)  # fmt: skip
CALLS: Final = STRUCTURE[-4:]
TEXT: Final = len(STRUCTURE) - len(CALLS)
"""How many fields of the structure describe the text; those of the call come after."""
PLAIN: Final = (0.0, 0.0, 0.0, 0.0)
_SYSTEM: Final = frozenset({"system", "developer"})
_OF_TOOLS: Final = frozenset({"tool", "tool_call", "function"})
_NO_ANSWER: Final = _SYSTEM | _OF_TOOLS | {"user"}


Extracted = tuple[set[int], set[int], int, tuple[float, ...], float, float, bool, float]
"""The fields of `Features` in their order, as the hot path passes them: an object would cost it
three hundredths of a score."""


@dataclass(slots=True)
class Features:
    """`options`: hashed words of the options, in [0, BUCKETS); `stem`: those that are only in the
    rest of the text. `count`: words, repeated ones too; `structure`: floats in the order of
    STRUCTURE; `wide`: share of bytes outside ASCII in [0, 1]; `distinct`: share of different
    words; `cut`: text was shortened; `code`: share of pairs of bytes such as code has, in [0, 1].
    Made once per request and not shared, so it is not frozen: that costs a microsecond.
    """

    stem: set[int]
    options: set[int]
    count: int
    structure: tuple[float, ...]
    wide: float
    distinct: float
    cut: bool
    code: float = 0.0

    @property
    def fields(self) -> Extracted:
        """All fields, in their order."""
        return (
            self.stem, self.options, self.count, self.structure, self.wide, self.distinct,
            self.cut, self.code,
        )  # fmt: skip

    @property
    def words(self) -> list[int]:
        """All words, each once, ascending."""
        return sorted(self.stem | self.options)


def read(view: PromptView) -> tuple[bytes, bool]:
    """The bytes of the question of `view` that count, and if it was cut."""
    parts = view[0]
    # Most requests have one text; asking a property for it costs as much as encoding it.
    text = parts[0][1] if len(parts) == 1 else view.question
    cut = len(text) > HEAD + TAIL
    if cut:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    try:
        return text.encode(), cut
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON may hold
        return text.encode("utf-8", "surrogatepass"), cut


def calls_of(view: PromptView) -> tuple[float, float, float, float]:
    """The last fields of the structure, which describe the call."""
    # A slice costs less than reading each field by its name.
    turns, tools, _, _, _, schema = view[4:10]
    parts = view[0]
    system = False
    if len(parts) > 1:
        roles = {role for role, _ in parts}
        system = not roles.isdisjoint(_SYSTEM)
        # Who answers, or a tool, may have said what is hard, whatever the number of user messages.
        if not roles.isdisjoint(_OF_TOOLS):
            tools = tools or 1
        if not roles <= _NO_ANSWER:
            turns = max(turns, 2)
    if turns < 2 and not (tools or schema or system):
        return PLAIN
    return (
        log(turns or 1), log(tools + 1), 1.0 if schema else 0.0, 1.0 if system else 0.0,
    )  # fmt: skip


def extract(view: PromptView) -> Features:
    """Features of the question of `view` and of the shape of the call."""
    return Features(*extracted(view))


def extracted(view: PromptView) -> Extracted:
    """The fields of `extract`."""
    data, cut = read(view)
    # In ASCII only: small letters of all scripts would double the time of a text.
    data = data.lower()
    stem, _, options = data.partition(b"\na. ")
    words = stem.translate(_WORDS).split()
    count, different = len(words), 0.0
    of_stem: set[int] = {one & _MASK for one in map(crc32, words)}
    of_options: set[int] = set()
    if options:
        words = options.translate(_WORDS).split()
        count += len(words)
        of_options = {one & _MASK for one in map(crc32, words)}
        of_stem -= of_options
        different = len(of_options) / (len(words) + 1)
    structure = _structure(different, data, stem, options) + calls_of(view)
    wide = 0.0 if data.isascii() else len(data.translate(None, _ASCII)) / len(data)
    distinct = (len(of_stem) + len(of_options)) / (count or 1)
    return of_stem, of_options, count, structure, wide, distinct, cut, _code(data)


def _code(data: bytes) -> float:
    pairs = 0
    for byte, having in _CODE:
        if byte in data:
            for pair in having:
                pairs += data.count(pair)
    # The first one is free: a sentence may quote something.
    return (pairs - 1) / (len(data) + 1) if pairs > 1 else 0.0


def _structure(different: float, data: bytes, stem: bytes, options: bytes) -> tuple[float, ...]:
    """The fields of the text, of which `different` is the first. Options are lines, each but the
    first with a letter before it: they are numeric when there are no other letters in them."""
    size = len(data)
    # Digits and symbols of a long text are few: only those are parted again.
    counted = data.translate(None, _NEITHER)
    symbols = len(counted.translate(None, _DIGITS))
    spread = numeric = 0.0
    if options:
        sizes = list(map(len, options.split(b"\n")))
        lines, total = len(sizes), sum(sizes)
        spread = log(sqrt(lines * sum(map(mul, sizes, sizes)) - total * total) / lines + 1.0)
        if len(options) - len(options.translate(None, _LETTERS)) < lines:
            numeric = 1.0
    return (
        different, spread, numeric, (len(counted) - symbols) / (size + 1),
        0.0 if stem.find(_WHICH) < 0 else 1.0,
        symbols / (size + 1), log(len(stem) + 1),
    )  # fmt: skip
