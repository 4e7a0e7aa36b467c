"""Finished segments go where nobody can change or delete them: S3 Object Lock.

For each segment that others follow, in order:

 1. its bucket's region lies inside what every decision and refusal in it may be kept in;
 2. beside it: the snapshots it names, the roster, the newest published checkpoint it covers;
 3. the segment itself, compressed, last: where it is, the rest is too;
 4. each is created only if absent, locked, and read back: the bytes, the mode and the date of the
    lock, which is as late as the terms and every entry want (`allowed.kept.least`), and no later
    than any entry allows (`allowed.kept.most`);
 5. only then `sealed.jsonl` names it. The local copy is never touched here (`releasing.py`).

A crash anywhere leaves objects that the next run finds, compares and passes over. Whatever is not
as it should be stops the run: later segments wait, nothing is skipped.

Objects of a segment: `<prefix><log>/<first, 20 digits>/` with `segment.jsonl.zst`,
`roster.jsonl.zst`, `checkpoint.note`, `snapshots/<sha256>.json.zst`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf
from typing import Final

import orjson
import zstandard

from router.audit.anchors.objects import ObjectStore
from router.audit.disk import Disk
from router.audit.entry import canonical
from router.audit.errors import AuditError
from router.audit.layout import DIGEST, Folder, LogFolder, Segment, complete_lines
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.reading import LogReader, Shown
from router.audit.tree import HASH_BYTES

IMMUTABLE: Final = "COMPLIANCE"
LEVEL: Final = 9
_LEAST: Final = timedelta(days=1)


class SealRefused(AuditError):
    """A segment that can't be sealed where it should be; the message says why."""


@dataclass(frozen=True, slots=True)
class SealTerms:
    """How to seal: the bucket's region as the log writes places, the lock's mode and length."""

    region: str
    keep: timedelta
    prefix: str = ""
    mode: str = IMMUTABLE


@dataclass(frozen=True, slots=True)
class Sealed:
    """Lines [first, end) of a log are sealed; `mode` and `until` as read back."""

    first: int
    end: int
    key: str
    mode: str
    until: datetime


class Sealer:
    """Seals one log of a folder. Blocking: call it in a thread, one run at a time."""

    def __init__(
        self,
        folder: Folder,
        log: str,
        store: ObjectStore,
        terms: SealTerms,
        disk: Disk,
        clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._log = folder.log(log)
        self._store = store
        self._terms = terms
        self._disk = disk
        self._clock = clock

    def run(self) -> Iterator[Sealed]:
        """Seal everything that is finished, giving each segment as it is done.

        Raises:
            SealRefused: the region is outside, or an object is not what was put there.
            AnchorRefused: the store refused. OSError: `sealed.jsonl` can't be written.
        """
        done = {one.first for one in self.sealed()}
        for segment, after in pairwise(self._log.segments()):
            # A crash while rotating leaves an empty file, and the one before it goes on.
            if segment.first not in done and _begun(after):
                yield self._seal(segment, after.first)

    def sealed(self) -> list[Sealed]:
        """What was sealed, oldest first. Raises SealRefused."""
        return read_sealed(self._log)

    def _seal(self, segment: Segment, end: int) -> Sealed:
        shown = list(LogReader(self._log).of(segment))
        self._inside(segment, shown)  # 1
        until = self._until(segment, shown)
        folder = f"{self._terms.prefix}{self._log.path.name}/{segment.first:020d}/"
        for name, data in self._beside(shown, end):  # 2
            self._put(folder + name, data, until)
        key = folder + "segment.jsonl.zst"
        mode, locked = self._put(key, compressed(segment.path.read_bytes()), until)  # 3
        done = Sealed(segment.first, end, key, mode, locked)
        self._note(done)  # 5
        return done

    def _inside(self, segment: Segment, shown: list[Shown]) -> None:
        for one in shown:
            allowed = one.body.get("allowed")
            if not isinstance(allowed, dict):
                continue
            kept = allowed.get("retain")
            if not isinstance(kept, list) or self._terms.region not in kept:
                raise SealRefused(
                    f"`{segment.name}` may not be kept in `{self._terms.region}`: {one.place} "
                    "records a request of another boundary; seal into a bucket inside it"
                )

    def _until(self, segment: Segment, shown: list[Shown]) -> datetime:
        """The end of the lock: within what every entry says, else nothing is sealed."""
        newest = max((one.time for one in shown), default=0) / 1e6
        bounds = list(_kept(shown))
        least = max((low for low, _ in bounds), default=0.0)
        most = min((high for _, high in bounds), default=inf)
        until = min(max(newest + self._terms.keep.total_seconds(), least), most)
        until = max(until, self._clock() + _LEAST.total_seconds())
        if not least <= until <= most:
            raise SealRefused(
                f"`{segment.name}` can't be locked as its entries want: until "
                f"{_day(least)} at least and {_day(most)} at most, and for a day from now; its "
                "records must be kept otherwise"
            )
        return datetime.fromtimestamp(until, UTC)

    def _beside(self, shown: list[Shown], end: int) -> Iterator[tuple[str, bytes]]:
        named = {str(one.body["snapshot"]) for one in shown if "snapshot" in one.body}
        for digest in sorted({more for name in named for more in self._with_parts(name)}):
            data = self._folder.snapshot(digest).read_bytes()
            yield f"snapshots/{digest}.json.zst", compressed(data)
        yield "roster.jsonl.zst", compressed(self._folder.roster.read_bytes())
        head = self._head(end)
        if head is not None:
            yield "checkpoint.note", head.text.encode()

    def _with_parts(self, digest: str) -> Iterator[str]:
        """A snapshot and the files it names by digest."""
        yield digest
        content = orjson.loads(self._folder.snapshot(digest).read_bytes())
        for value in content.values() if isinstance(content, dict) else ():
            named = isinstance(value, str) and DIGEST.fullmatch(value) is not None
            if named and self._folder.snapshot(str(value)).exists():
                yield str(value)

    def _head(self, end: int) -> Checkpoint | None:
        path = self._log.checkpoints
        raws = complete_lines(path.read_bytes())[0] if path.exists() else []
        heads = (parse_checkpoint(orjson.loads(raw)["checkpoint"]) for raw in raws)
        return max((h for h in heads if h.size <= end), key=lambda h: h.size, default=None)

    def _put(self, key: str, data: bytes, until: datetime) -> tuple[str, datetime]:
        """4. An object left by a run that crashed counts when it holds the same."""
        self._store.create(key, data, until)
        stored = self._store.read(key)
        if not _same(key, stored, data):
            raise SealRefused(f"`{key}` holds something else; nothing after it is sealed")
        lock = self._store.lock(key)
        if lock.mode != self._terms.mode:
            raise SealRefused(
                f"`{key}` is locked as `{lock.mode or 'not at all'}`, not {self._terms.mode}: "
                "use a bucket with Object Lock"
            )
        if lock.until < until - timedelta(seconds=1) - _LEAST:
            raise SealRefused(f"`{key}` is locked only until {lock.until.isoformat()}")
        return lock.mode, lock.until

    def _note(self, done: Sealed) -> None:
        line = canonical(
            {
                "end": done.end,
                "first": done.first,
                "key": done.key,
                "mode": done.mode,
                "until": int(done.until.timestamp()),
            }
        )
        fd = self._disk.open(self._log.sealed)
        try:
            self._disk.write(fd, line + b"\n")
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)


