"""Loops look, wait with jitter, and go on whatever a look does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from router.watch.loops import Loop, Loops
from tests.router.folders import sound
from tests.router.reloading import World, watched


class Sleeps:
    """A sleep that the test ends."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._gates: list[asyncio.Event] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        gate = asyncio.Event()
        self._gates.append(gate)
        await gate.wait()

    async def wake(self) -> None:
        """Let the newest sleeper go on."""
        self._gates[-1].set()
        await turns()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def loops(world: World, sleeps: Sleeps, random: Callable[[], float] = lambda: 0.5) -> Loops:
    return Loops(world.router.live, sleeps, random)


async def test_each_looks_at_once_and_then_again_and_again(tmp_path: Path) -> None:
    looked: list[int] = []

    async def look() -> None:
        looked.append(1)

    async with watched(sound(tmp_path)) as world:
        sleeps = Sleeps()
        made = loops(world, sleeps, iter([0.0, 1.0, 0.5]).__next__)
        made.start([Loop("a", 100.0, look)])
        await turns()
        await sleeps.wake()
        await sleeps.wake()
        assert len(looked) == 3
        assert sleeps.asked == [90.0, pytest.approx(110.0), 100.0]
        await made.close()
        await sleeps.wake()
        assert len(looked) == 3


async def test_somebody_may_ask_for_the_next_look(tmp_path: Path) -> None:
    looked: list[int] = []

    async def look() -> None:
        looked.append(1)

    async with watched(sound(tmp_path)) as world:
        soon = asyncio.Event()
        made = loops(world, Sleeps())
        made.start([Loop("a", 100.0, look, soon=soon)])
        await turns()
        assert len(looked) == 1
        soon.set()
        await turns()
        assert (len(looked), soon.is_set()) == (2, False)
        await made.close()


async def test_a_failed_look_is_shown_and_repeated(tmp_path: Path) -> None:
    results: list[Exception | None] = [ValueError("a secret"), None]

    async def look() -> None:
        result = results.pop(0)
        if result is not None:
            raise result

    async with watched(sound(tmp_path)) as world:
        sleeps = Sleeps()
        made = loops(world, sleeps)
        made.start([Loop("a", 900.0, look)])
        await turns()
        assert "watch:a: ValueError" in world.router.live.degraded()
        assert "a secret" not in str(world.router.live.degraded())
        await sleeps.wake()
        assert world.router.live.degraded() == []
        assert sleeps.asked == [60.0, 900.0]
        await made.close()


async def test_not_ready_before_the_first_look(tmp_path: Path) -> None:
    """balancing-04: no traffic in the first second, before anything was looked at."""
    gate = asyncio.Event()

    async def look() -> None:
        await gate.wait()
        raise OSError

    async with watched(sound(tmp_path)) as world:
        made = loops(world, Sleeps())
        made.start([Loop("role", 1.0, look, first=True), Loop("other", 1.0, look)])
        assert world.router.live.starting == {"role"}
        gate.set()
        await turns()
        assert world.router.live.starting == set()
        await made.close()


async def test_a_look_that_hangs_is_given_up(tmp_path: Path) -> None:
    async def look() -> None:
        await asyncio.Event().wait()

    async with watched(sound(tmp_path)) as world:
        made = loops(world, Sleeps())
        await made.once(Loop("a", 1.0, look, limit=0.0))
        assert "watch:a: TimeoutError" in world.router.live.degraded()
