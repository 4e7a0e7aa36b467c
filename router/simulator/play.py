"""`simulate run`: a load over regions, fleets and links, in virtual time.

Around the real code: eligible endpoints from the real decision and filter; the order of endpoints,
the choice of a replica, what is in flight, engine readings with their age, health with its leases,
classes and pools, the waiting room and the retry budget are the router's own objects, given this
clock. What is simulated is the rest: engines (`leaping.py`), links by distance, clients. Nothing
is parsed, logged or signed: a router's own time (well under a millisecond) is not in the numbers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from router.simulator.flight import Flight, Stage
from router.simulator.scenario import Scenario
from router.simulator.station import Conduct, Fleet, Outage, Sample, Station
from router.simulator.tally import Result, Tally, result
from router.simulator.traces import Trace
from router.simulator.virtual import run
from router.snapshot import Snapshot

Told = Callable[[int], object]
"""Called with how many requests have come."""
EACH = 256
"""Requests between two of its calls."""


@dataclass(slots=True)
class Played:
    """What a run gave: its numbers, their sources, and the loads seen if it sampled."""

    result: Result
    tally: Tally
    fleet: Fleet
    samples: list[Sample]


def play(
    scenario: Scenario, trace: Trace, conduct: Conduct | None = None, told: Told | None = None
) -> Played:
    """Replay a load; equal arguments give equal results.

    Raises:
        ValueError: an engine could never hold one of its requests.
    """
    for spec in {part.engine for ground in scenario.grounds for part in ground.parts}:
        most = min(spec.context, spec.kv_blocks * spec.block_size)
        largest = max((ask.prompt + ask.output for ask in trace.asks), default=0)
        if largest > most:
            raise ValueError(f"{largest} tokens, where {most} are the most")
    return run(_Play(scenario, trace, conduct or Conduct(), told or (lambda count: None)).go())


class _Play:
    def __init__(self, scenario: Scenario, trace: Trace, conduct: Conduct, told: Told) -> None:
        self._scenario, self._trace, self._conduct = scenario, trace, conduct
        self._told = told
        self._samples: list[Sample] = []

    async def go(self) -> Played:
        scenario = self._scenario
        loop = asyncio.get_running_loop()
        homes = [ground.region for ground in scenario.grounds]
        snapshots = {home: scenario.snapshot(home) for home in homes}
        fleet = Fleet.of(scenario, snapshots[homes[0]])
        stations = {home: self._stations(home, snapshots[home]) for home in homes}
        rng = random.Random(scenario.seed)
        tally = Tally(scenario.target, tenants=bool(scenario.weights))
        stage = Stage(scenario, self._conduct, fleet, tally, self._trace.block, rng, loop)
        watching = [
            # Each router looks at a moment of its own within the period, as processes do.
            *(
                asyncio.create_task(self._scrape(station, fleet, scenario.scrape * rng.random()))
                for routers in stations.values()
                for station in routers
            ),
            asyncio.create_task(self._sample(fleet)),
            *(asyncio.create_task(self._outage(one, fleet)) for one in self._conduct.outages),
        ]
        await self._arrivals(stage, stations, homes[0])
        stage.idle.clear()
        if stage.open:
            await stage.idle.wait()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        engines = [(fleet.kinds[key], one.engine) for key, one in fleet.engines.items()]
        end = stage.tally.last or loop.time()
        found = result(self._conduct.strategy, self._layout, stage.tally, engines, end)
        return Played(found, stage.tally, fleet, self._samples)

    @property
    def _layout(self) -> str:
        return ", ".join(dict.fromkeys(str(ground.layout) for ground in self._scenario.grounds))

    def _stations(self, home: str, snapshot: Snapshot) -> list[Station]:
        scenario = self._scenario
        return [
            Station(home, scenario, self._conduct, snapshot, scenario.seed * 7919 + number)
            for number in range(scenario.routers)
        ]

    async def _arrivals(
        self, stage: Stage, stations: Mapping[str, Sequence[Station]], first: str
    ) -> None:
        for number, ask in enumerate(self._trace.asks):
            wait = ask.at - stage.loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            routers = stations[ask.region or first]
            stage.open += 1
            stage.tally.came(ask)
            Flight(stage, routers[number % len(routers)], ask, number).arrive()
            if not number % EACH:
                self._told(number)

    async def _scrape(self, station: Station, fleet: Fleet, first: float) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(first)
        while True:
            station.scrape(fleet, loop.time())
            await asyncio.sleep(self._scenario.scrape)

    async def _sample(self, fleet: Fleet) -> None:
        loop = asyncio.get_running_loop()
        while self._conduct.sample:
            self._samples.append(fleet.sample(loop.time()))
            await asyncio.sleep(self._conduct.sample)

    async def _outage(self, outage: Outage, fleet: Fleet) -> None:
        engines = fleet.lost(outage)
        await asyncio.sleep(outage.at)
        for one in engines:
            one.kill()
        await asyncio.sleep(outage.until - outage.at)
        for one in engines:
            one.revive()
