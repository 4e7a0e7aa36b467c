"""A folder of logs from sealed objects alone, ready for `audit verify`, `show` and `replay`.

1. every object below the prefix; a segment counts when it is there itself (it is put last);
2. each object's lock is read: what is not under COMPLIANCE is named;
3. segments, snapshots, the longest roster, the checkpoints; leaf hashes are computed anew.

Nothing is trusted on the way: what the objects hold is judged by verification afterwards.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from router.audit.anchors.objects import ObjectStore
from router.audit.disk import Disk, LocalDisk
from router.audit.entry import canonical
from router.audit.errors import AuditError
from router.audit.layout import ID, Folder, complete_lines
from router.audit.sealing import IMMUTABLE, uncompressed
from router.audit.tree import leaf_hash

_KEY: Final = re.compile(rf"(?P<log>{ID.pattern})/(?P<first>[0-9]{{20}})/(?P<name>.+)")
_SNAPSHOT: Final = re.compile(r"snapshots/([0-9a-f]{64})\.json\.zst")
_SEGMENT: Final = "segment.jsonl.zst"


class RestoreRefused(AuditError):
    """Nothing can be restored there, or from there."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored: lines by log, and objects that somebody could still delete."""

    sizes: Mapping[str, int]
    objects: int
    mutable: Sequence[str]


def restore(store: ObjectStore, prefix: str, into: Path) -> Restored:
    """Restore every log sealed below `prefix` into an empty or new folder.

    Raises:
        RestoreRefused: the folder isn't empty, or nothing is sealed there.
        SealRefused, AnchorRefused: an object can't be read.
    """
    if into.exists() and any(into.iterdir()):
        raise RestoreRefused(f"`{into}` is not empty: restore into a new folder")
    return _Restoring(store, prefix, Folder(into), LocalDisk()).run()


class _Restoring:
    def __init__(self, store: ObjectStore, prefix: str, folder: Folder, disk: Disk) -> None:
        self._store = store
        self._prefix = prefix
        self._folder = folder
        self._disk = disk
        self._roster = b""
        self._heads: dict[str, list[str]] = {}

    def run(self) -> Restored:
        found: dict[tuple[str, int], list[str]] = {}
        for key in self._store.keys(self._prefix):  # 1
            match = _KEY.fullmatch(key.removeprefix(self._prefix))
            if match:
                found.setdefault((match["log"], int(match["first"])), []).append(match["name"])
        whole = {at: names for at, names in found.items() if _SEGMENT in names}
        if not whole:
            raise RestoreRefused(f"no segment is sealed below `{self._prefix}`")
        sizes: dict[str, int] = {}
        mutable: list[str] = []
        for (log, first), names in sorted(whole.items()):
            for name in names:
                mutable += self._one(log, first, name)
            sizes[log] = first + self._lines(log, first)
        self._rest()
        return Restored(sizes, sum(map(len, whole.values())), mutable)

    def _one(self, log: str, first: int, name: str) -> Iterator[str]:
        key = f"{self._prefix}{log}/{first:020d}/{name}"
        if self._store.lock(key).mode != IMMUTABLE:  # 2
            yield key
        data = self._store.read(key)
        data = uncompressed(key, data) if name.endswith(".zst") else data
        snapshot = _SNAPSHOT.fullmatch(name)
        if name == _SEGMENT:  # 3
            self._segment(log, first, data)
        elif snapshot is not None:
            if sha256(data).hexdigest() != snapshot[1]:
                raise RestoreRefused(f"`{key}` is not what its name says")
            self._disk.replace(self._folder.snapshot(snapshot[1]), data)
        elif name == "roster.jsonl.zst":
            self._roster = max(self._roster, data, key=len)
        elif name == "checkpoint.note":
            self._heads.setdefault(log, []).append(data.decode("utf-8", "replace"))

    def _segment(self, log: str, first: int, data: bytes) -> None:
        segment = self._folder.log(log).segment(first)
        leaves = b"".join(map(leaf_hash, complete_lines(data)[0]))
        self._disk.replace(segment.path, data)
        self._disk.replace(segment.leaves, leaves)

    def _lines(self, log: str, first: int) -> int:
        data = self._folder.log(log).segment(first).path.read_bytes()
        return len(complete_lines(data)[0])

    def _rest(self) -> None:
        self._disk.replace(self._folder.roster, self._roster)
        for log, heads in self._heads.items():
            unique = list(dict.fromkeys(heads))  # segments come in order, and so do their heads
            lines = b"".join(canonical({"checkpoint": text}) + b"\n" for text in unique)
            self._disk.replace(self._folder.log(log).checkpoints, lines)
            self._disk.replace(self._folder.log(log).checkpoint, unique[-1].encode())
