"""The compiled scorer, where there is one: `compiled.c` as a library, called through `ctypes`.

It is optional: `domicile classifier compile` makes it with the C compiler of the machine, and
without it the Python code gives the same numbers, slower. A library is named by the digest of its
source and flags, so that one of another version is never loaded, and lies beside it.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from classifiers.difficulty.artifact import PairModel, Tables
from classifiers.difficulty.features import BUCKETS, PLAIN, STRUCTURE, calls_of, read
from classifiers.difficulty.gate import Measured
from classifiers.difficulty.head import BASE, Whole
from classifiers.view import PromptView

SOURCE: Final = Path(__file__).with_name("compiled.c")
FLAGS: Final = ("-O3", "-fPIC", "-shared", "-ffp-contract=off")
"""Flags for the compiler: no fused multiply-add, which would round differently."""
INPUTS: Final = BASE + len(STRUCTURE)
ROWS: Final = 9
_Inputs = ctypes.c_double * INPUTS
_Calls = ctypes.c_double * 4
_NO_CALLS: Final = _Calls()
_at: Final = ctypes.byref
_Pairs = ctypes.c_byte * (2 * BUCKETS)
_SIZES: Final = 100_000
_FIRST: Final = Struct("7d").unpack_from
"""The first fields of `Found`: reading them one by one takes three times as long."""


class _Model(ctypes.Structure):
    _fields_ = (
        ("tables", ctypes.c_void_p), ("words", ctypes.c_void_p),
        ("scales", ctypes.c_double * 2), ("offsets", ctypes.c_double * 2),
        ("intercept", ctypes.c_double), ("centre", _Inputs), ("inverse", _Inputs),
        ("rows", ctypes.c_int64 * INPUTS * ROWS), ("squares", ctypes.c_double * ROWS),
        ("inputs", ctypes.c_int32), ("rows_used", ctypes.c_int32),
    )  # fmt: skip


class Found(ctypes.Structure):
    """What the library writes; `inputs` of the head are there to be compared with Python's."""

    _fields_ = (
        ("gain", ctypes.c_double), ("distance", ctypes.c_double), ("known", ctypes.c_double),
        ("wide", ctypes.c_double), ("distinct", ctypes.c_double),
        ("words", ctypes.c_double), ("code", ctypes.c_double), ("inputs", _Inputs),
    )  # fmt: skip


class LibraryError(Exception):
    """The library can't be loaded, or isn't what this version calls."""


def place(folder: Path = SOURCE.parent) -> Path:
    """Where the library of this version and kind of machine lies, if it was made."""
    made_of = SOURCE.read_bytes() + " ".join(FLAGS).encode()
    digest = hashlib.sha256(made_of).hexdigest()[:16]
    return folder / f"compiled-{digest}-{platform.system()}-{platform.machine()}.so".lower()


def load(path: Path) -> Library:
    """The library at `path`. Raises LibraryError."""
    try:
        # It keeps the GIL: giving it back and forth costs more than a call.
        loaded = ctypes.PyDLL(str(path))
        prepare, entry = loaded.domicile_prepare, loaded.domicile_measure
    except (OSError, AttributeError) as error:
        raise LibraryError(f"`{path}` can't be loaded ({error}); compile it again") from None
    prepare.restype = ctypes.c_int64
    if prepare() != ctypes.sizeof(_Model) * _SIZES + ctypes.sizeof(Found):
        raise LibraryError(f"`{path}` is of another version; compile it again")
    entry.restype = ctypes.c_int32
    # No argument types: checking them costs a third of a call. `_call` is the only caller.
    return Library(path, entry)


def find(folder: Path = SOURCE.parent) -> tuple[Library | None, str]:
    """The library if it was made and can be used, and one line that says what scores here."""
    try:
        path = place(folder)
        if not path.exists():
            return None, "pure Python; `domicile classifier compile` makes it faster"
        return load(path), f"compiled ({path.name})"
    except (LibraryError, OSError) as error:
        return None, f"pure Python: {error}"


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded library, and where it was found."""

    path: Path
    entry: ctypes._NamedFuncPointer

    def scorer(
        self, model: PairModel, tables: Tables, common: bytes, head: Whole
    ) -> CompiledScorer | None:
        """A scorer of one pair; `None` for a head of more rows than the library has room for."""
        return CompiledScorer(self, model, tables, common, head) if len(head.rows) <= ROWS else None


class CompiledScorer:
    """Measures views by a library, with nothing kept between calls."""

    __slots__ = ("_at", "_entry", "_held")

    def __init__(
        self, library: Library, model: PairModel, tables: Tables, common: bytes, head: Whole
    ) -> None:
        both = bytearray(2 * BUCKETS)
        both[0::2], both[1::2] = tables.weak, tables.strong
        pairs = _Pairs.from_buffer(both)
        marks = (level | known << 7 for level, known in zip(common, tables.known, strict=True))
        words = ctypes.create_string_buffer(bytes(marks), BUCKETS)
        filled = _filled(model, head)
        filled.tables, filled.words = ctypes.addressof(pairs), ctypes.addressof(words)
        self._entry = library.entry
        self._at = ctypes.byref(filled)
        # The struct holds plain addresses, which keep nothing alive.
        self._held = (filled, pairs, words, library)

    def found(self, view: PromptView) -> Found:
        """All that the library says of a view."""
        data, _ = read(view)
        return self._call(data, calls_of(view))

    def measure(self, view: PromptView) -> Measured:
        """The same as `Scorer.measure` of the view's features, to the last bit."""
        data, cut = read(view)
        calls = calls_of(view)
        gain, distance, known, wide, distinct, words, code = _FIRST(self._call(data, calls))
        return tuple.__new__(
            Measured, (gain, distance, known, wide, distinct, int(words), cut, calls, code)
        )

    def _call(self, data: bytes, calls: tuple[float, float, float, float]) -> Found:
        found = Found()
        given = _NO_CALLS if calls is PLAIN else _Calls(*calls)
        if self._entry(self._at, data, len(data), _at(given), _at(found)):
            raise LibraryError(f"a text of {len(data)} bytes is longer than what is ever read")
        return found


def _filled(model: PairModel, head: Whole) -> _Model:
    return _Model(
        None, None, model.scales, model.offsets, head.intercept, head.centre, head.inverse,
        head.rows, head.squares, len(head.centre), len(head.rows),
    )  # fmt: skip
