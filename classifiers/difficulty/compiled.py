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

from classifiers.difficulty.artifact import BASE, PairModel, Tables
from classifiers.difficulty.features import BUCKETS, PLAIN, STRUCTURE, calls_of, read
from classifiers.difficulty.gate import Measured
from classifiers.difficulty.head import Whole
from classifiers.view import PromptView

SOURCE: Final = Path(__file__).with_name("compiled.c")
FLAGS: Final = ("-O3", "-fPIC", "-shared", "-ffp-contract=off")
"""Flags for the compiler: no fused multiply-add, which would round differently."""
INPUTS: Final = BASE + len(STRUCTURE)
ROWS: Final = 9
_Inputs = ctypes.c_double * INPUTS
_Calls = ctypes.c_double * 4
_Words = ctypes.c_ubyte * (4 * BUCKETS)
_SIZES: Final = 100_000
_FIRST: Final = Struct("7d").unpack_from
"""The first fields of `Found`: reading them one by one takes three times as long."""


class _Model(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_void_p),
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


class _Call(ctypes.Structure):
    """All of a call but the text: one argument, made once and used again."""

    _fields_ = (("found", Found), ("calls", _Calls), ("model", ctypes.c_void_p))


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
    sizes = ctypes.sizeof(_Model) * _SIZES + ctypes.sizeof(Found) + ctypes.sizeof(_Call)
    if prepare() != sizes:
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


_Room = tuple[_Call, object]
"""A call and its address, as an argument."""


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
    """Measures views by a library; kept between calls is only the room that they write to."""

    __slots__ = ("_entry", "_free", "_held", "_model")

    def __init__(
        self, library: Library, model: PairModel, tables: Tables, common: bytes, head: Whole
    ) -> None:
        # One record for a word, so that it costs one line of the processor's cache.
        records = bytearray(4 * BUCKETS)
        records[0::4], records[2::4] = tables.weak, tables.strong
        records[1::4], records[3::4] = common, tables.known
        words = _Words.from_buffer(records)
        filled = _filled(model, head)
        filled.words = ctypes.addressof(words)
        self._entry = library.entry
        self._model = ctypes.addressof(filled)
        # Each call takes one out and puts it back, so that threads never share one.
        self._free: list[_Room] = []
        # The struct holds plain addresses, which keep nothing alive.
        self._held = (filled, words, library)

    def found(self, view: PromptView) -> Found:
        """All that the library says of a view."""
        data, _ = read(view)
        call = self._room(calls_of(view))
        self._call(data, call)
        found: Found = call[0].found
        return found

    def measure(self, view: PromptView) -> Measured:
        """The same as `Scorer.measure` of the view's features, to the last bit."""
        data, cut = read(view)
        calls = calls_of(view)
        free = self._free
        try:
            room = free.pop() if calls is PLAIN else self._room(calls)
        except IndexError:
            room = self._room(PLAIN)
        gain, distance, known, wide, distinct, words, code = _FIRST(self._call(data, room))
        if calls is PLAIN:
            free.append(room)
        return gain, distance, known, wide, distinct, int(words), cut, calls, code

    def _room(self, calls: tuple[float, float, float, float]) -> _Room:
        call = _Call(Found(), calls, self._model)
        return call, ctypes.byref(call)

    def _call(self, data: bytes, room: _Room) -> _Call:
        call, at = room
        if self._entry(at, data, len(data)):
            raise LibraryError(f"a text of {len(data)} bytes is longer than what is ever read")
        return call


def _filled(model: PairModel, head: Whole) -> _Model:
    return _Model(
        None, model.scales, model.offsets, head.intercept, head.centre, head.inverse,
        head.rows, head.squares, len(head.centre), len(head.rows),
    )  # fmt: skip
