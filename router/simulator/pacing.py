"""Runs an `Engine` on a real or injected clock: one task steps it and wakes those who wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from router.simulator.timing import Engine, Job, Progress

_ROUNDING = 1e-4


class Pacer:
    """One engine in time. `speed` is engine seconds per clock second.

    While frozen, engine time stands still: accepted jobs get no token, as behind a stopped process.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.engine = engine
        self._speed, self._clock, self._sleep = speed, clock, sleep
        self._origin = clock()
        self._frozen_at: float | None = None
        self._lost = 0.0
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._work = asyncio.Event()
        self._outputs: dict[str, asyncio.Queue[Progress]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def frozen(self) -> bool:
        """Whether engine time stands still."""
        return self._frozen_at is not None

    def now(self) -> float:
        """Engine time, seconds since the start, without frozen spells."""
        until = self._clock() if self._frozen_at is None else self._frozen_at
        return (until - self._origin - self._lost) * self._speed

    def freeze(self) -> None:
        """Stop engine time; running and new jobs hang."""
        if self._frozen_at is None:
            self._frozen_at = self._clock()
            self._thawed.clear()

    def thaw(self) -> None:
        """Let engine time run on from where it stopped."""
        if self._frozen_at is not None:
            self._lost += self._clock() - self._frozen_at
            self._frozen_at = None
            self._thawed.set()

    async def run(self, job: Job) -> AsyncGenerator[Progress, None]:
        """Queue the job, then yield its tokens as they come out; closing it aborts the job.

        ValueError (before the first token) if the engine could never hold it.
        """
        outputs: asyncio.Queue[Progress] = asyncio.Queue()
        self.engine.submit(job, self.now())
        self._outputs[job.id] = outputs
        self._wake()
        try:
            while True:
                progress = await outputs.get()
                yield progress
                if progress.times is not None:
                    return
        finally:
            del self._outputs[job.id]
            self.engine.cancel(job.id)

    async def close(self) -> None:
        """Stop stepping."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _wake(self) -> None:
        self._work.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._loop())

    async def _loop(self) -> None:
        while True:
            await self._thawed.wait()
            due = self.engine.next_at
            if due is None:
                self._work.clear()
                await self._work.wait()
                continue
            await self._sleep(max(0.0, due - self.now()) / self._speed)
            # A sleep may end a rounding error early; a freeze may have ended it much too early.
            if not self.frozen and self.now() > due - _ROUNDING:
                self._deliver(max(due, self.now()))

    def _deliver(self, now: float) -> None:
        for progress in self.engine.advance(now):
            if (outputs := self._outputs.get(progress.job)) is not None:
                outputs.put_nowait(progress)
