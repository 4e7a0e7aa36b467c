"""Where things stand in a folder of logs.

- `DIR/roster.jsonl`: signed chain of every process's starts and stops
- `DIR/snapshots/<sha256>.json`: what decisions name by digest
- `DIR/<log id>/segments/<first>.jsonl`: lines; the name is the index of the first one
- `DIR/<log id>/segments/<first>.leaves`: their leaf hashes, 32 bytes each (derived)
- `DIR/<log id>/checkpoint`: newest published checkpoint
- `DIR/<log id>/checkpoints.jsonl`: every published checkpoint
- `DIR/<log id>/sealed.jsonl`: which segments are sealed where, as read back
- `DIR/<log id>/openings/openings.jsonl`: what opens commitments; erasable, never evidence
- `DIR/<log id>/lock`: held while a process writes
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final

_SEGMENT: Final = re.compile(r"([0-9]{20})\.(jsonl|leaves)")
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""A log's id is a folder's name and the origin of its checkpoints."""
_BLOCK: Final = 1 << 16
_SECTOR: Final = 512
_ZEROS: Final = re.compile(rb"\0++")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file; `first` is the index of its first line, as its name says."""

    path: Path
    first: int

    @property
    def leaves(self) -> Path:
        """The file of its leaf hashes."""
        return self.path.with_suffix(".leaves")

    @property
    def name(self) -> str:
        """File name, as findings show it."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class LogFolder:
    """The folder of one log."""

    path: Path

    @property
    def begun(self) -> bool:
        """Whether it has a segment."""
        return any((self.path / "segments").glob("*.jsonl"))

    @property
    def checkpoint(self) -> Path:
        """Newest published checkpoint."""
        return self.path / "checkpoint"

    @property
    def checkpoints(self) -> Path:
        """All published checkpoints."""
        return self.path / "checkpoints.jsonl"

    @property
    def sealed(self) -> Path:
        """What was sealed."""
        return self.path / "sealed.jsonl"

    @property
    def exports(self) -> Path:
        """How far each export is."""
        return self.path / "exports"

    @property
    def openings(self) -> Path:
        """What opens the log's commitments."""
        return self.path / "openings" / "openings.jsonl"

    @property
    def lock(self) -> Path:
        """Held by the writing process."""
        return self.path / "lock"

    def segment(self, first: int) -> Segment:
        """The segment that starts at an index."""
        return Segment(self.path / "segments" / f"{first:020d}.jsonl", first)

    def segments(self) -> list[Segment]:
        """All segments whose lines are here, in order of their names."""
        return [Segment(path, first) for path, first in self._named("jsonl")]

    def hashed(self) -> list[Segment]:
        """All segments whose lines or leaf hashes are here, in order: those that were released
        have hashes only."""
        firsts = {first for ending in ("jsonl", "leaves") for _, first in self._named(ending)}
        return [self.segment(first) for first in sorted(firsts)]

    def _named(self, ending: str) -> list[tuple[Path, int]]:
        folder = self.path / "segments"
        names = sorted(folder.iterdir()) if folder.is_dir() else []
        matches = ((path, _SEGMENT.fullmatch(path.name)) for path in names)
        return [(path, int(match[1])) for path, match in matches if match and match[2] == ending]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of logs that share a roster and snapshots."""

    path: Path

    @property
    def roster(self) -> Path:
        """The signed chain of starts and stops."""
        return self.path / "roster.jsonl"

    def log(self, log_id: str) -> LogFolder:
        """The folder of one log."""
        return LogFolder(self.path / log_id)

    def log_ids(self) -> list[str]:
        """Ids of the logs present, in order. Raises PermissionError where it can't be seen whether
        a folder is a log: `glob` would pass it over, and with it all that it holds."""
        if not self.path.is_dir():
            return []
        return sorted(path.name for path in self.path.iterdir() if _is_log(path))

    @property
    def logs(self) -> list[LogFolder]:
        """The logs present, in the order of their ids."""
        return [self.log(log_id) for log_id in self.log_ids()]

    @property
    def released(self) -> int:
        """How many segments are here by their leaf hashes only."""
        return sum(len(log.hashed()) - len(log.segments()) for log in self.logs)

    def snapshot(self, digest: str) -> Path:
        """Where a snapshot is kept."""
        return self.path / "snapshots" / f"{digest}.json"


def _is_log(path: Path) -> bool:
    return any(_is_there(path / name) for name in ("segments", "checkpoints.jsonl"))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        if ID.fullmatch(path.parent.name):
            raise
        return False  # no log has such a name: it may be `lost+found`
    return True


def complete_lines(data: bytes) -> tuple[list[bytes], int]:
    """The complete lines of a segment, and the number of bytes after the last newline."""
    body, newline, torn = data.rpartition(b"\n")
    return (body.split(b"\n") if newline else []), len(torn)


def sound(data: bytes) -> bytes:
    """A last segment up to a hole that a power cut left in what was not synced.

    A file system may have written later blocks of a batch before earlier ones: those are zeros, to
    the end of a sector. No line holds a zero byte.
    """
    for hole in _ZEROS.finditer(data):
        if hole.end() == len(data) or hole.end() % _SECTOR == 0:
            return data[: hole.start()]
    return data


def whole_lines(file: BinaryIO) -> tuple[int, int]:
    """The bytes of a file, and how many of them are whole lines. Read from the end: some grow for
    years."""
    size = end = file.seek(0, SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        last = file.read(end - start).rfind(b"\n")
        if last >= 0:
            return size, start + last + 1
        end = start
    return size, 0


def first_line(segment: Segment) -> bytes:
    """The first line of a segment file, without its newline."""
    with segment.path.open("rb") as file:
        return file.readline().rstrip(b"\n")


def segment_lines(segment: Segment) -> Iterator[bytes]:
    """Complete lines of a segment file, without their newlines."""
    yield from complete_lines(segment.path.read_bytes())[0]
