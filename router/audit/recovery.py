"""What a process finds when it opens a log: cut a torn tail, rebuild what is derived.

1. An empty last segment is removed (crash while rotating).
2. Bytes after the last newline are cut, in the last segment and in the list of published
   checkpoints: they were never acknowledged.
3. The last segment is read; its first line gives the tree and the open requests before it.
4. The newest published checkpoint must agree with what was read, else the log is damaged.
5. Leaf hashes are written again where they differ.

Nothing here signs or appends; AuditLog then settles what is open and records the recovery.
"""

from dataclasses import dataclass, field
from hashlib import sha256

from router.audit.disk import Disk
from router.audit.entry import canonical
from router.audit.errors import LogDamaged, NoteInvalid
from router.audit.layout import LogFolder, Segment, complete_lines
from router.audit.lines import (
    EntryLine,
    InternLine,
    Line,
    LineInvalid,
    SegmentLine,
    parse_line,
)
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.tree import Frontier, leaf_hash


@dataclass(slots=True)
class Recovered:
    """The state of a log as its last complete line leaves it."""

    frontier: Frontier = field(default_factory=Frontier)
    segment: int | None = None
    segment_bytes: int = 0
    segment_time: float = 0.0
    open: dict[str, int] = field(default_factory=dict)
    interned: dict[bytes, int] = field(default_factory=dict)
    newest: float = 0.0
    torn: int = 0


def recover(folder: LogFolder, origin: str, disk: Disk) -> Recovered:
    """Read the end of a log. Raises LogDamaged when it contradicts itself or its checkpoint."""
    _mend(folder, disk)  # 2
    published = _published(folder, origin)
    segment, data, torn = _last_segment(folder, disk)
    if segment is None:
        if published is not None and published.size:
            raise LogDamaged(f"`{folder.path}` has a checkpoint of {published.size} but no segment")
        return Recovered(torn=torn)
    state = Recovered(segment=segment.first, segment_bytes=len(data), torn=torn)
    lines = complete_lines(data)[0]
    root = _read(state, segment, origin, lines, published.size if published else 0)  # 3
    _agree(folder, state, published, root)  # 4
    _rebuild(segment, disk, b"".join(map(leaf_hash, lines)))  # 5
    return state


def _last_segment(folder: LogFolder, disk: Disk) -> tuple[Segment | None, bytes, int]:
    torn = 0
    for segment in reversed(folder.segments()):
        data = segment.path.read_bytes()
        cut = complete_lines(data)[1]
        torn += cut
        if cut == len(data):  # 1
            _drop(segment, disk)
            continue
        if cut:  # 2
            disk.truncate(segment.path, len(data) - cut)
        return segment, data[: len(data) - cut], torn
    return None, b"", torn


def _mend(folder: LogFolder, disk: Disk) -> None:
    if folder.checkpoints.exists():
        data = folder.checkpoints.read_bytes()
        torn = complete_lines(data)[1]
        if torn:
            disk.truncate(folder.checkpoints, len(data) - torn)


def _drop(segment: Segment, disk: Disk) -> None:
    if segment.leaves.exists():
        disk.remove(segment.leaves)
    disk.remove(segment.path)


def _read(
    state: Recovered, segment: Segment, origin: str, lines: list[bytes], wanted: int
) -> bytes | None:
    """Replay a segment into `state`. Returns the root at size `wanted`, if it was passed."""
    root = None
    for number, raw in enumerate(lines, 1):
        try:
            _step(state, parse_line(raw), segment, origin, first=number == 1)
        except (LineInvalid, LogDamaged) as error:
            place = f"`{segment.path}` line {number}"
            raise LogDamaged(f"{place}: {error}; run `audit verify`") from error
        if number == 1 and state.frontier.size == wanted:
            root = state.frontier.root()  # as the segment line states it
        state.frontier.append(leaf_hash(raw))
        if state.frontier.size == wanted:
            root = state.frontier.root()
    return root


def _step(state: Recovered, line: Line, segment: Segment, origin: str, *, first: bool) -> None:
    if isinstance(line, SegmentLine) != first:
        raise LogDamaged("a segment starts with its one segment line")
    if isinstance(line, SegmentLine):
        _begin(state, line, segment, origin)
    elif isinstance(line, InternLine):
        state.interned[sha256(canonical(line.value)).digest()] = line.index
    else:
        _follow(state, line)


def _begin(state: Recovered, line: SegmentLine, segment: Segment, origin: str) -> None:
    if (line.log, line.index) != (origin, segment.first):
        raise LogDamaged(f"the segment begins at {line.index} of log `{line.log}`")
    state.frontier = Frontier(line.index, line.peaks)
    state.open = dict(line.open)
    state.newest = state.segment_time = line.time / 1e6


def _follow(state: Recovered, line: EntryLine) -> None:
    state.newest = max(state.newest, line.time / 1e6)
    if line.kind == "decision":
        state.open[line.id] = state.frontier.size
    elif line.kind == "outcome":
        state.open.pop(line.id, None)


def _published(folder: LogFolder, origin: str) -> Checkpoint | None:
    if not folder.checkpoint.exists():
        return None
    try:
        checkpoint = parse_checkpoint(folder.checkpoint.read_text())
    except (NoteInvalid, UnicodeDecodeError) as error:
        raise LogDamaged(f"`{folder.checkpoint}`: {error}") from error
    if checkpoint.origin != origin:
        raise LogDamaged(f"`{folder.checkpoint}` is of log `{checkpoint.origin}`")
    return checkpoint


def _agree(
    folder: LogFolder, state: Recovered, published: Checkpoint | None, root: bytes | None
) -> None:
    if published is None:
        return
    size = state.frontier.size
    if published.size > size:
        raise LogDamaged(
            f"`{folder.path}` has {size} lines but published a checkpoint of {published.size}"
        )
    if root is not None and root != published.root:
        raise LogDamaged(f"`{folder.path}` differs from its checkpoint of {published.size}")


def _rebuild(segment: Segment, disk: Disk, leaves: bytes) -> None:
    stored = segment.leaves.read_bytes() if segment.leaves.exists() else b""
    if stored != leaves:
        disk.replace(segment.leaves, leaves)
