"""The region log of one process.

`commit` returns once its entry is durable, together with everything that waited with it (group
commit); the proof of that is the type: only this module makes a `Committed`. The write path and
its crash points are in `writer.py`.

One plain thread writes, or the loop itself where that is quicker (`writing.py`). The event loop
alone fills and swaps buffers, so a waiter can never be told about an entry that was not in the
batch just written. A write error fails all who wait, and the log for good.

An entry nobody waits for, as an outcome, begins no batch: it goes with the next that somebody waits
for, or alone after `PATIENCE`. Else the next request would wait for two syncs, not for one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Final, Generic, Literal, TypeVar

from router.audit.certificate import Signing
from router.audit.disk import Disk, LocalDisk, refused, told
from router.audit.entry import Entry, Json, Kind
from router.audit.errors import AuditError, LogUnavailable
from router.audit.intake import Intake
from router.audit.layout import DIGEST, Folder, LogFolder
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.openings import Openings
from router.audit.reading import Inclusion, LogReader, Shown
from router.audit.receipt import Receipt, make_receipt
from router.audit.recovery import Recovered, recover
from router.audit.roster import append_roster, last_key, roster_head
from router.audit.settings import LogHealth, LogSettings
from router.audit.writer import Writer, Written
from router.audit.writing import Waiter, Writing

T = TypeVar("T")
PATIENCE: Final = 0.02
"""Seconds for which an entry that nobody waits for is kept back at most."""
_MINT: Final = object()


class Committed(Generic[T]):
    """A subject whose entry is durable, and the evidence. Only the log makes one."""

    __slots__ = ("receipt", "subject")

    subject: T
    receipt: Receipt

    def __init__(self, subject: T, receipt: Receipt, mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only the region log makes a Committed")
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "receipt", receipt)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Committed is what it was made of: `{name}` can't be set")


class AuditLog:
    """One open log. Made by `open`, used from one event loop, ended by `close`."""

    def __init__(
        self,
        settings: LogSettings,
        signing: Signing,
        disk: Disk,
        lock: int,
        state: Recovered,
        clock: Callable[[], float],
        entropy: Callable[[int], bytes],
    ) -> None:
        self._settings = settings
        self._signing = signing
        self._renewing: asyncio.Task[None] | None = None
        self._disk = disk
        self._lock = lock
        self._clock = clock
        self._folder = Folder(settings.dir)
        folder = self._folder.log(settings.log_id)
        self._reader = LogReader(folder)
        self.openings = Openings(folder.openings, disk, entropy, settings.key_period)
        self._writer = Writer(folder, disk, state.frontier, state.segment, state.segment_bytes)
        self._snapshots: set[str] = set()
        self._intake = Intake(
            settings.log_id,
            settings.segment_bytes,
            entropy,
            self._stored,
            state,
            settings.segment_seconds,
        )
        self._waiters: list[Waiter] = []
        self._publish = self._scheduled = self._closed = False
        self._published = float("-inf")
        self._busy_since: float | None = None
        self._noted: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure = ""
        self._head: Checkpoint | None = None
        self._loop = asyncio.get_running_loop()
        self._writing = Writing(self._writer, self._done)

    @classmethod
    async def open(
        cls,
        settings: LogSettings,
        *,
        clock: Callable[[], float],
        entropy: Callable[[int], bytes],
        disk: Disk | None = None,
    ) -> "AuditLog":
        """Lock, recover and start a log; every request a crash left open is settled on return.

        `clock` gives seconds since 1970, `entropy(n)` n random bytes. Raises LogLocked,
        LogDamaged, LogUnavailable, KeyUnavailable, NoteInvalid.
        """
        disk = disk or LocalDisk()
        folder = Folder(settings.dir).log(settings.log_id)
        with refused(folder.path):
            lock = disk.lock(folder.lock, wait=False)
            try:
                state = await asyncio.to_thread(recover, folder, settings.log_id, disk)
                now = max(clock(), state.newest)
                made = (settings.log_id, settings.authority, entropy, now)
                signing = await asyncio.to_thread(Signing, *made)
                log = cls(settings, signing, disk, lock, state, clock, entropy)
            except BaseException:
                disk.close(lock)
                raise
            try:
                await log._begin(state)
            except BaseException:
                await log._release()
                raise
            return log

    # Writing.

    async def commit(self, entry: Entry, subject: T) -> Committed[T]:
        """Make `entry` durable, then hand `subject` back as committed.

        Raises LogUnavailable (nothing may be sent) or EntryRefused. If the caller is cancelled
        meanwhile the entry may become durable all the same: settle it with an outcome.
        """
        return Committed(subject, await self.record(entry), _MINT)

    def record(self, entry: Entry) -> Awaitable[Receipt]:
        """Queue `entry` now; the result resolves once it is durable. Raises as `commit` does."""
        if self._closed:
            raise LogUnavailable(self._failure or "the log is closed")
        return self._queue(entry)

    def note(self, entry: Entry) -> None:
        """Queue `entry` and wait for nothing: what fails shows in `health`. Raises as `commit`."""
        if self._closed:
            raise LogUnavailable(self._failure or "the log is closed")
        self._take(entry)
        if self._noted is None:
            self._noted = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(PATIENCE, self._overdue)

    def _queue(self, entry: Entry) -> asyncio.Future[Receipt]:
        index = self._take(entry)
        future: asyncio.Future[Receipt] = self._loop.create_future()
        self._waiters.append((future, index))
        if self._busy_since is None and not self._scheduled:
            # Deferred by one turn, so that whoever is ready in this one shares the batch.
            self._scheduled = True
            self._loop.call_soon(self._swap)
        return future

    def _take(self, entry: Entry) -> int:
        if self._failure:
            raise LogUnavailable(self._failure)
        if entry.time >= self._signing.ends:
            raise LogUnavailable(self._ended())
        if self._intake.waiting_bytes > self._settings.waiting_bytes:
            raise LogUnavailable("the log is stalled: too much is waiting to be written")
        return self._intake.add(entry)

    def is_open(self, request_id: str) -> bool:
        """Whether a decision of this id still waits for its outcome."""
        return request_id in self._intake.open

    async def snapshot(self, digest: str, data: bytes) -> None:
        """Store `data` by its SHA-256 (hex), before any decision names it. Idempotent.

        Raises LogUnavailable when it can't be stored, ValueError when the digest is another's.
        """
        if sha256(data).hexdigest() != digest:
            raise ValueError(f"`{digest}` is not the digest of the snapshot")
        if self._stored(digest):
            return
        path = self._folder.snapshot(digest)
        try:
            await asyncio.to_thread(self._disk.replace, path, data)
        except OSError as error:
            raise LogUnavailable(f"can't store a snapshot: {told(error, path)}") from error
        self._snapshots.add(digest)

    async def tick(self) -> Checkpoint | None:
        """Call at least every few seconds. When a heartbeat is due, writes it, publishes a
        checkpoint beside the log and returns it for anchoring; else None. Begins to renew the
        signing key in time."""
        if self._signing.due(self._now()):
            self._renewing = asyncio.create_task(self._renew())
        if self._now() >= self._signing.ends:
            return None  # nothing can be signed; `health` says so
        now = self._clock()
        if 0 <= now - self._published < self._settings.heartbeat:
            return None
        self._published = now
        return await self._public("heartbeat", {})

    async def close(self) -> None:
        """Settle what is open, publish the final checkpoint, sign the stop, release the lock.

        Nothing can be recorded from here on: let requests end before. Raises LogUnavailable.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if not self._failure:
                await self._settle("close")
                head = await self._public("administration", {"event": "stop"})
                await asyncio.to_thread(self._sign_off, "stop", head.size, head.root)
        finally:
            await self._release()

    # Reading.

    def newest_time(self) -> float:
        """The newest time in this log or of its key, seconds: no `now` may be older."""
        return max(self._intake.newest, self._signing.begins)

    @property
    def health(self) -> LogHealth:
        """State for readiness."""
        durability = self._settings.durability
        if self._failure:
            return LogHealth("failed", self._failure, durability, for_good=True)
        if self._closed:
            return LogHealth("failed", "the log is closed", durability)
        if self._now() >= self._signing.ends:
            return LogHealth("failed", self._ended(), durability)
        if self._signing.failing:
            return LogHealth("degraded", self._signing.failing, durability)
        since = self._busy_since
        if since is not None and self._clock() - since > self._settings.stall:
            return LogHealth("degraded", "a write takes longer than expected", durability)
        return LogHealth("ok", "", durability)

    @property
    def head(self) -> Checkpoint | None:
        """The newest signed tree head; not necessarily published."""
        return self._head

    @property
    def folder(self) -> LogFolder:
        """Where its lines are, for reading."""
        return self._folder.log(self._settings.log_id)

    async def entry(self, index: int) -> Shown:
        """A durable entry, interned values in place. Raises NotInLog."""
        return await asyncio.to_thread(self._reader.entry, index)

    async def inclusion(self, index: int) -> tuple[Inclusion, Checkpoint]:
        """Proof for a line against the newest signed head. Raises NotInLog, LogUnavailable."""
        head = self._head
        if head is None:
            raise LogUnavailable("nothing is signed yet")
        return await asyncio.to_thread(self._reader.inclusion, index, head.size), head

    # Inside.

    async def _begin(self, state: Recovered) -> None:
        opened = len(state.open)
        # The log is there before the roster names it: one that is named and absent is a gap.
        self._disk.close(self._disk.open(self._folder.log(self._settings.log_id).checkpoints))
        previous = await asyncio.to_thread(last_key, self._folder, self._settings.log_id)
        await asyncio.to_thread(self._sign_off, "start", state.frontier.size, state.frontier.root())
        await self._queue(self._entry("key", self._signing.body()))
        await self._settle("recovery")
        if state.torn or opened:
            body = {"torn_bytes": state.torn, "settled": opened}
            await self._queue(self._entry("recovery", body))
        own = self._signing.authority
        if previous is not None and previous != own:
            await self._queue(self._entry("key", {"from": previous.raw.hex(), "to": own.raw.hex()}))
        await self._public(
            "administration", {"event": "start", "durability": self._settings.durability}
        )

    def _sign_off(self, event: Literal["start", "stop"], size: int, root: bytes) -> None:
        signing, time = self._signing, self._now()
        if time >= signing.ends:
            raise LogUnavailable(self._ended())
        try:
            append_roster(self._folder, self._disk, signing.signer, event, size, root, time)
        except OSError as error:
            raise LogUnavailable(f"can't write {told(error, self._folder.roster)}") from error

    async def _settle(self, by: str) -> None:
        body: dict[str, Json] = {"status": "unknown", "by": by}
        opened = list(self._intake.open)
        for written in [self._queue(self._entry("outcome", body, id_)) for id_ in opened]:
            await written

    def _entry(self, kind: Kind, body: Mapping[str, Json], id_: str = "") -> Entry:
        return Entry(kind, id_, self._now(), body)

    def _now(self) -> float:
        return max(self._clock(), self.newest_time())

    def _ended(self) -> str:
        failing = self._signing.failing or "it is being renewed"
        return f"the certificate of the signing key has ended: {failing}"

    async def _renew(self) -> None:
        try:
            signer = await asyncio.to_thread(self._signing.next, self._now())
            if not self._closed:
                # Its entry is in the first batch that it signs.
                self._signing.take(signer)
                await self._queue(self._entry("key", self._signing.body()))
        except AuditError as error:
            self._signing.failing = f"the signing key can't be renewed: {error}"

    async def _public(self, kind: Kind, body: Mapping[str, Json]) -> Checkpoint:
        """Record an entry that names the roster's head, and publish the checkpoint after it."""
        await asyncio.to_thread(self.openings.sync)
        roster = await asyncio.to_thread(roster_head, self._folder)
        named: dict[str, Json] = {"lines": roster.lines, "digest": roster.digest.hex()}
        future = self._queue(self._entry(kind, {**body, "roster": named}))
        self._publish = True
        return parse_checkpoint((await future).checkpoint)

    async def _release(self) -> None:
        self._closed = True
        if self._renewing is not None:
            await asyncio.wait([self._renewing])
        if self._timer is not None:
            self._timer.cancel()
        await self._writing.end()
        self._writer.close()
        self._disk.close(self._lock)

    def _stored(self, digest: str) -> bool:
        if digest in self._snapshots:
            return True
        known = DIGEST.fullmatch(digest) is not None and self._folder.snapshot(digest).exists()
        if known:
            self._snapshots.add(digest)
        return known

    def _swap(self) -> None:
        self._scheduled = False
        # One batch at a time: `_done` looks again, for what came meanwhile.
        if self._busy_since is not None or not self._intake.waiting_bytes or self._failure:
            return
        waiters, self._waiters, self._noted = self._waiters, [], None
        batch, self._publish = self._intake.take(publish=self._publish), False
        self._busy_since = self._clock()
        self._writing.put(batch, self._signing.signer, waiters)

    def _overdue(self) -> None:
        """The timer of what nobody waits for. One for many: it looks again when it is early."""
        self._timer = None
        if self._noted is None:
            return
        due = self._noted + PATIENCE
        if due > self._loop.time():
            self._timer = self._loop.call_at(due, self._overdue)
        elif self._busy_since is None:
            self._swap()

    def _done(self, waiters: list[Waiter], result: Written | BaseException) -> None:
        self._busy_since = None
        if isinstance(result, BaseException):
            self._fail(waiters, result)
            return
        self._head = result.checkpoint
        text, first, leaves = result.checkpoint.text, result.first, result.leaves
        log = self._settings.log_id
        for future, index in waiters:
            if not future.done():
                future.set_result(make_receipt(log, index, leaves[index - first].hex(), text))
        if self._waiters or self._timer is None:
            self._swap()

    def _fail(self, waiters: list[Waiter], error: BaseException) -> None:
        self._failure = f"the log can't be written: {told(error)}"
        everyone, self._waiters = [*waiters, *self._waiters], []
        for future, _ in everyone:
            if not future.done():
                future.set_exception(LogUnavailable(self._failure))
                future.exception()  # told through `health` even if nobody awaits this one
