"""A simulated router sees what a real one would: engines' metrics, prompts' beginnings, tenants."""

from __future__ import annotations

import asyncio

from regions.fleet import Reading
from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Fleet, Station
from router.simulator.timing import EngineSpec, Job, JobTimes
from router.simulator.traces import Ask
from router.simulator.virtual import Ended, run

TWO = Scenario(grounds(["self:fra1=2", "self:par1=1"], EngineSpec()))


class Quiet(Ended):
    def first(self) -> None: ...

    def ended(self, times: JobTimes | None) -> None: ...


def station(conduct: Conduct) -> tuple[Station, Fleet]:
    snapshot = TWO.snapshot("self:fra1")
    return Station("self:fra1", TWO, conduct, snapshot, 0), Fleet.of(TWO, snapshot)


def test_it_reads_engines_as_a_scrape_does() -> None:
    async def main() -> list[Reading | None]:
        router, fleet = station(Conduct())
        for number in range(70):
            fleet.engines["fra1/0"].submit(Job(str(number), 10, 100), Quiet())
        fleet.engines["fra1/1"].kill()
        await asyncio.sleep(0.2)
        now = asyncio.get_running_loop().time()
        router.scrape(fleet, now)
        return [router.readings.fresh(key, now) for key in fleet.engines]

    busy, dead, idle = run(main())
    assert busy is not None
    assert (busy.running, busy.waiting, busy.own) == (64, 6, 0)
    assert dead is None
    assert idle is not None
    assert idle.running == 0


def test_equal_blocks_are_equal_beginnings() -> None:
    async def main() -> None:
        router, _ = station(Conduct())
        one, other = (
            router.wish(Ask(0.0, 2048, 5, blocks, "", "any"), 512, 1.0).path
            for blocks in ((0, 1, 2), (0, 1, 3))
        )
        assert one is not None
        assert other is not None
        assert one.blocks[:7] == other.blocks[:7]
        assert one.blocks != other.blocks

    run(main())


def test_without_spill_a_request_stays_at_home() -> None:
    async def main() -> None:
        free, _ = station(Conduct())
        kept, _ = station(Conduct(spill=False))
        assert [c.endpoint.name for c in free.eligible("any")] == ["fra1", "par1"]
        assert [c.endpoint.name for c in kept.eligible("any")] == ["fra1"]
        assert kept.eligible("only-self:par1") == ()

    run(main())
