"""A log page by page, each entry with the one that says whose it is.

Outcomes and attempts don't name a tenant: they belong to the decision that their request opened,
which is earlier in the same segment or listed as open in its first line.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from router.audit.layout import LogFolder, segment_lines
from router.audit.lines import SegmentLine, parse_line
from router.audit.reading import LogReader, Shown


@dataclass(frozen=True, slots=True)
class Owned:
    """An entry, and the decision it belongs to: itself, unless it is of a request begun before."""

    shown: Shown
    owner: Shown


def page(folder: LogFolder, after: int, size: int) -> Iterator[Owned]:
    """Entries with an index above `after`, below `size`, in order. Raises LineInvalid."""
    reader = LogReader(folder)
    segments = folder.segments()
    ends = [segment.first for segment in segments[1:]] + [size]
    for segment, end in zip(segments, ends, strict=True):
        if end <= after + 1:
            continue
        first = parse_line(next(segment_lines(segment)))
        opened = first.open if isinstance(first, SegmentLine) else ()
        owners = {id_: reader.entry(index) for id_, index in opened}
        for shown in reader.of(segment):
            if shown.place.index >= size:
                return
            if shown.kind == "decision":
                owners[shown.id] = shown
            owner = owners.get(shown.id, shown) if shown.kind in ("attempt", "outcome") else shown
            if shown.place.index > after:
                yield Owned(shown, owner)
