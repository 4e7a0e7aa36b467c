"""The running router: the current snapshot, the log, and what is shown of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import random
from typing import TYPE_CHECKING, Final, Protocol

from classifiers.difficulty.audit import Shadow, StandingAudit
from policies.timed import effective_now
from regions.fleet import Readings
from regions.health import HealthBook
from router.admission import Concurrency
from router.attempts.silence import Silence
from router.audit.anchors.keeper import AnchorHealth, AnchorKeeper
from router.audit.disk import has_room
from router.audit.log import AuditLog
from router.capacity.balance import Balance
from router.capacity.bursts import Bursts
from router.capacity.load import InFlight
from router.metrics import Metrics
from router.narrowing.vetoes import VetoBoard
from router.settings.role_keys import CredentialBoard
from router.snapshot import Snapshot
from router.state.ledger import Ledger
from router.state.spending import LocalSpending, Spending
from router.waiting import Line

if TYPE_CHECKING:
    from router.entries.auditing import PageView
    from router.entries.reading_records import RecordView


@dataclass(slots=True)
class Files:
    """The configuration on disk, against the one that serves. Digests are hex, times epoch seconds.

    `on_disk` covers every file the configuration refers to, secrets too; `active` is what it was
    when the serving snapshot was loaded. `refused` says why the newest files are not served.
    """

    on_disk: str = ""
    active: str = ""
    looked_at: float = 0.0
    refused: str = ""


FULL: Final = "no room is left where it is written; make some"


@dataclass(frozen=True, slots=True)
class Whole:
    """All workers of a supervisor as they stand: readiness is the whole's, not one process's.

    `troubles` are in words, for the status of each.
    """

    ready: bool
    workers: int
    troubles: tuple[str, ...] = ()


class Siblings(Protocol):
    """The other workers of a supervisor, as one of them reaches them."""

    @property
    def logs(self) -> tuple[str, ...]:
        """The names of all workers' logs, in order."""
        ...

    async def record(self, log: str, index: int, key: str) -> RecordView:
        """An entry of another worker's log, for the holder of a key. Raises RequestError."""
        ...

    async def page(self, log: str, after: int, limit: int, key: str) -> PageView:
        """A page of another worker's log, for an auditor's key. Raises RequestError."""
        ...

    async def judged(self, model: str, shadow: Shadow, at: float) -> None:
        """Let all others count what was judged here, at an epoch time. Raises RequestError."""
        ...


