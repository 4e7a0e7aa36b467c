"""A sink follows the log: every event to a file, at the sink's own pace, none lost.

There is no queue between the router and a sink. The log itself is the queue, on disk and durable;
a cursor says how far the sink is. So a sink that is slow or full slows nobody, holds no memory,
and goes on where it was; `behind` is how many lines it has still to look at.

For each turn: 1. read at most so many lines; 2. append their events to the file and sync;
3. move the cursor. A crash between 2 and 3 repeats at most one turn: events carry their record's
name, so that a receiver can tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from router.audit.disk import Disk
from router.audit.errors import AuditError
from router.audit.exporting import FORMATS, events
from router.audit.layout import LogFolder
from router.audit.paging import Owned, page

TURN: Final = 5000


class SinkRefused(AuditError):
    """A sink whose format or cursor can't be used."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The index of the last line looked at, events written in this turn, lines still to look at."""

    cursor: int
    written: int
    behind: int


class FileSink:
    """One file in one format. Blocking: call it in a thread, one turn at a time."""

    def __init__(self, log: LogFolder, target: Path, format_: str, disk: Disk) -> None:
        if format_ not in FORMATS:
            raise SinkRefused(f"`{format_}` is no format; there are: {', '.join(sorted(FORMATS))}")
        self._log = log
        self._target = target
        self._format = FORMATS[format_]
        self._disk = disk
        self._cursor = log.path / "exports" / f"{target.name}.{format_}.cursor"

    def turn(self, size: int) -> Progress:
        """Follow by one turn; `size` is the number of durable lines.

        Raises:
            OSError: the file can't be written; the next turn tries the same again.
            SinkRefused: the cursor can't be read. LineInvalid.
        """
        after = self._at()
        entries = list(islice(self._below(after, size), TURN))
        if not entries:
            return Progress(after, 0, max(0, size - 1 - after))
        lines = [self._format(event) for event in events(entries)]
        if lines:
            self._append(b"\n".join(lines) + b"\n")
        last = entries[-1].shown.place.index
        self._disk.replace(self._cursor, b"%d\n" % last)
        return Progress(last, len(lines), size - 1 - last)

    def _below(self, after: int, size: int) -> Iterator[Owned]:
        return page(self._log, after, size)

    def _at(self) -> int:
        if not self._cursor.exists():
            return -1
        text = self._cursor.read_text().strip()
        if not text.isascii() or not text.isdigit():
            raise SinkRefused(f"`{self._cursor}` is no index; remove it to export all again")
        return int(text)

    def _append(self, data: bytes) -> None:
        fd = self._disk.open(self._target)
        try:
            self._disk.write(fd, data)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
