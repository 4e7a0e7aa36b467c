"""The write path of one log: what is on disk when, and what a crash at each point means.

A batch is everything that was waiting when the event loop handed it over. For each batch:

 1. nothing written yet   crash: the batch is lost; nobody was told, nothing was sent.
 2. rotation: the new segment file exists, empty
                          crash: recovery removes an empty last segment. Lost as in 1.
 3. lines partly written  crash: recovery cuts the incomplete last line ("torn tail"). Complete
                          lines before it stay; their requests were never told, so nothing was
                          sent, and recovery settles them as `unknown`.
 4. lines written, not synced
                          crash of the process: they stay, as in 5. Of the machine: as in 3.
 5. lines synced          crash: entries are durable and nobody was told. Settled as in 3.
 6. leaf hashes appended (never synced: they are derived)
                          crash: recovery writes them again from the lines.
 7. tree head signed      crash: as in 5. A signed head never covers a line that is not synced, so
                          no crash makes the log sign two heads that contradict each other.
 8. publication (heartbeat, close): appended to `checkpoints.jsonl` and synced
                          crash: `checkpoint` is one publication behind, which is allowed.
 9. `checkpoint` replaced  crash: as in 5.
10. the event loop is told crash: the request may have been sent; its entry is durable. Recovery
                          settles it as `unknown`.

Any error in 2 to 9 ends the writer: a failed sync may have dropped pages that a second sync would
report as clean, so nothing is ever retried on the same descriptor.

Lines are appended and `fdatasync`ed. Writing with RWF_DSYNC into a pre-zeroed file costs the same
within noise, and a file that ends where its lines end needs no second rule for its tail.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from router.audit.disk import Disk
from router.audit.entry import SegmentStart, canonical
from router.audit.errors import LogUnavailable
from router.audit.layout import LogFolder
from router.audit.note import Checkpoint, Signer
from router.audit.tree import Frontier, leaf_hash


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines in order. `start` opens a new segment before them; its line comes first.

    `alone`: no decision is open but one among the lines, and they take no more than one sync.
    """

    lines: Sequence[bytes]
    start: SegmentStart | None = None
    publish: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A durable batch: index of its first line, leaf hashes, and the head signed after it."""

    first: int
    leaves: Sequence[bytes]
    checkpoint: Checkpoint


class Writer:
    """Owns the open segment and the tree. Used by one thread at a time.

    `segment` is the first line of the segment to go on with, and `size` its bytes, as they were
    when the tree was read. Raises LogUnavailable: it has others by now.
    """

    def __init__(
        self, folder: LogFolder, disk: Disk, frontier: Frontier, segment: int | None, size: int = 0
    ) -> None:
        self._folder = folder
        self._disk = disk
        self._tree = frontier
        self._failed = False
        self._files: tuple[int, int] | None = None
        self._end = 0
        if segment is not None:
            self._open(segment, size)

    @property
    def size(self) -> int:
        """Number of durable lines."""
        return self._tree.size

    def write(self, batch: Batch, signer: Signer) -> Written:
        """Make a batch durable and sign the tree. After any error the writer refuses everything."""
        if self._failed:
            raise LogUnavailable("the log failed earlier; restart the process to recover it")
        try:
            return self._write(batch, signer)
        except BaseException:
            self._failed = True
            raise

    def _write(self, batch: Batch, signer: Signer) -> Written:
        lines, first = list(batch.lines), self._tree.size
        if batch.start is not None:
            lines.insert(0, batch.start.line(self._tree.peaks))
            self._rotate(first)  # 2
        if self._files is None:
            raise LogUnavailable("the first batch of a log starts a segment")
        segment, sidecar = self._files
        data = b"\n".join(lines) + b"\n"
        self._disk.write(segment, data)  # 3, 4
        self._alone(segment, len(data))
        self._disk.sync(segment)  # 5
        leaves = [leaf_hash(line) for line in lines]
        self._disk.write(sidecar, b"".join(leaves))  # 6
        self._tree.extend(leaves)
        head = signer.checkpoint(self._tree.size, self._tree.root())  # 7
        if batch.publish:
            head = signer.published(head)
            self._publish(head, sidecar)
        return Written(first, leaves, head)

    def _alone(self, segment: int, written: int) -> None:
        """A lock can be lost, as on a network file system; then another process may write too."""
        self._end += written
        found = self._disk.size(segment)
        if found != self._end:
            raise LogUnavailable(
                f"another process writes `{self._folder.path}`: its segment has {found} bytes "
                f"where this one knows of {self._end}; let one write, then run `audit verify`"
            )

    def _publish(self, head: Checkpoint, sidecar: int) -> None:
        self._disk.sync(sidecar)
        published = self._disk.open(self._folder.checkpoints)
        try:
            self._disk.write(published, canonical({"checkpoint": head.text}) + b"\n")
            self._disk.sync(published)  # 8
        finally:
            self._disk.close(published)
        self._disk.replace(self._folder.checkpoint, head.text.encode())  # 9

    def _rotate(self, first: int) -> None:
        if self._files is not None:
            self._disk.sync(self._files[1])
        self._shut()
        self._open(first, 0)

    def _open(self, first: int, size: int) -> None:
        segment = self._folder.segment(first)
        self._files = (self._disk.open(segment.path), self._disk.open(segment.leaves))
        self._end = size
        try:
            self._alone(self._files[0], 0)
        except LogUnavailable:
            self._shut()
            raise

    def _shut(self) -> None:
        for fd in self._descriptors():
            self._disk.close(fd)
        self._files = None

    def _descriptors(self) -> Iterator[int]:
        yield from self._files or ()

    def close(self) -> None:
        """Close the files. What was acknowledged is already durable."""
        self._failed = True
        self._shut()
