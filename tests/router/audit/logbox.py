"""A folder of logs on virtual time, and the requests that fill it."""

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from router.audit.disk import Disk
from router.audit.entry import Entry, Interned, Json
from router.audit.log import AuditLog
from router.audit.note import PublicKey, create_signing_key, read_public_key
from router.audit.receipt import Receipt
from router.audit.settings import LogSettings
from tests.router.audit.faultydisk import QuickDisk

START = 1_800_000_000.0


@dataclass(slots=True)
class Clock:
    """Seconds since 1970, moved by hand."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class LogBox:
    """Opens logs below one folder with one key, a virtual clock and seeded randomness."""

    root: Path
    seed: int = 1
    segment_bytes: int = 64 << 20
    clock: Clock = field(default_factory=Clock)
    entropy: Random = field(init=False)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.entropy = Random(self.seed)
        if not self.key_file.exists():
            create_signing_key(self.key_file)

    @property
    def folder(self) -> Path:
        return self.root / "logs"

    @property
    def key_file(self) -> Path:
        return self.root / "log.key"

    @property
    def key(self) -> PublicKey:
        return read_public_key(self.key_file.read_text())

    def settings(self, log_id: str = "eu-1") -> LogSettings:
        return LogSettings(self.folder, log_id, self.key_file, self.segment_bytes)

    async def open(self, log_id: str = "eu-1", disk: Disk | None = None) -> AuditLog:
        return await AuditLog.open(
            self.settings(log_id),
            clock=self.clock,
            entropy=self.entropy.randbytes,
            disk=disk or QuickDisk(),
        )

    def decision(self, id_: str | None = None, shared: Interned | None = None) -> Entry:
        self.clock.now += 0.001
        body: dict[str, Json] = {"plan": ["fra-small", "fra-large"], "score": 17}
        return Entry("decision", id_ or f"r{next(self.numbers)}", self.clock.now, body, shared)

    def outcome(self, id_: str) -> Entry:
        self.clock.now += 0.001
        body: dict[str, Json] = {
            "status": "ok",
            "attempts": [{"endpoint": "fra-small", "code": 200}],
        }
        return Entry("outcome", id_, self.clock.now, body)

    async def request(self, log: AuditLog, shared: Interned | None = None) -> list[Receipt]:
        """One request from decision to outcome."""
        decision = self.decision(shared=shared)
        committed = await log.commit(decision, None)
        return [committed.receipt, await log.record(self.outcome(decision.id))]

    async def refill(self, count: int, log_id: str = "eu-1") -> list[Receipt]:
        """A process that starts, serves `count` requests with a heartbeat now and then, stops."""
        log = await self.open(log_id)
        shared = [Interned({"tenant": name, "allowed": ["DE", "FR"]}) for name in ("a", "b")]
        receipts: list[Receipt] = []
        for number in range(count):
            receipts += await self.request(log, shared[number % 2])
            self.clock.now += 11
            await log.tick()
        await log.close()
        return receipts

    def copy(self, to: Path) -> Path:
        """The folder of logs, copied."""
        shutil.rmtree(to, ignore_errors=True)
        return Path(shutil.copytree(self.folder, to))
