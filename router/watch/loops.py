"""The loops of a router: each looks at something again and again, with jitter, until it is closed.

A look that fails is shown in the status and tried again; it stops neither its loop nor the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

JITTER: Final = 0.2
RETRY: Final = 60.0


@dataclass(frozen=True, slots=True)
class Loop:
    """One thing to look at every `seconds`, give or take a tenth; sooner after a failed look.

    With `first` the router isn't ready before its first look has ended, well or not; a look
    lasts `limit` seconds at most. `soon` set by somebody ends the wait for the next one.
    """

    name: str
    seconds: float
    look: Callable[[], Awaitable[None]]
    first: bool = False
    limit: float = 60.0
    soon: asyncio.Event | None = None

    @property
    def retry(self) -> float:
        """Seconds until a failed look is repeated."""
        return min(self.seconds, RETRY)


class Watching(Protocol):
    """Whose loops they are."""

    @property
    def starting(self) -> set[str]:
        """Loops that have not looked for the first time yet."""
        ...

    @property
    def notes(self) -> dict[str, str]:
        """What is told in the status."""
        ...


class Loops:
    """Runs loops as tasks of this event loop.

    Args:
        sleep: waits so many seconds.
        random: a number from 0 to 1, for the jitter: a fleet must not look in step.
    """

    def __init__(
        self,
        live: Watching,
        sleep: Callable[[float], Awaitable[object]],
        random: Callable[[], float],
    ) -> None:
        self._live = live
        self._sleep = sleep
        self._random = random
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, loops: Sequence[Loop]) -> None:
        """Begin; each looks for the first time at once."""
        self._live.starting.update(loop.name for loop in loops if loop.first)
        self._tasks += [asyncio.create_task(self._run(loop), name=loop.name) for loop in loops]

    async def _run(self, loop: Loop) -> None:
        while True:
            good = await self.once(loop)
            self._live.starting.discard(loop.name)
            jitter = 1 + JITTER * (self._random() - 0.5)
            await self._wait((loop.seconds if good else loop.retry) * jitter, loop.soon)

    async def _wait(self, seconds: float, soon: asyncio.Event | None) -> None:
        if soon is None:
            await self._sleep(seconds)
            return
        first = asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(soon.wait())
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in first:
                one.cancel()
            soon.clear()

    async def once(self, loop: Loop) -> bool:
        """One look, and whether it went well; how it failed is noted, in words without secrets."""
        note = f"watch:{loop.name}"
        try:
            async with asyncio.timeout(loop.limit):
                await loop.look()
            self._live.notes.pop(note, None)
        except Exception as error:  # noqa: BLE001 - shown, and looked at again
            self._live.notes[note] = type(error).__name__
            return False
        return True

    async def close(self) -> None:
        """Stop them all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
