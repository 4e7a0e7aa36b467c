"""Where a log goes and how it is written, and what it says of its health."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from router.audit.certificate import Authority, FileAuthority
from router.audit.errors import NoteInvalid
from router.audit.layout import ID
from router.audit.openings import PERIOD


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Where and how to write. `dir` is shared by all logs of a host; `log_id` is this one's name
    and the origin of its checkpoints. `signing_key` is the lasting key, or the file it is in. Sizes
    in bytes, times in seconds. `heartbeat` leaves room for the ticks: a checkpoint goes out at
    least every 60 s. `key_period`: how long a tenant's key binds contents and users."""

    dir: Path
    log_id: str
    signing_key: Path | Authority
    segment_bytes: int = 16 << 20
    segment_seconds: float = inf
    heartbeat: float = 50.0
    stall: float = 5.0
    waiting_bytes: int = 64 << 20
    durability: Literal["local", "replicated"] = "local"
    key_period: float = PERIOD

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.log_id):
            raise NoteInvalid(
                f"`{self.log_id}` can't name a log: use letters, digits, `.`, `_`, `-`"
            )

    @property
    def authority(self) -> Authority:
        """The lasting key."""
        key = self.signing_key
        return FileAuthority(key) if isinstance(key, Path) else key


@dataclass(frozen=True, slots=True)
class LogHealth:
    """State for readiness. `reason` is empty when ok; `for_good`: only another process, which reads
    back what is on the disk, can write this log again."""

    state: Literal["ok", "degraded", "failed"]
    reason: str = ""
    durability: str = "local"
    for_good: bool = False
