"""Checkpoints as objects that their writer can't rewrite: S3 Object Lock, create-only.

One object per published checkpoint, `<prefix><origin>/<size, 20 digits>`. It is created only if
absent, locked in COMPLIANCE mode until a date, and the lock is read back: a bucket without Object
Lock, or one that says GOVERNANCE, is no anchor and says so. An object that is there with other
bytes is a second head of one size: a split view.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from router.audit.anchors.witness import AnchorRefused
from router.audit.note import Checkpoint, parse_checkpoint

_EARLIER: Final = timedelta(days=1)
"""How long ago an earlier try may have begun the lock."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Retention of one object; mode is empty when there is none."""

    mode: str
    until: datetime


class ObjectStore(Protocol):
    """The part of an object store that anchors need. Failures raise AnchorRefused."""

    def create(self, key: str, data: bytes, until: datetime) -> bool:
        """Create a locked object; False if one is there already."""

    def read(self, key: str) -> bytes:
        """An object's bytes (its first version, if it has several)."""

    def lock(self, key: str) -> Lock:
        """Its retention."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys below a prefix, in order."""


class ObjectAnchor:
    """Anchors checkpoints in an object store. Blocking: call it in a thread."""

    def __init__(
        self, store: ObjectStore, prefix: str, keep: timedelta, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._keep = keep
        self._clock = clock

    def publish(self, head: Checkpoint) -> None:
        """Store one checkpoint. Idempotent. Raises AnchorRefused."""
        key = self._key(head.origin, head.size)
        until = datetime.fromtimestamp(self._clock(), UTC) + self._keep
        data = head.text.encode()
        if not self._store.create(key, data, until):
            if parse_checkpoint(self._store.read(key).decode()).root != head.root:
                raise AnchorRefused(f"`{key}` holds another head of this size: a split view")
            until -= _EARLIER  # it is there from an earlier try, which may have found no lock
        self._check_lock(key, until)

    def checkpoints(self, origin: str) -> Iterator[Checkpoint]:
        """Every checkpoint anchored for a log, oldest first."""
        for key in self._store.keys(f"{self._prefix}{origin}/"):
            yield parse_checkpoint(self._store.read(key).decode())

    def _key(self, origin: str, size: int) -> str:
        return f"{self._prefix}{origin}/{size:020d}"

    def _check_lock(self, key: str, until: datetime) -> None:
        lock = self._store.lock(key)
        if lock.mode != "COMPLIANCE":
            raise AnchorRefused(
                f"`{key}` is not immutable: its lock is `{lock.mode or 'absent'}`; "
                "use a bucket with Object Lock and allow COMPLIANCE"
            )
        if lock.until < until - timedelta(seconds=1):
            raise AnchorRefused(f"`{key}` is locked only until {lock.until.isoformat()}")
