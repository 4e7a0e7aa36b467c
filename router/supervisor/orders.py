"""What a supervisor and its workers say to each other over `router.supervisor.channel`.

From the worker: `Begin` → `Orders`; `Began` or `Failed` → nothing; `Relayed` → what the other one
answers; `Judged` → nothing. To the worker: `Beat` → `Pulse`; all others as they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from classifiers.difficulty.audit import Shadow, StandingAudit
from router.audit.entry import Entry
from router.live import Whole
from router.metrics import Readout
from router.narrowing.operating import AcceptanceAsked, EraseAsked, QuarantineAsked
from router.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Begin:
    """A worker runs and wants its orders."""

    pid: int


@dataclass(frozen=True, slots=True)
class Orders:
    """What one worker is.

    The snapshot comes whole, as the supervisor checked it: whatever the files say meanwhile, all
    workers serve the same. `log` is the name of its log, `logs` are those of all, in order;
    `active` is the digest over the files that the snapshot was loaded from.
    """

    number: int
    snapshot: Snapshot
    active: str
    log: str
    logs: tuple[str, ...]
    path: Path
    environment: Mapping[str, str]
    whole: Whole


@dataclass(frozen=True, slots=True)
class Began:
    """The worker can serve, and does once this is answered; what is in force is in force there."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker can't start, and ends; `message` is for the operator."""

    message: str


@dataclass(frozen=True, slots=True)
class Beat:
    """How the whole stands → `Pulse`."""

    whole: Whole


@dataclass(frozen=True, slots=True)
class Pulse:
    """How one worker stands.

    Attributes:
        serving: it serves requests.
        log_failed: its log can't be written any more: only a new process opens it again.
        active: the digest over the files its snapshot came from.
        now: the time it decides by, epoch seconds: never before the newest in its log.
        read: its metrics.
    """

    serving: bool
    log_failed: bool
    active: str
    now: float
    read: Readout


@dataclass(frozen=True, slots=True)
class StatusAsked:
    """→ `router.narrowing.operating.Status`."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Keep a snapshot ready → its digest, computed anew from its content."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Install:
    """Put the one that was prepared in force → its digest. `active` as in `Orders`."""

    digest: str
    active: str


@dataclass(frozen=True, slots=True)
class Narrow:
    """Quarantine or lift → everything quarantined there."""

    asked: QuarantineAsked
    by: str


@dataclass(frozen=True, slots=True)
class Accept:
    """End a drift's alarm → `True`."""

    asked: AcceptanceAsked
    by: str


@dataclass(frozen=True, slots=True)
class Erase:
    """Erase what opens the worker's log → `ErasedTold`; `logs` are all in which it is done now."""

    asked: EraseAsked
    by: str
    logs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """Record an entry of the supervisor's → `True`, once it is durable."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Drain:
    """Let open requests end within so many seconds, then end → `True` at once."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hurry:
    """End what is still open → `True`."""


@dataclass(frozen=True, slots=True)
class RecordAsked:
    """An entry of the worker's log for the holder of a key → `RecordView`."""

    index: int
    key: str


@dataclass(frozen=True, slots=True)
class PageAsked:
    """Entries of the worker's log for an auditor's key → `PageView`."""

    after: int
    limit: int
    key: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What a worker judged of a model → nothing, once the others have counted it; to each of these
    → `True`. `at`: epoch seconds."""

    model: str
    shadow: Shadow
    at: float


@dataclass(frozen=True, slots=True)
class AuditsAsked:
    """What the worker has counted of all that was judged → `Audits`."""


@dataclass(frozen=True, slots=True)
class Audits:
    """Count on from here → `True`. `None`: others know, and none of them has told yet."""

    found: Mapping[tuple[str, float], StandingAudit] | None


@dataclass(frozen=True, slots=True)
class Relayed:
    """A question to the worker that writes `log` → its answer."""

    log: str
    asked: RecordAsked | PageAsked