def read_sealed(log: LogFolder) -> list[Sealed]:
    """What `sealed.jsonl` says was sealed of a log, oldest first. Raises SealRefused."""
    path = log.sealed
    raws = complete_lines(path.read_bytes())[0] if path.exists() else []
    try:
        return [_read(orjson.loads(raw)) for raw in raws]
    except (ValueError, KeyError, TypeError) as error:
        raise SealRefused(f"`{path}` can't be read: {error}") from error


def _kept(shown: list[Shown]) -> Iterator[tuple[float, float]]:
    """Epoch seconds until which each record must and may be kept, where a rule said so."""
    for one in shown:
        allowed = one.body.get("allowed")
        kept = allowed.get("kept") if isinstance(allowed, dict) else None
        if isinstance(kept, dict):
            least, most = kept.get("least"), kept.get("most")
            low = least if isinstance(least, int) else 0
            yield one.time / 1e6 + low, one.time / 1e6 + most if isinstance(most, int) else inf


def _day(time: float) -> str:
    return "ever" if time == inf else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"


def _begun(segment: Segment) -> bool:
    """Whether its first line is durable: leaf hashes are written after that."""
    return segment.leaves.exists() and segment.leaves.stat().st_size >= HASH_BYTES


def compressed(data: bytes) -> bytes:
    """Zstandard, with the size and a checksum in its frame."""
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)


def uncompressed(key: str, data: bytes, most: int = 1 << 30) -> bytes:
    """What `compressed` was given. Raises SealRefused, also above `most` bytes."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= most:
            raise SealRefused(f"`{key}` does not say a size of at most {most} bytes")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=most)
    except zstandard.ZstdError as error:
        raise SealRefused(f"`{key}` can't be unpacked: {error}") from error


def _same(key: str, stored: bytes, data: bytes) -> bool:
    """The same content, however compressed; only a roster may have grown since a crash."""
    if stored == data or not key.endswith(".zst"):
        return stored == data
    one, other = uncompressed(key, stored), uncompressed(key, data)
    return other.startswith(one) if key.endswith("roster.jsonl.zst") else one == other


def _read(value: Mapping[str, object]) -> Sealed:
    first, end, until = value["first"], value["end"], value["until"]
    if not (isinstance(first, int) and isinstance(end, int) and isinstance(until, int)):
        raise TypeError("whole numbers are missing")
    return Sealed(
        first, end, str(value["key"]), str(value["mode"]), datetime.fromtimestamp(until, UTC)
    )
