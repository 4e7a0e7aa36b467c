"""CloudTrail log files → their records, one at a time, however large the file is.

1. A file is text or gzip, by its first bytes; it is never held whole.
2. It is `{"Records": […]}` as CloudTrail delivers it, `{"Events": […]}` as the API answers
   (each with the record as text in `CloudTrailEvent`), a list, or records one after another.
3. Where it can't be read further, what came before stays, and the place is said.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

CHUNK: Final = 256 << 10
MAX_RECORD: Final = 4 << 20
"""A record has at most 256 KB by CloudTrail's documentation; beyond this it is none."""

MAX_FILE: Final = 1 << 30
"""Characters of one file, unpacked: what CloudTrail delivers is a thousandth of it."""

Record = Mapping[str, object]

_GZIP: Final = b"\x1f\x8b"
_HEAD: Final = re.compile(r'\s*(?:\{\s*"(?:Records|Events)"\s*:\s*)?\[')
_BETWEEN: Final = re.compile(r"[\s,]*")
_END: Final = re.compile(r"\s*\][\s}]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that can't be read from some record on."""

    path: Path
    after: int
    reason: str

    def __str__(self) -> str:
        return f"`{self.path}` can't be read after its record {self.after}: {self.reason}"


def log_files(folder: Path) -> Iterator[Path]:
    """Every `*.json` and `*.json.gz` below a folder, but digest files, in order."""
    for path in sorted(folder.rglob("*.json*")):
        if path.name.endswith((".json", ".json.gz")) and "CloudTrail-Digest" not in path.parts:
            yield path


def records(path: Path) -> Iterator[Record | Unreadable]:
    """The records of one file; an `Unreadable` is the last thing it gives."""
    count = 0
    try:
        with _opened(path) as file:
            for value in _values(file):
                yield from _records_of(value)
                count += 1
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        yield Unreadable(path, count, _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "not JSON from there on"
    return str(error) or type(error).__name__


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    if packed:
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open("r", encoding="utf-8", errors="replace")


def _records_of(value: object) -> Iterator[Record]:
    """A record, those of a whole document, or the one an API event holds as text."""
    if not isinstance(value, dict):
        return
    inner = value.get("Records")
    text = value.get("CloudTrailEvent")
    if isinstance(inner, list):
        yield from (one for one in inner if isinstance(one, dict))
    elif isinstance(text, str):
        held = json.loads(text)
        if isinstance(held, dict):
            yield held
    else:
        yield value


def _values(file: IO[str]) -> Iterator[object]:
    """JSON values after each other, separated by commas or space, with a bounded buffer."""
    buffer = file.read(CHUNK).removeprefix("\ufeff")
    head = _HEAD.match(buffer)
    at = head.end() if head else 0
    ended, left = False, MAX_FILE
    while True:
        at = _skipped(buffer, at)
        value, end = _decoded(buffer, at)
        if end is not None and (end < len(buffer) or ended):
            yield value
            at = end
            continue
        if ended:
            _refuse_rest(buffer, at, bool(head))
            return
        if len(buffer) - at > MAX_RECORD:
            raise ValueError(f"a record of more than {MAX_RECORD} characters")
        more = file.read(CHUNK)
        ended, left = not more, left - len(more)
        if left < 0:
            raise ValueError(f"it unpacks to more than {MAX_FILE} characters")
        buffer, at = buffer[at:] + more, 0


def _skipped(buffer: str, at: int) -> int:
    between = _BETWEEN.match(buffer, at)
    return between.end() if between else at


def _decoded(buffer: str, at: int) -> tuple[object, int | None]:
    """The value at a place; no end when it isn't whole, or isn't JSON."""
    try:
        return _DECODER.raw_decode(buffer, at)
    except json.JSONDecodeError:
        return None, None


def _refuse_rest(buffer: str, at: int, in_list: bool) -> None:
    rest = buffer[at:]
    closed = _END.fullmatch(rest) is not None if in_list else not rest.strip()
    if not closed:
        raise json.JSONDecodeError("the file ends inside a record", "", 0)


def text(value: object) -> str:
    """A text of a record, made safe to store; anything else is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def mapping(value: object) -> Record:
    """An object of a record; anything else is an empty one."""
    return value if isinstance(value, dict) else {}
