from __future__ import annotations

import asyncio

import pytest

from router.simulator.pacing import Pacer
from router.simulator.timing import Engine, EngineSpec, Job


class World:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0

    def clock(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


def paced(speed: float = 1.0) -> tuple[World, Pacer]:
    world = World()
    engine = Engine(EngineSpec(step_floor=0.5, per_sequence=0.0, prefill_rate=1e9))
    return world, Pacer(engine, speed=speed, clock=world.clock, sleep=world.sleep)


async def collect(pacer: Pacer, job: Job) -> list[float]:
    return [progress.at async for progress in pacer.run(job)]


@pytest.mark.parametrize(("speed", "lasted"), [(1.0, 2.0), (4.0, 0.5)])
async def test_tokens_come_when_the_engine_says(speed: float, lasted: float) -> None:
    world, pacer = paced(speed)
    assert await collect(pacer, Job("a", 1, 4)) == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert world.time - 100.0 == pytest.approx(lasted)
    await pacer.close()


async def test_frozen_time_does_not_count() -> None:
    world, pacer = paced()
    pacer.freeze()
    pacer.freeze()
    running = asyncio.create_task(collect(pacer, Job("a", 1, 2)))
    for _ in range(20):
        await asyncio.sleep(0)
    world.time += 50.0
    assert (running.done(), pacer.frozen, pacer.now()) == (False, True, 0.0)
    pacer.thaw()
    assert await running == pytest.approx([0.5, 1.0])
    assert pacer.now() == pytest.approx(1.0)
    await pacer.close()


async def test_closing_the_iterator_aborts_the_job() -> None:
    _, pacer = paced()
    run = pacer.run(Job("a", 1, 1000))
    await anext(run)
    assert pacer.engine.load.running == 1
    await run.aclose()
    assert pacer.engine.load.running == 0
    await pacer.close()


async def test_what_cannot_run_is_said_at_once() -> None:
    _, pacer = paced()
    with pytest.raises(ValueError, match="token"):
        await anext(pacer.run(Job("a", 0, 1)))
    await pacer.close()
