"""A sink follows the log: every event, at the sink's own pace, none lost.

There is no queue between the router and a sink. The log itself is the queue, on disk and durable;
a cursor says how far the sink is. So a sink that is slow, full or away slows nobody, holds no
memory, and goes on where it was; `behind` is how many lines it has still to look at.

For each turn: 1. read at most so many lines; 2. hand their events over, durably; 3. move the
cursor. A crash between 2 and 3 repeats at most one turn: events carry their record's name, so that
a receiver can tell.

A request's events go only where its record may be kept: to a sink in another place than
`allowed.retain` they are withheld, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router.audit.disk import Disk
from router.audit.errors import AuditError
from router.audit.exporting import FORMATS, Event, events
from router.audit.layout import LogFolder
from router.audit.paging import Owned
from router.audit.tailing import Tail

TURN: Final = 5000


class SinkRefused(AuditError):
    """A sink whose format or cursor can't be used."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The index of the last line looked at, events written in this turn, lines still to look at,
    and events withheld from a place they may not be kept in."""

    cursor: int
    written: int
    behind: int
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """A stretch of the log: its events, and the index of its last line."""

    events: Sequence[Event]
    last: int
    withheld: int = 0


class Follower:
    """Where one sink is in the log. Blocking: call it in a thread, one call at a time.

    Args:
        name: the sink's own, as the cursor's file bears it.
        region: where the sink is; empty for this router's own machine.
    """

    def __init__(
        self, log: LogFolder, name: str, format_: str, disk: Disk, region: str = ""
    ) -> None:
        if format_ not in FORMATS:
            raise SinkRefused(f"`{format_}` is no format; there are: {', '.join(sorted(FORMATS))}")
        self._log = log
        self._region = region
        self._disk = disk
        self._cursor = log.exports / f"{name}.{format_}.cursor"
        self._tail: Tail | None = None
        self._offered: tuple[int, int, Batch] | None = None

    def batch(self, size: int, most: int) -> Batch:
        """The next lines, at most `most`; `size` is the number of durable ones.

        Raises:
            SinkRefused: the cursor can't be read. LineInvalid.
        """
        after = self.at()
        if self._offered is not None and self._offered[:2] == (after, most):
            return self._offered[2]  # it was not taken: the same again
        entries = self._read(after, size, most)
        kept = [one for one in entries if self._may_go(one)]
        last = entries[-1].shown.place.index if entries else after
        found = tuple(events(kept))
        batch = Batch(found, last, sum(1 for _ in events(entries)) - len(found))
        self._offered = (after, most, batch) if entries else None
        return batch

    def _read(self, after: int, size: int, most: int) -> list[Owned]:
        tail, self._tail = self._tail, None
        if tail is None or tail.last != after:
            tail = Tail(self._log, after)
        entries = tail.read(size, most)
        self._tail = tail
        return entries

    def moved(self, last: int) -> None:
        """Say that everything up to a line is handed over. Raises OSError."""
        self._disk.replace(self._cursor, b"%d\n" % last)
        self._offered = None

    def at(self) -> int:
        """The last line that was looked at. Raises SinkRefused."""
        if not self._cursor.exists():
            return -1
        text = self._cursor.read_text().strip()
        if not text.isascii() or not text.isdigit():
            raise SinkRefused(f"`{self._cursor}` is no index; remove it to export all again")
        return int(text)

    def _may_go(self, one: Owned) -> bool:
        allowed = one.owner.body.get("allowed")
        if not self._region or not isinstance(allowed, dict):
            return True
        kept = allowed.get("retain")
        return isinstance(kept, list) and self._region in kept


class FileSink:
    """One file in one format. Blocking: call it in a thread, one turn at a time."""

    def __init__(self, log: LogFolder, target: Path, format_: str, disk: Disk) -> None:
        self._follower = Follower(log, target.name, format_, disk)
        self._target = target
        self._format = FORMATS[format_]
        self._disk = disk

    def turn(self, size: int) -> Progress:
        """Follow by one turn; `size` is the number of durable lines.

        Raises:
            OSError: the file can't be written; the next turn tries the same again.
            SinkRefused: the cursor can't be read. LineInvalid.
        """
        before = self._follower.at()
        batch = self._follower.batch(size, TURN)
        if batch.events:
            self._append(b"".join(self._lines(batch)))
        if batch.last != before:
            self._follower.moved(batch.last)
        return Progress(batch.last, len(batch.events), max(0, size - 1 - batch.last))

    def _lines(self, batch: Batch) -> Iterator[bytes]:
        return (self._format(event) + b"\n" for event in batch.events)

    def _append(self, data: bytes) -> None:
        fd = self._disk.open(self._target)
        try:
            self._disk.write(fd, data)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
