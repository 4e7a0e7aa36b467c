"""All workers of one router, as their supervisor sees them: started, heard, started again.

A worker that ends is started again with the same log, which it recovers before it serves. One whose
log can't be written any more is told to end, since only a new process opens it again; one that says
nothing for `SILENT` seconds is killed. The snapshot in force is kept here, so that a new worker
serves what its siblings serve, whatever the files say meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from router.app import Clocks
from router.audit.entry import Entry
from router.audit.errors import AuditError, LogUnavailable
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.errors import RequestError
from router.live import Files, Whole
from router.metrics import Metrics
from router.settings.handover import inherit
from router.settings.reload import Refused, Source
from router.snapshot import Snapshot
from router.supervisor.between import hand_down, relayed, spread
from router.supervisor.channel import Gone
from router.supervisor.merged import NOTHING, added
from router.supervisor.orders import (
    Beat,
    Began,
    Begin,
    Drain,
    Failed,
    Hurry,
    Install,
    Judged,
    Orders,
    Prepare,
    Pulse,
    Relayed,
    Write,
)
from router.supervisor.slot import Slot

T = TypeVar("T")
WAITED: Final = 2.0
"""Seconds that a connection may wait at the socket of a worker that begins anew."""
BEAT: Final = 0.25
"""Seconds between two questions to each worker while one is not serving; then `CALM`."""
CALM: Final = 1.0
SILENT: Final = 30.0
STARTING: Final = 120.0
"""Seconds in which a worker must have begun: imports, recovery of its log."""
HOPELESS: Final = 5
"""Failures in a row of every worker, with none serving, after which the supervisor gives up."""
BEGINNING: Final = 20.0
"""Seconds that a change waits for workers that are starting."""
LAST: Final = 10.0
"""Seconds after its drain in which a worker must have ended."""


class Crew:
    """The workers in their slots, and what they serve.

    Attributes:
        before: what workers that ended had counted.
        hopeless: set with the reason when none can be started.
    """

    def __init__(
        self, source: Source, snapshot: Snapshot, log: LogSettings, slots: Sequence[Slot],
        clocks: Clocks,
    ) -> None:  # fmt: skip
        self.snapshot = snapshot
        self.slots = tuple(slots)
        self.files = Files(active=source.active, on_disk=source.active)
        self.metrics = Metrics()
        self.notes: dict[str, str] = {}
        self.starting: set[str] = set()
        self.before = NOTHING
        self.hopeless: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._source = source
        self._log = log
        self._clocks = clocks
        self._stopping = asyncio.Event()
        self._complete = False
        self._turn = asyncio.Lock()
        self._lives: list[asyncio.Task[None]] = []

    # -- as it stands ----------------------------------------------------------------------

    @property
    def log(self) -> Crew:
        """Where the supervisor's own entries go: see `record`."""
        return self

    def now(self) -> float:
        """The time to judge by: never before the newest in a worker's log."""
        known = [slot.pulse.now for slot in self.slots if slot.pulse is not None]
        return max([self._clocks.wall(), *known])

    def stamp(self) -> float:
        """The time to write down."""
        return self.now()

    def serving(self) -> list[Slot]:
        """The workers that serve requests."""
        return [slot for slot in self.slots if slot.state == "serving"]

    async def begun(self) -> list[Slot]:
        """The workers that serve, once those that are starting do, or can't."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGINNING):
                while any(slot.state == "starting" for slot in self.slots):
                    await self._clocks.sleep(BEAT)
        return self.serving()

    def whole(self) -> Whole:
        """Ready once all have begun, and from then on while one of them serves."""
        good = [s for s in self.serving() if s.pulse is not None and s.pulse.serving]
        self._complete = self._complete or len(good) == len(self.slots)
        return Whole(
            self._complete and bool(good) and not self._stopping.is_set(),
            len(self.slots),
            tuple(self.troubles()),
        )

    def troubles(self) -> list[str]:
        """What doesn't work as it should, in words."""
        found = [f"{name}: {text}" for name, text in sorted(self.notes.items())]
        for slot in self.slots:
            if slot.state != "serving":
                why = f": {slot.reason}" if slot.reason else ""
                found.append(f"worker {slot.number} is {slot.state}{why}")
        return found

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every worker, and keep each going."""
        self._lives = [asyncio.create_task(self._live(slot)) for slot in self.slots]

    async def stop(self, seconds: float, hurry: asyncio.Event) -> None:
        """Let open requests end within so many seconds, then end every worker.

        `hurry` set meanwhile ends the wait; a worker that has not begun is killed.
        """
        self._stopping.set()
        serving = self.serving()
        for slot in self.slots:
            if slot.state == "starting":
                slot.kill()
        for slot in serving:
            slot.state = "stopping"
        await asyncio.gather(*(self._told(slot, Drain(seconds)) for slot in serving))
        hurried = asyncio.create_task(self._hurried(hurry))
        try:
            async with asyncio.timeout(seconds + LAST):
                await asyncio.shield(asyncio.gather(*self._lives))
        except TimeoutError:
            for slot in self.slots:
                slot.kill()
            await asyncio.gather(*self._lives)
        finally:
            hurried.cancel()
        for slot in self.slots:
            slot.shut()

    async def _hurried(self, hurry: asyncio.Event) -> None:
        await hurry.wait()
        await asyncio.gather(*(self._told(slot, Hurry()) for slot in self.slots))
        await self._clocks.sleep(LAST)
        for slot in self.slots:
            slot.kill()

    async def _told(self, slot: Slot, message: object) -> None:
        """Say it, if anybody is there to hear."""
        try:
            await self.asked(slot, message, bool, 5.0)
        except (Gone, RequestError) as error:
            slot.reason = str(error)

    async def _live(self, slot: Slot) -> None:
        """One slot: a process after the other."""
        while not self._stopping.is_set():
            code = await self._process(slot)
            self.before = added([self.before, slot.read])
            slot.read = NOTHING
            pause = slot.ended(self._clocks.loop())
            if self._stopping.is_set():
                return
            slot.reason = slot.reason or f"it ended with code {code}"
            self._judge()
            self.metrics.count("domicile_worker_restarts_total")
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until a stop is asked for."""
        waiting = asyncio.ensure_future(self._clocks.sleep(seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            stopping.cancel()

    async def _process(self, slot: Slot) -> int:
        """One process from start to end; gives its exit code."""
        slot.state = "starting"  # from here on it doesn't read what siblings are told
        try:
            # What siblings were told while this one was away.
            logs = [one.log for one in self.slots]
            await asyncio.to_thread(inherit, self._log.dir, logs, [slot.log])
            await slot.start(self._answer, self._clocks.loop(), alone=not self.serving())
        except (OSError, ConfigError, AuditError) as error:
            slot.reason = str(error)
            return 1
        if slot.process is None or slot.channel is None:
            raise TypeError("a slot that was started has a process and a channel")
        if self._stopping.is_set():
            slot.kill()  # it was being started when the stop was asked for
        tasks = [
            asyncio.create_task(slot.channel.run()),
            asyncio.create_task(self._beats(slot)),
        ]
        try:
            return await slot.process.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _judge(self) -> None:
        """Give up where trying again would only hide what is wrong."""
        failures = [slot.failures for slot in self.slots]
        first = not self._complete and max(failures) > 1
        never = not self.serving() and min(failures) >= HOPELESS
        if not self.hopeless.done() and (first or never):
            whose = next(slot for slot in self.slots if slot.failures == max(failures))
            self.hopeless.set_result(f"worker {whose.number} can't serve: {whose.reason}")

    async def _beats(self, slot: Slot) -> None:
        while True:
            calm = self._complete and len(self.serving()) == len(self.slots)
            await self._clocks.sleep(CALM if calm else BEAT)
            now = self._clocks.loop()
            late = slot.state == "starting" and now - slot.since > WAITED
            if self._complete and late and self.serving():
                slot.turn_away()  # nobody waits for it, where another one can be asked
            limit = SILENT if slot.state == "serving" else STARTING
            if slot.state != "stopping" and now - slot.heard > limit:
                slot.reason = f"it said nothing for {limit:g} s and was killed"
                slot.kill()
            elif slot.state == "serving":
                await self._beat(slot)

    async def hear(self) -> None:
        """Ask all that serve how they stand, now."""
        await asyncio.gather(*(self._heard(slot) for slot in self.serving()))

    async def _heard(self, slot: Slot) -> Pulse | None:
        try:
            pulse = await self.asked(slot, Beat(self.whole()), Pulse, SILENT)
        except (Gone, RequestError):
            return None  # its end is seen by its process, its silence by the time since it spoke
        slot.took(pulse, self._clocks.loop())
        return pulse

    async def _beat(self, slot: Slot) -> None:
        pulse = await self._heard(slot)
        if pulse is None:
            return
        if pulse.log_failed:
            slot.reason, slot.state = "its log can't be written", "stopping"
            await self._told(slot, Drain(LAST))
        elif pulse.active != self.files.active and not self._turn.locked():
            async with self._turn:
                await self._give(slot)
        if slot.unheard:
            await hand_down(self, slot)

    # -- messages --------------------------------------------------------------------------

    async def asked(
        self, slot: Slot, message: object, kind: type[T], patience: float = SILENT
    ) -> T:
        """Ask one worker. Raises Gone, RequestError."""
        if slot.channel is None:
            raise Gone(f"worker {slot.number} is not running")
        return await slot.channel.ask(message, kind, patience)

    async def every(
        self, message: object, kind: type[T], slots: Sequence[Slot] | None = None
    ) -> list[tuple[Slot, T | Exception]]:
        """Ask all that serve at once; each one's answer, or why there is none."""
        chosen = self.serving() if slots is None else slots
        asking = [self.asked(slot, message, kind) for slot in chosen]
        found = await asyncio.gather(*asking, return_exceptions=True)
        told: list[tuple[Slot, T | Exception]] = []
        for slot, one in zip(chosen, found, strict=True):
            if isinstance(one, BaseException) and not isinstance(one, Gone | RequestError):
                raise one
            told.append((slot, one))
        return told

    async def _answer(self, slot: Slot, message: object) -> object:
        """What a worker asks. Raises RequestError."""
        match message:
            case Begin():
                return self._orders(slot)
            case Began():
                async with self._turn:  # no reload may pass it by
                    if slot.given not in (None, self.snapshot.digest):
                        await self._give(slot)
                    slot.state, slot.reason = "serving", ""
                    slot.since = slot.heard = self._clocks.loop()
                await hand_down(self, slot)
            case Failed():
                slot.reason = message.message
                if not self._complete and not self.hopeless.done():
                    told = f"worker {slot.number}: {message.message}"
                    self.hopeless.set_result(told)
            case Relayed():
                return await relayed(self, message)
            case Judged():
                await spread(self, slot, message)
            case _:
                raise TypeError(f"a supervisor is not asked `{type(message).__name__}`")
        return None

    def _orders(self, slot: Slot) -> Orders:
        slot.given = self.snapshot.digest
        return Orders(
            slot.number,
            self.snapshot,
            self.files.active,
            slot.log,
            tuple(one.log for one in self.slots),
            self._source.path,
            dict(self._source.environment),
            self.whole(),
        )

    # -- the snapshot in force -------------------------------------------------------------

    def record(self, entry: Entry) -> Awaitable[object]:
        """Write an entry of the supervisor's into the first worker's log that takes it."""
        return self._recorded(entry)

    async def _recorded(self, entry: Entry) -> bool:
        for slot in self.serving():
            try:
                return await self.asked(slot, Write(entry), bool)
            except (Gone, RequestError) as error:
                slot.reason = str(error)
        raise LogUnavailable("no worker can write its log")

    async def reload(self, base: Snapshot) -> None:
        """A snapshot that was checked: every worker prepares it, then every worker serves it.

        Nothing changes unless all that serve have it whole. One that then can't put it in force
        is killed: the next one starts with it.

        Raises:
            Refused: a worker doesn't have it as it was sent.
        """
        async with self._turn:
            for slot, found in await self.every(Prepare(base), str):
                if isinstance(found, RequestError) or (
                    isinstance(found, str) and found != base.digest
                ):
                    raise Refused([f"worker {slot.number} can't take it: {found}"])
            # `Gone`: its successor gets the new one.
            self.snapshot, self.files.active = base, self.files.on_disk
            for slot, done in await self.every(self._install(), str):
                if isinstance(done, Exception):
                    self._behind(slot, done)

    def _install(self) -> Install:
        return Install(self.snapshot.digest, self.files.active)

    def _behind(self, slot: Slot, error: Exception) -> None:
        """It would serve another snapshot than its siblings."""
        slot.reason = f"it could not put the new snapshot in force: {error}"
        slot.kill()

    async def _give(self, slot: Slot) -> None:
        """The snapshot in force, for a worker that began with the one before."""
        try:
            await self.asked(slot, Prepare(self.snapshot), str)
            await self.asked(slot, self._install(), str)
        except (Gone, RequestError) as error:
            self._behind(slot, error)
