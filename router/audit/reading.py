"""Reading a log without writing it: entries with interned values in place, and proofs."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from router.audit.errors import AuditError
from router.audit.layout import Folder, LogFolder, Segment, segment_lines
from router.audit.lines import (
    EntryLine,
    InternLine,
    Interns,
    LineInvalid,
    Value,
    parse_line,
    references,
)
from router.audit.tree import HASH_BYTES, LeafTree


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line is: file, 1-based line number, and index in the log (-1: not known)."""

    log: str
    segment: str
    line: int
    index: int

    def __str__(self) -> str:
        where = f"{self.log}/segments/{self.segment}" if self.segment else self.log
        where += f":{self.line}" if self.line else ""
        return f"{where} (index {self.index})" if self.index >= 0 else where


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry as a reader sees it. `time` is in microseconds since 1970."""

    place: Place
    kind: str
    id: str
    time: int
    body: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Proof that a line is in the tree of `size`: its leaf hash and audit path."""

    index: int
    size: int
    leaf: bytes
    path: tuple[bytes, ...]


class NotInLog(AuditError):
    """The log holds no entry there."""


# No log has so many lines, and no iterator counts further.
_MOST: Final = 1 << 62
_RECORD: Final = re.compile(r"([^/]+)/([0-9]{1,19})(?:/[0-9a-f]{64})?")


def indexed(record: str) -> tuple[str, int] | None:
    """Log and index of `LOG/INDEX`, or of `LOG/INDEX/LEAF` as answers carry it."""
    found = _RECORD.fullmatch(record)
    return None if found is None else (found[1], int(found[2]))


def named(folder: Folder, record: str) -> list[Shown]:
    """The entries behind `LOG/INDEX`, `LOG/INDEX/LEAF` or a request id. Raises NotInLog."""
    at = indexed(record)
    if at is None:
        return [one for one in every(folder) if one.id and one.id == record]
    if at[0] not in folder.log_ids():
        raise NotInLog(f"`{at[0]}` is no log in `{folder.path}`")
    return [LogReader(folder.log(at[0])).entry(at[1])]


def every(folder: Folder) -> Iterator[Shown]:
    """Every entry of every log in a folder."""
    for log in folder.logs:
        yield from LogReader(log).entries()


class LogReader:
    """Entries and proofs of one log folder, as far as it is on disk."""

    def __init__(self, folder: LogFolder) -> None:
        self._folder = folder
        self._tree = LeafTree(0, self._leaves)

    def entries(self) -> Iterator[Shown]:
        """Every entry in order. Raises LineInvalid at the first line that can't be read."""
        for segment in self._folder.segments():
            yield from self._segment(segment)

    def of(self, segment: Segment) -> Iterator[Shown]:
        """The entries of one segment. Raises LineInvalid."""
        return self._segment(segment)

    def entry(self, index: int) -> Shown:
        """The entry at an index. Raises NotInLog for interned values and segment lines too.

        Of its segment only this line and those it names are parsed: who asks is kept waiting, and
        so is the router that they ask.
        """
        segment, name = self._holding(index), self._folder.path.name
        raws = list(islice(segment_lines(segment), index - segment.first + 1))
        number = index - segment.first + 1
        line = parse_line(raws[-1]) if len(raws) == number else None
        if not isinstance(line, EntryLine):
            raise NotInLog(f"no entry has index {index} in `{name}`")
        interns, before = Interns(), range(segment.first, index)
        for at in set(references(dict(line.body))).intersection(before):
            value = parse_line(raws[at - segment.first])
            if isinstance(value, InternLine):
                interns.values[value.index] = value.value
        body = interns.resolve(line.body)
        return Shown(Place(name, segment.name, number, index), line.kind, line.id, line.time, body)

    def line(self, index: int) -> bytes:
        """The exact bytes of a line."""
        segment = self._holding(index)
        for at, raw in enumerate(segment_lines(segment), segment.first):
            if at == index:
                return raw
        raise NotInLog(f"`{self._folder.path.name}` has no line {index}")

    def inclusion(self, index: int, size: int) -> Inclusion:
        """Proof for a line in the tree of `size` leaves. Raises NotInLog beyond what is stored."""
        tree = self.tree(size)
        if not 0 <= index < size:
            raise NotInLog(f"no line {index} in a tree of {size}")
        return Inclusion(index, size, tree.leaf(index), tree.inclusion(index, size))

    def inclusions(self, wanted: Sequence[int], size: int) -> Iterator[tuple[bytes, ...]]:
        """Audit paths of lines below `size`, in ascending order. Raises NotInLog as above."""
        return self.tree(size).inclusions(wanted, size)

    def tree(self, size: int) -> LeafTree:
        """The stored leaf hashes as a tree of at least `size` leaves."""
        if self._tree.size < size:
            last = self._folder.segments()[-1:]
            stored = [part.first + part.leaves.stat().st_size // HASH_BYTES for part in last]
            if not stored or stored[0] < size:
                raise NotInLog(f"`{self._folder.path.name}` holds no tree of {size}")
            self._tree.size = size
        return self._tree

    def _holding(self, index: int) -> Segment:
        segments, name = self._folder.hashed(), self._folder.path.name
        at = bisect_right([segment.first for segment in segments], index) - 1
        if not 0 <= index < _MOST or at < 0:
            raise NotInLog(f"`{name}` has no line {index}")
        if at + 1 < len(segments) and not segments[at].path.exists():
            raise NotInLog(f"line {index} of `{name}` was released: restore it from its seal")
        return segments[at]

    def _segment(self, segment: Segment) -> Iterator[Shown]:
        interns = Interns()
        for number, raw in enumerate(segment_lines(segment), 1):
            place = Place(self._folder.path.name, segment.name, number, segment.first + number - 1)
            line = parse_line(raw)
            if isinstance(line, InternLine):
                interns.values[line.index] = line.value
            elif isinstance(line, EntryLine):
                body = interns.resolve(line.body)
                yield Shown(place, line.kind, line.id, line.time, body)
            elif number > 1:
                raise LineInvalid(f"{place}: a segment line inside a segment")

    def _leaves(self, start: int, end: int) -> bytes:
        parts: list[bytes] = []
        segments = self._folder.hashed()
        at = bisect_right([segment.first for segment in segments], start) - 1
        for segment in segments[at:]:
            if segment.first >= end:
                break
            with segment.leaves.open("rb") as file:
                skip = max(start - segment.first, 0)
                file.seek(skip * HASH_BYTES)
                parts.append(file.read((end - segment.first - skip) * HASH_BYTES))
        return b"".join(parts)
