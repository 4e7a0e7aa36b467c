"""An object store in memory, with locks, for tests of sealing and restoring."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from router.audit.anchors.objects import Lock
from router.audit.anchors.witness import AnchorRefused


@dataclass(slots=True)
class Shelf:
    """`mode` is what its locks say; after `fails_after` creations it refuses once."""

    mode: str = "COMPLIANCE"
    shorter: timedelta = timedelta(0)
    fails_after: int | None = None
    objects: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)

    def create(self, key: str, data: bytes, until: datetime) -> bool:
        if self.fails_after is not None and len(self.created) == self.fails_after:
            self.fails_after = None
            raise AnchorRefused(f"`{key}`: the network is away")
        if key in self.objects:
            return False
        self.objects[key] = (data, until)
        self.created.append(key)
        return True

    def read(self, key: str) -> bytes:
        return self.objects[key][0]

    def lock(self, key: str) -> Lock:
        return Lock(self.mode, self.objects[key][1] - self.shorter)

    def keys(self, prefix: str) -> Iterator[str]:
        return iter(sorted(key for key in self.objects if key.startswith(prefix)))
