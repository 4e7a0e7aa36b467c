"""`serve` with several workers: the process that starts them and serves no request itself.

1. what other processes of this router left is taken over (`router.settings.handover`), and whose
   signatures were needed then is upheld (`router.narrowing.authority`);
2. the public address is bound once for each worker, with SO_REUSEPORT: the kernel spreads new
   connections over the sockets; a first bind without it finds out whether anybody else listens;
3. the workers start, each with its socket, and ask for their orders;
4. the admin listener is served, and the files are watched, here alone;
5. SIGTERM: the whole isn't ready any more, the workers drain; a second one ends what is still open.
   SIGHUP looks at the files now. The log of a worker that did not end in good order is settled.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from router.app import Clocks
from router.audit.disk import LocalDisk
from router.audit.errors import LogLocked
from router.audit.layout import Folder
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.narrowing.authority import Beside
from router.narrowing.operator import new_token, token_path
from router.server import Listener, bind, listener, signals
from router.settings.handover import hand_over, settle_log, worker_log
from router.settings.reload import Reloader, Source
from router.snapshot import Snapshot
from router.supervisor.crew import BEAT, Crew
from router.supervisor.slot import Slot
from router.watch.loops import Loop, Loops
from router.watch.start import LOOK_AT_FILES

LISTEN: Final = "listen"


async def supervise(
    source: Source,
    snapshot: Snapshot,
    log: LogSettings,
    count: int,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Run `count` workers until SIGTERM or SIGINT; `begun` is called once all of them serve.

    Raises:
        ConfigError, AuditError: it can't start, or no worker can be started any more; says why.
    """
    config = snapshot.config.router
    with alone(log.dir, config.id):
        logs = [worker_log(config.id, number) for number in range(1, count + 1)]
        await hand_over(log, config.id, logs)  # 1
        kept = Beside.of(log.dir, config.id, logs, LocalDisk())
        kept.uphold(snapshot.config, source.path.parent)
        address = reserved(config.listen)  # 2
        door = partial(bind, address, LISTEN, True)
        slots = [Slot(n, name, door, door(True)) for n, name in enumerate(logs, 1)]
        private = bind(config.admin, "admin")
        path = token_path(log.dir, config.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        token = new_token(path, os.urandom)
        clocks = Clocks.real(os.urandom)
        crew = Crew(source, snapshot, log, slots, clocks)
        crew.start()  # 3
        from router.supervisor import admin  # FastAPI, while the workers import what they need

        reloader = Reloader(crew, crew, source, kept=kept)
        front = listener(admin.build(crew, reloader, token))
        await _run(crew, reloader, front, private, clocks, begun)
        await settled(crew, log)


@contextmanager
def alone(folder: Path, router: str) -> Iterator[None]:
    """Be the only supervisor of a router: a second one, at other addresses, would write its token
    over this one's before any of its workers finds its log locked.

    Raises:
        ConfigError: there is one. AuditError: the folder can't be written.
    """
    path = Folder(folder).log(router).path / "supervisor.lock"
    disk = LocalDisk()
    try:
        held = disk.lock(path, wait=False)
    except LogLocked as error:
        raise ConfigError(
            f"another `serve` of `{router}` runs on `{folder}`; give this one its own `log.dir`, "
            "or end that first"
        ) from error
    try:
        yield
    finally:
        disk.close(held)


async def settled(crew: Crew, log: LogSettings) -> None:
    """Settle what no worker did. Why none could be started is told first: a log that can't be
    settled then is a consequence.

    Raises:
        ConfigError: no worker could be started. AuditError: a log can't be settled.
    """
    try:
        for slot in crew.slots:
            await settle_log(replace(log, log_id=slot.log))
    finally:
        if crew.hopeless.done():
            raise ConfigError(crew.hopeless.result())


async def _run(
    crew: Crew,
    reloader: Reloader,
    front: Listener,
    private: socket.socket,
    clocks: Clocks,
    begun: Callable[[], None],
) -> None:
    """4 and 5."""

    async def tell() -> None:
        while not (crew.whole().ready and front.started):
            await clocks.sleep(BEAT)
        begun()

    stop, hurry = asyncio.Event(), asyncio.Event()
    asked: set[asyncio.Task[None]] = set()

    def look() -> None:
        task = asyncio.get_running_loop().create_task(reloader.look(now=True))
        asked.add(task)
        task.add_done_callback(asked.discard)

    crew.hopeless.add_done_callback(lambda _: stop.set())
    loops = Loops(crew, clocks.sleep, clocks.random)
    serving = asyncio.create_task(front.serve([private]))
    with signals(stop, hurry, look):
        telling = asyncio.create_task(tell())
        loops.start([Loop("files", LOOK_AT_FILES, reloader.look, limit=600.0)])
        await stop.wait()
        telling.cancel()
        await loops.close()
        await crew.stop(crew.snapshot.config.router.limits.drain, hurry)
        front.should_exit = front.force_exit = True
        await serving


def reserved(address: tuple[str, int]) -> tuple[str, int]:
    """The address with its port, when nobody listens there.

    SO_REUSEPORT would let two routers of one user share a port without a word.

    Raises:
        ConfigError: it is in use.
    """
    with bind(address, LISTEN) as found:
        host, port = found.getsockname()[:2]
    return str(host), int(port)
