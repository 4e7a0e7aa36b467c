"""One worker: a whole router with a log of its own, that listens beside its siblings.

    python -m router.supervisor.worker CHANNEL DOOR

Both are descriptors it was started with: its side of the channel, and its listening socket. What it
is, it asks the supervisor. When that is gone it takes no new connection, lets open requests end
within the configured drain, and ends too: nobody would restart it, or tell it of a reload.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from types import NoneType
from typing import Final, TypeVar

from classifiers.difficulty.audit import Shadow
from regions.document import DocumentErrors
from router.audit.entry import Entry
from router.audit.errors import AuditError
from router.auth import Principal
from router.config import ConfigError
from router.entries.auditing import PageView, page_for, record_for
from router.entries.reading_records import RecordView
from router.errors import RequestError
from router.narrowing.operating import accepted, erased, quarantined, status
from router.server import Serving, bind, opened
from router.settings.loading import log_settings
from router.settings.reload import Source
from router.snapshot import Snapshot
from router.supervisor.channel import Channel, Gone, over
from router.supervisor.orders import (
    Accept,
    Audits,
    AuditsAsked,
    Beat,
    Began,
    Begin,
    Drain,
    Erase,
    Failed,
    Hurry,
    Install,
    Judged,
    Narrow,
    Orders,
    PageAsked,
    Prepare,
    Pulse,
    RecordAsked,
    Relayed,
    StatusAsked,
    Write,
)
from router.watch.start import Watches

T = TypeVar("T")
WHILE_RELOADING: Final = 90.0
"""Seconds that a start waits while the others are given another snapshot."""
_FAULTS: Final = (ConfigError, DocumentErrors, AuditError, OSError)


class Worker:
    """What a running worker answers its supervisor."""

    def __init__(self, serving: Serving, watches: Watches, orders: Orders) -> None:
        self.stop = asyncio.Event()
        self.drain: float | None = None
        self._router = serving.router
        self._live = serving.router.live
        self._watches = watches
        self._prepared: Snapshot | None = None
        self._live.whole = orders.whole
        self._live.files.active = self._live.files.on_disk = orders.active

    async def answer(self, message: object) -> object:
        """See each message. Raises RequestError."""
        match message:
            case Beat():
                self._live.whole = message.whole
                return self._pulse()
            case StatusAsked():
                return status(self._live, self._watches)
            case Prepare():
                return self._prepare(message.snapshot)
            case Install():
                return await self._install(message)
            case Narrow():
                return await quarantined(self._watches, message.asked, message.by)
            case Accept():
                await accepted(self._watches, message.asked, message.by)
                return True
            case Erase():
                return await erased(self._live, message.asked, message.by, message.logs)
            case RecordAsked() | PageAsked():
                return await self._read(message)
            case AuditsAsked():
                return Audits(self._live.audits)
        return await self._done(message)

    async def _done(self, message: object) -> bool:
        match message:
            case Write():
                return await self._write(message.entry)
            case Judged():
                await self._router.lane.heard(message.model, message.shadow, message.at)
            case Audits():
                await self._router.lane.adopt(message.found)
            case Drain():
                self.drain = message.seconds
                self.stop.set()
            case Hurry():
                self._router.hurry.set()
            case _:
                raise TypeError(f"a worker is not asked `{type(message).__name__}`")
        return True

    def _pulse(self) -> Pulse:
        live = self._live
        live.refresh_gauges()
        return Pulse(
            serving=live.is_serving(),
            log_failed=live.log.health.state == "failed",
            active=live.files.active,
            now=live.now(),
            read=live.metrics.read(),
        )

    def _prepare(self, snapshot: Snapshot) -> str:
        self._prepared = snapshot
        return sha256(snapshot.content).hexdigest()

    async def _install(self, message: Install) -> str:
        prepared = self._prepared
        if prepared is None or prepared.digest != message.digest:
            raise RequestError("internal", "another snapshot was prepared here")
        try:
            await self._watches.take(prepared)
        except AuditError as error:
            raise RequestError("log_unavailable", str(error)) from None
        self._live.files.active = self._live.files.on_disk = message.active
        return prepared.digest

    async def _write(self, entry: Entry) -> bool:
        try:
            await self._live.log.record(entry)
        except AuditError as error:
            raise RequestError("log_unavailable", str(error)) from None
        return True

    async def _read(self, asked: RecordAsked | PageAsked) -> RecordView | PageView:
        """For a key that the sibling has authenticated; it is looked up here anew."""
        live = self._live
        holder = live.snapshot.keys.held(asked.key, live.now())
        if not isinstance(holder, Principal):
            raise RequestError("not_found", "no such record of yours in this log")
        if isinstance(asked, RecordAsked):
            return await record_for(live, asked.index, holder)
        return await page_for(live, asked.after, asked.limit, holder)


class Relay:
    """The other workers' logs, reached through the supervisor. See `router.live.Siblings`."""

    def __init__(self, channel: Channel, logs: Sequence[str]) -> None:
        self._channel = channel
        self._logs = tuple(logs)

    @property
    def logs(self) -> tuple[str, ...]:
        """See `Siblings`."""
        return self._logs

    async def record(self, log: str, index: int, key: str) -> RecordView:
        """See `Siblings`."""
        return await self._asked(Relayed(log, RecordAsked(index, key)), RecordView)

    async def page(self, log: str, after: int, limit: int, key: str) -> PageView:
        """See `Siblings`."""
        return await self._asked(Relayed(log, PageAsked(after, limit, key)), PageView)

    async def judged(self, model: str, shadow: Shadow, at: float) -> None:
        """See `Siblings`."""
        try:
            await self._channel.ask(Judged(model, shadow, at), NoneType)
        except Gone as error:
            raise RequestError("shutting_down", f"the other workers: {error}") from None

    async def _asked(self, asked: Relayed, kind: type[T]) -> T:
        try:
            return await self._channel.ask(asked, kind)
        except Gone:
            message = f"the worker that writes log `{asked.log}` is not running; try again"
            raise RequestError("log_unavailable", message, retry_after=1.0) from None


