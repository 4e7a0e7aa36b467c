"""A log read on from where it was, as it grows: each line is parsed once.

What a line refers to (interned values, and the decisions of requests still open) is kept between
reads: as much as one segment holds. Where nothing is kept yet, the segment is read from its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from router.audit.layout import LogFolder, Segment
from router.audit.lines import EntryLine, InternLine, Interns, SegmentLine, parse_line
from router.audit.paging import Owned
from router.audit.reading import LogReader, NotInLog, Place, Shown

CHUNK: Final = 1 << 20


class Tail:
    """Gives the entries of one log in order, from the one after `after` on.

    `last` is the index of the newest entry given. After an error it can't be used any further.
    """

    def __init__(self, folder: LogFolder, after: int) -> None:
        self.last = after
        self._folder = folder
        self._after = after
        self._segment: Segment | None = None
        self._next = 0
        self._offset = 0
        self._interns = Interns()
        self._owners: dict[str, Shown] = {}

    def read(self, size: int, most: int) -> list[Owned]:
        """At most `most` more entries, with indices below `size`. Raises LineInvalid, OSError."""
        found: list[Owned] = []
        for one in self._entries(size):
            found.append(one)
            self.last = one.shown.place.index
            if len(found) == most:
                break
        return found

    def _entries(self, size: int) -> Iterator[Owned]:
        while True:
            segments = self._folder.segments()
            segment = self._current(segments)
            if segment is None:
                return
            later = [one.first for one in segments if one.first > segment.first]
            end = min([size, *later[:1]])
            yield from self._of(segment, end)
            if not later or self._next < later[0]:
                return

    def _current(self, segments: list[Segment]) -> Segment | None:
        """The segment of the next line; a new one is begun with nothing interned."""
        wanted = self._next if self._segment is not None else self._after + 1
        # What was released before anybody looked is not here: then the oldest comes next.
        holding = [one for one in segments if one.first <= wanted] or segments[:1]
        if not holding:
            return None
        if self._segment != holding[-1]:
            self._segment, self._next, self._offset = holding[-1], holding[-1].first, 0
            self._interns = Interns()
        return self._segment

    def _of(self, segment: Segment, end: int) -> Iterator[Owned]:
        for raw in self._lines(segment, end):
            line = parse_line(raw)
            place = Place(
                self._folder.path.name, segment.name, self._next - segment.first, self._next - 1
            )
            if isinstance(line, SegmentLine):
                self._opened(line)
            elif isinstance(line, InternLine):
                self._interns.values[line.index] = line.value
            else:
                one = self._owned(line, place)
                if place.index > self._after:
                    yield one

    def _opened(self, line: SegmentLine) -> None:
        missing = [(id_, index) for id_, index in line.open if id_ not in self._owners]
        if missing:
            reader = LogReader(self._folder)
            for id_, index in missing:
                with suppress(NotInLog):  # released: its outcome stands alone
                    self._owners[id_] = reader.entry(index)

    def _owned(self, line: EntryLine, place: Place) -> Owned:
        body = self._interns.resolve(line.body)
        shown = Shown(place, line.kind, line.id, line.time, body)
        if line.kind == "decision":
            self._owners[line.id] = shown
        elif line.kind == "attempt":
            return Owned(shown, self._owners.get(line.id, shown))
        elif line.kind == "outcome":
            return Owned(shown, self._owners.pop(line.id, shown))
        return Owned(shown, shown)

    def _lines(self, segment: Segment, end: int) -> Iterator[bytes]:
        """Complete lines below an index; each is taken as read before it is given."""
        with segment.path.open("rb") as file:
            held = b""
            at = self._offset
            while self._next < end:
                file.seek(at)
                piece = file.read(CHUNK)
                if not piece:
                    return
                at += len(piece)
                *whole, held = (held + piece).split(b"\n")
                for raw in whole:
                    if self._next >= end:
                        return
                    self._next += 1
                    self._offset += len(raw) + 1
                    yield raw
