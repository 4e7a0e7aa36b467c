"""The local copy of a sealed segment goes, when it has been here long enough.

Of the segments whose lines are here, oldest first:

 1. `sealed.jsonl` names it, and another segment follows;
 2. its newest entry is as old as the terms say, and every export has passed it;
 3. its object is read back once more: the same bytes, under COMPLIANCE, for as long as was noted;
 4. an `administration` entry (`"event":"released"`) says which lines go and where they are sealed;
 5. when a published checkpoint covers that entry, the file of the lines is removed. Their leaf
    hashes stay: with them the tree is whole, so every head, receipt and proof of a line that is
    here is checked as before.

A crash before 5 leaves the file, and begins again at 1. One that may not go keeps all after it.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final

from router.audit.anchors.objects import ObjectStore
from router.audit.disk import Disk
from router.audit.entry import Json
from router.audit.errors import AuditError
from router.audit.heads import published_size
from router.audit.layout import LogFolder, Segment, first_line
from router.audit.lines import SegmentLine, parse_line
from router.audit.sealing import IMMUTABLE, Sealed, SealRefused, read_sealed, uncompressed

RELEASED: Final = "released"
_AT_ONCE: Final = 16


class ReleaseRefused(AuditError):
    """A sealed segment whose local copy must stay; the message says why."""


class Releaser:
    """Of one log. Blocking: call it in a thread, one call at a time. `local` in seconds."""

    def __init__(
        self,
        log: LogFolder,
        store: ObjectStore,
        disk: Disk,
        clock: Callable[[], float],
        local: float,
    ) -> None:
        self._log = log
        self._store = store
        self._disk = disk
        self._clock = clock
        self._local = local
        self._announced: list[tuple[Sealed, int]] = []

    def due(self) -> list[Sealed]:
        """Those whose entry can be made now (1–3), some at once.

        Raises:
            ReleaseRefused: one isn't where it was sealed. SealRefused, AnchorRefused: that can't
            be read.
        """
        return list(islice(self._due(), _AT_ONCE))

    def announced(self, one: Sealed, index: int) -> None:
        """Say that the entry of one is durable at an index (4)."""
        self._announced.append((one, index))

    def run(self) -> list[Sealed]:
        """Remove what may go by now (5). Raises OSError; the next run goes on."""
        covered, gone = published_size(self._log), []
        while self._announced and self._announced[0][1] < covered:
            one, _ = self._announced[0]
            path = self._log.segment(one.first).path
            if path.exists():
                self._disk.remove(path)
            gone.append(self._announced.pop(0)[0])
        return gone

    def _due(self) -> Iterator[Sealed]:
        sealed = {one.first: one for one in read_sealed(self._log)}
        known = {one.first for one, _ in self._announced}
        exported, now = _exported(self._log), self._clock()
        for segment, after in pairwise(self._log.segments()):
            one = sealed.get(segment.first)
            if one is None or one.end != after.first:  # 1
                return
            if _newest_before(after) + self._local > now or exported < one.end - 1:  # 2
                return
            if segment.first not in known:
                self._read_back(segment, one, now)  # 3
                yield one

    def _read_back(self, segment: Segment, one: Sealed, now: float) -> None:
        stays = f"`{segment.name}` stays here: `{one.key}`"
        try:
            stored = uncompressed(one.key, self._store.read(one.key))
        except SealRefused as error:
            raise ReleaseRefused(f"{stays} can't be read ({error})") from error
        lock = self._store.lock(one.key)
        if stored != segment.path.read_bytes():
            raise ReleaseRefused(f"{stays} holds something else")
        if lock.mode != IMMUTABLE:
            raise ReleaseRefused(
                f"{stays} is locked as `{lock.mode or 'not at all'}`; only {IMMUTABLE} is immutable"
            )
        if lock.until < max(one.until - timedelta(seconds=1), datetime.fromtimestamp(now, UTC)):
            raise ReleaseRefused(f"{stays} is locked only until {lock.until.isoformat()}")


def body(one: Sealed) -> dict[str, Json]:
    """The entry that says where lines are when they are no longer here (4)."""
    until = int(one.until.timestamp())
    return {
        "event": RELEASED, "first": one.first, "end": one.end, "key": one.key, "until": until,
    }  # fmt: skip


def _newest_before(segment: Segment) -> float:
    """When the newest entry before a segment was made, as its first line says."""
    line = parse_line(first_line(segment))
    if not isinstance(line, SegmentLine):
        raise ReleaseRefused(f"`{segment.path}` does not begin as a segment does")
    return line.time / 1e6


def _exported(log: LogFolder) -> int:
    """The last line that all exports have looked at."""
    told = [cursor.read_text().strip() for cursor in log.exports.glob("*.cursor")]
    if not all(one.isascii() and one.isdigit() for one in told):
        raise ReleaseRefused(f"a cursor in `{log.exports}` is no index: nothing is released")
    return min((int(one) for one in told), default=1 << 62)
