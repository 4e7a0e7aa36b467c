"""Virtual time: waits cost none, order holds, and a wait for nothing is told."""

from __future__ import annotations

import asyncio

import pytest

from router.simulator.timing import EngineSpec, Job, JobTimes
from router.simulator.virtual import Ended, LoopEngine, Stalled, run

SPEC = EngineSpec(prefill_rate=1000.0, step_floor=0.01, per_sequence=0.001)


class Told(Ended):
    def __init__(self) -> None:
        self.said: list[tuple[str, float]] = []

    def first(self) -> None:
        self.said.append(("first", asyncio.get_running_loop().time()))

    def ended(self, times: JobTimes | None) -> None:
        said = "died" if times is None else "ended"
        self.said.append((said, asyncio.get_running_loop().time()))


def test_a_day_passes_at_once_and_in_order() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def later(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append(f"{name} {asyncio.get_running_loop().time():g}")

        await asyncio.gather(later("b", 86_400), later("a", 60), later("c", 86_400.5))
        return seen

    assert run(main()) == ["a 60", "b 86400", "c 86400.5"]


def test_timeouts_are_the_real_ones() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.sleep(31)
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(30)


def test_a_wait_for_nothing_is_told() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stalled):
        run(main())


def test_an_engine_on_the_loop_tells_first_and_end() -> None:
    async def main() -> list[tuple[str, float]]:
        engine, told = LoopEngine(SPEC), Told()
        engine.submit(Job("a", 50, 3), told)
        await asyncio.sleep(10)
        return told.said

    (first, began), (end, ended) = run(main())
    assert (first, end) == ("first", "ended")
    assert began == pytest.approx(0.06)
    assert ended == pytest.approx(0.06 + 2 * 0.011)


def test_a_killed_engine_ends_what_runs_and_forgets_its_cache() -> None:
    async def main() -> tuple[list[str], int]:
        engine, told, again = LoopEngine(SPEC), Told(), Told()
        job = Job("a", 64, 100, (1, 2, 3, 4))
        engine.submit(job, told)
        await asyncio.sleep(0.5)
        engine.kill()
        assert not engine.up
        engine.revive()
        engine.submit(job, again)
        await asyncio.sleep(10)
        return [said for said, _ in told.said + again.said], engine.engine.totals.hits

    assert run(main()) == (["first", "died", "first", "ended"], 0)
