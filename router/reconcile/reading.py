"""Files of other people's logs → JSON objects and lines, with their places and within bounds.

1. A file is plain or gzip, by its first bytes. It is unpacked as it is read, to at most `UNPACKED`.
2. JSON lines: one object a line; a line that is none is said and left out, the next is read.
   A line of CloudWatch's own export has a time in front of the object.
3. A document (a list, or objects over several lines) is read object by object; where it can't be
   read further, what came before stays, and the place is said.
4. `{"records": […]}`, `{"value": […]}` and `{"entries": […]}` stand for what they hold; so do
   `{"events": […]}` and `{"logEvents": […]}`, as CloudWatch's API and its subscriptions give them,
   each with the record as text in `message`.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from router.assess import records as documents
from router.assess.records import mapping
from router.reconcile.model import Where

UNPACKED: Final = 1 << 30
"""Bytes of one file, unpacked: above what any provider delivers, below what fills a disk."""
LINE: Final = 4 << 20
_CHUNK: Final = 256 << 10
_GZIP: Final = b"\x1f\x8b"
_WRAPPERS: Final = ("records", "value", "entries")
_EVENTS: Final = ("events", "logEvents")
_TIMED: Final = re.compile(rb"\d{4}-\d\d-\d\dT[0-9:.]+Z\s+(?=\{)")

Object = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fault:
    """What can't be read, and why."""

    where: Where
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """One JSON object and its place."""

    value: Object
    where: Where


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text and its place."""

    text: bytes
    where: Where


class TooLarge(ValueError):
    """A file or a line above its bound."""


class Unpacked:
    """A file's bytes, unpacked, in pieces of bounded size."""

    def __init__(self, file: BinaryIO, bound: int = UNPACKED) -> None:
        self._left = bound
        self._bound = bound
        packed = file.read(2) == _GZIP
        file.seek(0)
        self._file = gzip.GzipFile(fileobj=file) if packed else file

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._file.read(_CHUNK):
            self._left -= len(piece)
            if self._left < 0:
                raise TooLarge(f"it unpacks to more than {self._bound} bytes")
            yield piece


FAULTS: Final = (OSError, EOFError, zlib.error, ValueError, RecursionError)


def reason(error: BaseException) -> str:
    """Why a file can't be read, in words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def files(path: Path) -> Iterator[Path]:
    """A file itself, or every file below a folder, in order; no links, no hidden files."""
    if path.is_file():
        yield path
        return
    for one in sorted(path.rglob("*")):
        if one.is_file() and not one.is_symlink() and not one.name.startswith("."):
            yield one


def lines(path: Path) -> Iterator[Line | Fault]:
    """The lines of a file, those that aren't empty. A `Fault` without a line ends it."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, text in _split(Unpacked(file)):
                where = Where(str(path), number)
                if text is None:
                    yield Fault(where, f"a line of more than {LINE} bytes")
                elif text.strip():
                    yield Line(text, where)
    except FAULTS as error:
        yield Fault(Where(str(path), number), f"nothing after this line: {reason(error)}")


def _split(pieces: Unpacked) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers, without empty ones; `None` for one that is too long, of which no
    more is kept than the bound."""
    number, held, over = 1, bytearray(), False
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for text in whole:
            if over or len(held) + len(text) > LINE:
                yield number, None
            elif held or text:
                yield number, bytes(held) + text
            if held or over:
                held.clear()
                over = False
            number += 1
        over = over or len(held) + len(rest) > LINE
        if over:
            held.clear()
        else:
            held += rest
    if held or over:
        yield number, None if over else bytes(held)


def objects(path: Path) -> Iterator[Found | Fault]:
    """The JSON objects of a file, be it lines or a document."""
    if not _is_document(path):
        for line in lines(path):
            yield from [line] if isinstance(line, Fault) else _of_line(line)
        return
    number = 0
    for value in documents.records(path):
        if isinstance(value, documents.Unreadable):
            yield Fault(Where(str(path), value.after + 1, "record"), value.reason)
            continue
        for one in _held(value):
            number += 1
            yield _found(one, Where(str(path), number, "record"))


def _is_document(path: Path) -> bool:
    """A list, or an object that doesn't end in its first line."""
    first = next(iter(lines(path)), None)
    if not isinstance(first, Line):
        return False
    text = first.text.strip().removeprefix(b"\xef\xbb\xbf")
    if not text.startswith((b"[", b"{")):
        return False
    return text.startswith(b"[") or (text.endswith((b"{", b"[", b",")) and not _is_json(text))


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_line(line: Line) -> Iterator[Found | Fault]:
    timed = _TIMED.match(line.text)
    try:
        value = json.loads(line.text[timed.end() :] if timed else line.text)
    except (ValueError, RecursionError) as error:
        yield Fault(line.where, f"not JSON: {type(error).__name__}")
        return
    if not isinstance(value, dict):
        yield Fault(line.where, "no JSON object")
        return
    for one in _held(value):
        yield _found(one, line.where)


def _found(value: Object | None, where: Where) -> Found | Fault:
    return (
        Fault(where, "a message that is no JSON object") if value is None else Found(value, where)
    )


def _held(value: Object) -> Iterator[Object | None]:
    """The records in a value, or itself; `None` for what is none."""
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, list) and len(value) <= 2:
            yield from (one for one in inner if isinstance(one, dict))
            return
    for name in _EVENTS:
        inner = value.get(name)
        if isinstance(inner, list) and all("message" in mapping(one) for one in inner):
            yield from (_message(mapping(one)["message"]) for one in inner)
            return
    yield value


def _message(told: object) -> Object | None:
    try:
        value = json.loads(told) if isinstance(told, str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def at(value: Object, *path: str) -> object:
    """What stands below these names, or `None`."""
    found: object = value
    for name in path:
        found = mapping(found).get(name)
    return found