@dataclass(slots=True)
class Live:
    """What changes while the router runs; everything else is immutable.

    A new snapshot replaces the old one whole; requests in flight keep theirs. `starting` names
    the watches that have not looked for the first time yet: until then it isn't ready.
    """

    snapshot: Snapshot
    log: AuditLog
    log_name: str
    metrics: Metrics
    health: HealthBook
    inflight: InFlight
    concurrency: Concurrency
    ledger: Ledger
    vetoes: VetoBoard
    wall_time: Callable[[], float]
    loop_time: Callable[[], float]
    draining: bool = False
    anchors: AnchorKeeper | None = None
    roles: CredentialBoard = field(default_factory=CredentialBoard)
    files: Files = field(default_factory=Files)
    starting: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)
    waiting: Callable[[], Mapping[Line, int]] = dict
    """Who waits for room: how many in each line."""
    audits: dict[tuple[str, float], StandingAudit] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    whole: Whole | None = None
    siblings: Siblings | None = None
    replaced: list[Callable[[], None]] = field(default_factory=list)
    """What is called when a new snapshot has replaced the old one."""
    silence: Silence = field(init=False)
    chance: Callable[[], float] = random
    balance: Balance = field(init=False)
    spending: Spending | None = None
    bursts: Bursts = field(init=False)

    def __post_init__(self) -> None:
        """What is chosen by is the one load there is."""
        self.silence = Silence(self.loop_time)
        self.bursts = Bursts(self.spending or LocalSpending(self.loop_time), self.metrics)
        self.readings.stale = self.snapshot.config.watch.stale
        self.balance = Balance(
            lambda: self.snapshot,
            self.health,
            self.inflight,
            self.readings,
            self.loop_time,
            self.chance,
        )

    def _waiting_for(self) -> dict[str, float]:
        """Requests that wait, by endpoint; who would take any of several is a part at each."""
        found: dict[str, float] = {}
        for (_, pool), count in self.waiting().items():
            for name in pool:
                found[name] = found.get(name, 0.0) + count / len(pool)
        return found

    def now(self) -> float:
        """The time decisions are made at: never before the newest time in the log."""
        return effective_now(self.wall_time(), self.log.newest_time()).time

    def stamp(self) -> float:
        """The time to write into the log: a real one, even when the clock is wrong."""
        return max(self.wall_time(), self.log.newest_time())

    def ready(self) -> bool:
        """Whether requests are served: by this process, or by the whole it belongs to.

        A worker whose own log has failed refuses whatever reaches it, so it is not ready though
        others are: it is soon ended, and connections then go to those. Where no room is left, it
        is known before the first write fails, in every process at once.
        """
        if self.is_full():
            return False
        if self.whole is not None:
            return self.whole.ready and self.log.health.state != "failed"
        return self.is_serving()

    def is_full(self) -> bool:
        """Whether no room is left for the log."""
        return not has_room(self.log.folder.path)

    def is_serving(self) -> bool:
        """Whether this process serves requests."""
        return self.log.health.state != "failed" and not self.draining and not self.starting

    def ended(self) -> str:
        """Why only a new process of this router can serve again, and what to do; empty when it can.

        A worker's supervisor starts that process by itself.
        """
        health = self.log.health
        if not health.for_good or self.whole is not None:
            return ""
        return f"{health.reason}; mend that and restart: this process writes it no more"

    @property
    def logs(self) -> tuple[str, ...]:
        """The names of this router's logs: one, or one of each worker."""
        return (self.log_name,) if self.siblings is None else self.siblings.logs

    def degraded(self) -> list[str]:
        """What doesn't work as it should, in words; empty when all is well."""
        found = [f"{name}: {text}" for name, text in sorted(self.notes.items())]
        found += filter(None, (self.ledger.degraded, self.bursts.spending.degraded))
        health = self.log.health
        if health.state != "ok":
            found.append(f"log: {self.ended() or health.reason}")
        elif self.is_full():
            found.append(f"log: {FULL}")
        late = [one for one in self.anchored() if one.state != "ok"]
        found += [f"anchor {one.name}: {one.reason or one.state}" for one in late]
        found += () if self.whole is None else self.whole.troubles
        marked = self.health.marked(self.loop_time())
        whys = [(key, self.health.why(key)) for key in marked]
        return [*found, *(f"marked: {key}" + (f" ({why})" if why else "") for key, why in whys)]

    def outwardly(self) -> list[str]:
        """What is degraded, for whoever asks without a key: the details name tenants, keys,
        endpoints and addresses, which are no stranger's to know. Its log says nothing of those."""
        return list(dict.fromkeys(map(_in_a_word, self.degraded())))

    def anchored(self) -> list[AnchorHealth]:
        """The anchors as they stand; empty when none is configured."""
        return [] if self.anchors is None else self.anchors.health()

    def refresh_gauges(self) -> None:
        """Bring the gauges up to date, before they are shown."""
        self.metrics.set("domicile_open_requests", self.concurrency.total)
        self.metrics.set("domicile_tasks", len(asyncio.all_tasks()))
        self.metrics.set("domicile_marked_replicas", len(self.health.marked(self.loop_time())))
        head = self.log.head
        self.metrics.set("domicile_log_size", 0 if head is None else head.size)
        for anchor in self.anchored():
            self.metrics.set("domicile_anchor_size", anchor.size, (anchor.name,))
            age = float("inf") if anchor.age is None else anchor.age
            self.metrics.set("domicile_anchor_age_seconds", age, (anchor.name,))
        stands = tuple(self.bursts.stands(self.snapshot.policy.endpoints))
        renew = self.metrics.renew
        renew("domicile_burst_spent", [((one.endpoint, one.of), one.spent) for one in stands])
        left = [((one.endpoint, one.of), max(0.0, one.limit - one.spent)) for one in stands]
        renew("domicile_burst_left", left)
        found = [(name, self.snapshot.replicas(name)) for name in self.snapshot.targets]
        waiting, inflight = self._waiting_for(), self.inflight
        renew("domicile_replicas", [((name,), len(keys)) for name, keys in found])
        tokens = [((name,), sum(map(inflight.tokens, keys))) for name, keys in found]
        renew("domicile_inflight_tokens", tokens)
        loads = [((name,), self._load(name, keys, waiting)) for name, keys in found]
        renew("domicile_saturation", loads)
        newest = {model: audit for (model, _), audit in self.audits.items()}
        graded = [(name, newest.get(name)) for name in self.snapshot.difficulty]
        alarms = [((name,), len(tuple(one.alarms())) if one else 0) for name, one in graded]
        renew("domicile_quality_alarms", alarms)

    def _load(self, endpoint: str, keys: Iterable[str], waiting: Mapping[str, float]) -> float:
        """The saturation of an endpoint. What waits is load too: nothing is sent beyond what is
        full."""
        most = max((self.balance.saturation(endpoint, key) for key in keys), default=0.0)
        under_way = sum(self.inflight.requests(key) for key in keys)
        return most * (1 + waiting.get(endpoint, 0.0) / max(under_way, 1))


def _in_a_word(told: str) -> str:
    what = told.partition(":")[0]
    if what == "log":
        return told
    return what if what.startswith("worker ") else what.partition(" ")[0]