async def begin(orders: Orders, channel: Channel, door: socket.socket) -> tuple[Serving, Worker]:
    """The router of some orders, which does not serve at its socket yet.

    Raises:
        ConfigError, DocumentErrors, AuditError, OSError: it can't start.
    """
    source = Source(orders.path, orders.environment, orders.active, watched=False)
    log = log_settings(orders.snapshot.config, orders.path.parent, orders.environment)
    settings = replace(log, log_id=orders.log)
    router = await opened(source, orders.snapshot, settings, len(orders.logs))
    if router.watches is None:
        raise TypeError("a router that is opened has its watches")
    router.live.siblings = Relay(channel, orders.logs)
    serving = Serving(router, door, None)
    return serving, Worker(serving, router.watches, orders)


async def serve(channel: Channel, serving: Serving, door: socket.socket) -> None:
    """Serve once the supervisor knows of it: from then on it is told of every change, and what came
    since its orders it has heard.

    Raises:
        Gone, OSError: it can't.
    """
    try:
        await channel.ask(Began(), NoneType, WHILE_RELOADING)
        reopen(door)
        await serving.start()
    except BaseException:
        await serving.router.close(0)
        raise


def reopen(door: socket.socket) -> None:
    """Listen again, on a socket of one's own, where the supervisor let nobody wait at the first.

    One that was shut and listens again is passed by: the kernel no longer counts it among those
    that share the address.

    Raises:
        ConfigError, OSError: it can't be had.
    """
    if not door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        with bind(door.getsockname()[:2], "listen", shared=True) as fresh:
            os.dup2(fresh.fileno(), door.fileno(), inheritable=False)


class Post:
    """Where the supervisor's messages arrive, from before there is a worker on."""

    def __init__(self) -> None:
        self.worker: Worker | None = None

    async def answer(self, message: object) -> object:
        """What the worker answers."""
        if self.worker is None:
            raise RequestError("shutting_down", "this worker is still starting", retry_after=1.0)
        return await self.worker.answer(message)


async def work(pair: socket.socket, door: socket.socket) -> int:
    """Run one worker to its end; gives the exit code."""
    post = Post()
    channel = await over(pair, post.answer)
    alone = asyncio.create_task(channel.run())
    try:
        orders = await channel.ask(Begin(os.getpid()), Orders)
        try:
            serving, post.worker = await begin(orders, channel, door)
            worker = post.worker
            await serve(channel, serving, door)
        except _FAULTS as error:
            await channel.ask(Failed(str(error)), NoneType)
            return 1
        await _ended(worker, alone)
        if alone.done():
            door.close()
        await serving.stop(worker.drain)
    except Gone:
        return 1
    finally:
        channel.close()
    return 0


async def _ended(worker: Worker, alone: asyncio.Task[None]) -> None:
    """Somebody says stop, or nobody is there to say anything."""
    stop = asyncio.ensure_future(worker.stop.wait())
    try:
        await asyncio.wait((stop, alone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()


def main(arguments: Sequence[str]) -> int:
    """See the top of the file."""
    import uvloop

    # Stopping is the supervisor's to say: a signal to all processes must not cut its drain short.
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    channel, door = (socket.socket(fileno=int(number)) for number in arguments)
    return uvloop.run(work(channel, door))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
