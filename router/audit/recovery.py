"""What a process finds when it opens a log: cut a torn tail, rebuild what is derived.

1. An empty last segment is removed (crash while rotating).
2. Bytes after the last newline are cut, in the last segment and in the list of published
   checkpoints: they were never acknowledged. So is what follows a hole in the last segment: the
   blocks of a batch that was not synced reach the disk in any order.
3. The last segment is read; its first line gives the tree and the open requests before it. Lines
   that the newest published checkpoint covers, and whose root it has, are those that were
   written and are not examined again; every other line is. No signature is looked at here: who
   forges lines and checkpoint alike is found by `audit verify`.
4. The newest published checkpoint must agree with what was read, else the log is damaged.
5. Leaf hashes are written again where they differ.

Nothing here signs or appends; AuditLog then settles what is open and records the recovery.
"""

from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from router.audit.disk import Disk
from router.audit.entry import canonical
from router.audit.errors import LogDamaged, NoteInvalid
from router.audit.layout import LogFolder, Segment, complete_lines, sound, whole_lines
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
    segment, data, torn = _last_segment(folder, disk, 0 if published is None else published.size)
    if segment is None:
        if published is not None and published.size:
            raise LogDamaged(f"`{folder.path}` has a checkpoint of {published.size} but no segment")
        return Recovered(torn=torn)
    state = Recovered(segment=segment.first, segment_bytes=len(data), torn=torn)
    lines = complete_lines(data)[0]
    del data
    leaves = [leaf_hash(line) for line in lines]
    root = _read(state, segment, origin, lines, leaves, published)  # 3
    _agree(folder, state, published, root)  # 4
    _rebuild(segment, disk, b"".join(leaves))  # 5
    return state


def _last_segment(folder: LogFolder, disk: Disk, covered: int) -> tuple[Segment | None, bytes, int]:
    torn = 0
    for segment in reversed(folder.segments()):
        data = segment.path.read_bytes()
        whole = sound(data)
        if segment.first + whole.count(b"\n") < covered:
            whole = data  # that was synced, and has no hole: somebody altered it
        cut = len(data) - len(whole) + complete_lines(whole)[1]
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
        with folder.checkpoints.open("rb") as file:
            size, whole = whole_lines(file)
        if whole < size:
            disk.truncate(folder.checkpoints, whole)


def _drop(segment: Segment, disk: Disk) -> None:
    if segment.leaves.exists():
        disk.remove(segment.leaves)
    disk.remove(segment.path)


def _read(
    state: Recovered,
    segment: Segment,
    origin: str,
    lines: list[bytes],
    leaves: list[bytes],
    published: Checkpoint | None,
) -> bytes | None:
    """Replay a segment into `state`. Returns the root at the checkpoint's size, if it is passed."""
    _examine(state, segment, origin, lines, range(1))
    signed, examined, root = 0, 1, None
    passed = range(segment.first, segment.first + len(lines) + 1)
    if published is not None and published.size in passed:
        signed = published.size - segment.first
        state.frontier.extend(leaves[:signed])
        root = state.frontier.root()
        if root == published.root and _recall(state, segment, lines[1:signed]):
            examined = max(signed, 1)
    _examine(state, segment, origin, lines, range(examined, len(lines)))
    state.frontier.extend(leaves[signed:])
    return root


def _recall(state: Recovered, segment: Segment, lines: list[bytes]) -> bool:
    """Replay lines that are known to be those that were written, after the first of a segment.

    A segment has up to 100,000 lines: examined one by one they keep a start waiting for seconds.
    Gives whether all could be read.
    """
    newest = 0
    try:
        for index, raw in enumerate(lines, segment.first + 1):
            value = orjson.loads(raw)
            kind = value["k"]
            if kind == "intern":
                state.interned[sha256(canonical(value["v"])).digest()] = value["i"]
                continue
            newest = max(newest, value["t"])
            if kind == "decision":
                state.open[value["r"]] = index
            elif kind == "outcome":
                state.open.pop(value["r"], None)
    except (KeyError, TypeError, ValueError):
        return False
    state.newest = max(state.newest, newest / 1e6)
    return True


def _examine(
    state: Recovered, segment: Segment, origin: str, lines: list[bytes], which: range
) -> None:
    """Replay some lines, each held to the form of a line. Raises LogDamaged with its place."""
    for place in which:
        try:
            line = parse_line(lines[place])
            _step(state, line, segment, origin, place)
        except (LineInvalid, LogDamaged) as error:
            where = f"`{segment.path}` line {place + 1}"
            raise LogDamaged(f"{where}: {error}; run `audit verify`") from error


def _step(state: Recovered, line: Line, segment: Segment, origin: str, place: int) -> None:
    if isinstance(line, SegmentLine) != (place == 0):
        raise LogDamaged("a segment starts with its one segment line")
    if isinstance(line, SegmentLine):
        _begin(state, line, segment, origin)
    elif isinstance(line, InternLine):
        state.interned[sha256(canonical(line.value)).digest()] = line.index
    else:
        _follow(state, line, segment.first + place)


def _begin(state: Recovered, line: SegmentLine, segment: Segment, origin: str) -> None:
    if (line.log, line.index) != (origin, segment.first):
        raise LogDamaged(f"the segment begins at {line.index} of log `{line.log}`")
    state.frontier = Frontier(line.index, line.peaks)
    state.open = dict(line.open)
    state.newest = state.segment_time = line.time / 1e6


def _follow(state: Recovered, line: EntryLine, index: int) -> None:
    state.newest = max(state.newest, line.time / 1e6)
    if line.kind == "decision":
        state.open[line.id] = index
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
