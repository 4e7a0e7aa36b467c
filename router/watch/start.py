"""Everything that watches, made and started for one router."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from router.audit.disk import LocalDisk
from router.audit.log import LogSettings
from router.live import Live
from router.operator import new_token, token_path
from router.quarantine import Quarantine
from router.reload import Reloader, Source
from router.swap import Swap
from router.transport.messages import Transport
from router.veto_file import VetoFile
from router.watch.loops import Loop, Loops

LOOK_AT_FILES: Final = 5.0


class Waiting(Protocol):
    """What loops wait with; see `router.app.Clocks`."""

    @property
    def sleep(self) -> Callable[[float], Awaitable[object]]:
        """Waits so many seconds."""
        ...

    @property
    def entropy(self) -> Callable[[int], bytes]:
        """So many random bytes."""
        ...

    def random(self) -> float:
        """A number from 0 to 1."""
        ...


class Watches:
    """The loops of one router, and what the admin listener asks of them."""

    def __init__(
        self,
        quarantine: Quarantine,
        swap: Swap,
        reloader: Reloader | None,
        loops: Loops,
        token: str,
    ) -> None:
        self.token = token
        self.quarantine = quarantine
        self.swap = swap
        self.reloader = reloader
        self._loops = loops
        self._asked: set[asyncio.Task[None]] = set()

    @classmethod
    async def begin(
        cls,
        live: Live,
        transport: Transport,
        log: LogSettings,
        clocks: Waiting,
        source: Source | None,
    ) -> Watches:
        """Put in force what was in force before, then start every loop.

        Raises:
            AuditError: the vetoes of before can't be read, or can't be put in force.
        """
        file = VetoFile.open(log.dir, log.log_id, LocalDisk())
        token = new_token(token_path(log.dir, log.log_id), clocks.entropy)
        quarantine = Quarantine(live, file)
        swap = Swap(live, transport)
        loops = Loops(live, clocks.sleep, clocks.random)
        running: list[Loop] = []
        reloader = None
        if source is not None:
            reloader = Reloader(live, swap, source)
            running.append(Loop("files", LOOK_AT_FILES, reloader.look, limit=600.0))
        loops.start(running)
        return cls(quarantine, swap, reloader, loops, token)

    def look_at_files(self) -> None:
        """Take up a change now, as SIGHUP asks; nothing happens without files."""
        if self.reloader is not None:
            task = asyncio.get_running_loop().create_task(self.reloader.look(now=True))
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)

    async def close(self) -> None:
        """Stop every loop."""
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        await self._loops.close()
