"""One pass over the lines of a log: leaf hashes, roots at the sizes asked for, and what is in it.

Nothing is judged against signatures here. A line that can't be read becomes a finding; from
there on the structure (`structure.py`) is no longer followed, because every later line would only
repeat that fault.
"""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from router.audit.layout import LogFolder, Segment, complete_lines, sound
from router.audit.lines import (
    EntryLine,
    InternLine,
    Interns,
    Line,
    LineInvalid,
    SegmentLine,
    Value,
    parse_line,
)
from router.audit.reading import Place, Shown
from router.audit.structure import Structure
from router.audit.tree import HASH_BYTES, Frontier, leaf_hash
from router.audit.verdict import Fault, Finding


@dataclass(frozen=True, slots=True)
class Part:
    """One segment as found: its lines are leaves [start, start + count) of what is there."""

    segment: Segment
    start: int
    count: int


@dataclass(slots=True)
class Scan:
    """What one pass found. `roots` holds the root at each size asked for, as far as reached;
    `times` the newest time (µs) of the entries below it, as far as they could be read. `findings`
    are wrong where they are; what is `unfit` does not follow from the lines before it, any of which
    may be the wrong one."""

    log: str
    leaves: bytearray = field(default_factory=bytearray)
    roots: dict[int, bytes] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    torn: int = 0
    findings: list[Finding] = field(default_factory=list)
    unfit: list[Finding] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Complete lines found."""
        return len(self.leaves) // HASH_BYTES

    @property
    def faulty(self) -> bool:
        """Whether anything was found that no log writes."""
        return bool(self.findings or self.unfit)

    def leaf(self, index: int) -> bytes | None:
        """Leaf hash of the line with an index, going by the names of the segments."""
        part = self._part([part.segment.first for part in self.parts], index)
        if part is None or index >= part.segment.first + part.count:
            return None
        at = (part.start + index - part.segment.first) * HASH_BYTES
        return bytes(self.leaves[at : at + HASH_BYTES])

    def place(self, index: int) -> Place:
        """Where the line with an index is or should be, going by the names of the segments."""
        part = self._part([part.segment.first for part in self.parts], index)
        if part is None:
            return Place(self.log, "", 0, index)
        return Place(self.log, part.segment.name, index - part.segment.first + 1, index)

    def found_at(self, position: int, index: int) -> Place:
        """Where the line at a position among those found is, though it should be at `index`."""
        part = self._part([part.start for part in self.parts], position)
        if part is None:
            return self.place(index)
        return Place(self.log, part.segment.name, position - part.start + 1, index)

    def _part(self, starts: list[int], at: int) -> Part | None:
        number = bisect_right(starts, at) - 1
        return self.parts[number] if number >= 0 else None


class _Unfit(LineInvalid):
    """A line that does not follow from those before it."""


class Reader(Protocol):
    """Is shown what is being verified, in the one pass there is: it reads what was hashed."""

    def entry(self, shown: Shown) -> None:
        """An entry whose line is as a log writes it. None come after a log's first
        fault, unless that is lines that should be here."""

    def segment(self, log: str, count: int) -> None:
        """A segment of so many bytes has been read."""


def scan(
    folder: LogFolder,
    wanted: Collection[int],
    structure: Structure,
    reader: Reader | None = None,
) -> Scan:
    """Read every segment once."""
    present = folder.segments()
    last = present[-1].first if present else 0
    segments = [one for one in folder.hashed() if one.first <= last]
    return _Scanner(folder.path.name, wanted, structure, reader).run(segments)


class _Scanner:
    def __init__(
        self, log: str, wanted: Collection[int], structure: Structure, reader: Reader | None
    ) -> None:
        self._scan = Scan(log)
        self._reader = reader
        self._wanted = frozenset(wanted)
        self._structure: Structure | None = structure
        self._frontier = Frontier()
        self._interns = Interns()
        if 0 in self._wanted:
            self._scan.roots[0] = self._frontier.root()

    def run(self, segments: list[Segment]) -> Scan:
        for segment in segments:
            last = segment is segments[-1]
            self._segment(segment, last=last)
        if self._structure is not None:
            self._structure.end()
        return self._scan

    def _segment(self, segment: Segment, *, last: bool) -> None:
        found, start = self._scan, self._scan.size
        try:
            data = segment.path.read_bytes()
        except FileNotFoundError:
            self._hashes(segment)
            return
        whole = sound(data) if last else data
        raws, torn = complete_lines(whole)
        torn += len(data) - len(whole)
        self._begun(Part(segment, start, len(raws)))
        for number, raw in enumerate(raws, 1):
            self._line(segment, number, raw)
        if torn and last:
            found.torn = torn
        elif torn:
            place = Place(found.log, segment.name, len(raws) + 1, segment.first + len(raws))
            self._fault("malformed", place, "an incomplete line in a segment that others follow")
        if self._reader is not None:
            self._reader.segment(found.log, len(data))

    def _begun(self, part: Part) -> None:
        """Told once, where it is: all later segments are as far off, and would hide the line; and
        the one after a segment with a wrong name is where it should be."""
        before, first = self._scan.parts[-1:], part.segment.first
        self._scan.parts.append(part)
        end = sum(one.segment.first + one.count for one in before)
        if first != end and not (self._scan.findings and first == part.start):
            place = Place(self._scan.log, part.segment.name, 1, min(end, first))
            detail = f"the segment begins at {first}, but the lines before it end at {end}"
            self._fault("segment", place, detail)

    def _hashes(self, segment: Segment) -> None:
        """Of lines that aren't here; whether they may be gone is judged at the end."""
        stored = segment.leaves.read_bytes()
        part = Part(segment, self._scan.size, len(stored) // HASH_BYTES)
        self._begun(part)
        for at in range(0, part.count * HASH_BYTES, HASH_BYTES):
            self._hashed(stored[at : at + HASH_BYTES])
        if self._structure is not None:
            place = Place(self._scan.log, segment.name, 1, segment.first)
            self._structure.absent(place, part.start + part.count)

    def _line(self, segment: Segment, number: int, raw: bytes) -> None:
        place = Place(self._scan.log, segment.name, number, segment.first + number - 1)
        if self._structure is not None:
            try:
                self._follow(place, parse_line(raw))
            except _Unfit as error:
                self._scan.unfit.append(Finding("malformed", place, str(error)))
                self._structure = None
            except LineInvalid as error:
                self._fault("malformed", place, str(error))
        self._hashed(leaf_hash(raw))
        if self._frontier.size in self._wanted and self._structure is not None:
            self._scan.times[self._frontier.size] = self._structure.newest

    def _hashed(self, leaf: bytes) -> None:
        self._scan.leaves += leaf
        self._frontier.append(leaf)
        if self._frontier.size in self._wanted:
            self._scan.roots[self._frontier.size] = self._frontier.root()

    def _follow(self, place: Place, line: Line) -> None:
        structure = self._structure
        if structure is None:
            return
        if isinstance(line, SegmentLine) != (place.line == 1):
            raise LineInvalid("a segment starts with its one segment line")
        if isinstance(line, EntryLine):
            body = self._resolved(line)
            structure.entry(place, line, body)
            if self._reader is not None:
                self._reader.entry(Shown(place, line.kind, line.id, line.time, body))
        elif isinstance(line, InternLine):
            if line.index != place.index:
                raise _Unfit(f"the intern line says it is at {line.index}")
            self._interns.values[line.index] = line.value
        else:
            self._start(place, line)

    def _resolved(self, line: EntryLine) -> dict[str, Value]:
        try:
            return self._interns.resolve(line.body)
        except LineInvalid as error:
            raise _Unfit(str(error)) from error

    def _start(self, place: Place, line: SegmentLine) -> None:
        if (line.log, line.index) != (self._scan.log, place.index):
            raise LineInvalid(f"the segment line is of log `{line.log}`, index {line.index}")
        if line.peaks != tuple(self._frontier.peaks):
            raise _Unfit("the peaks of the segment line are not those of the lines before it")
        self._interns = Interns()
        if self._structure is not None:
            self._structure.segment(place, line)

    def _fault(self, fault: Fault, place: Place, detail: str) -> None:
        self._scan.findings.append(Finding(fault, place, detail))
        self._structure = None
