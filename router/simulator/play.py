"""`simulate run`: a load over regions, fleets and links, in virtual time.

Around the real code: eligible endpoints from the real decision and filter; the order of endpoints,
the choice of a replica, what is in flight, engine readings with their age, health with its leases,
the waiting room and the retry budget are the router's own objects, given this clock. What is
simulated is the rest: engines (`leaping.py`), links by distance, clients. Nothing is parsed,
logged or signed: a router's own time (well under a millisecond) is not in the numbers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from regions.health import Sign
from router.dispatch import HERE
from router.load import Held
from router.placing import Placed, Wish
from router.selection import PreferConflict
from router.simulator.scenario import MODEL, Scenario, round_trip
from router.simulator.station import Conduct, Fleet, Outage, Station
from router.simulator.tally import Result, Tally, result
from router.simulator.timing import Job, JobTimes
from router.simulator.traces import Ask, Trace
from router.simulator.virtual import Ended, run
from router.snapshot import Snapshot
from router.types import Candidacy
from router.waiting import NoRoom


@dataclass(slots=True)
class Stage:
    """What all flights of one run share."""

    scenario: Scenario
    conduct: Conduct
    fleet: Fleet
    tally: Tally
    block: int
    rng: random.Random
    loop: asyncio.AbstractEventLoop
    open: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def left(self) -> None:
        """A request has come to its end."""
        self.open -= 1
        if not self.open:
            self.idle.set()


class Flight(Ended):
    """One request, from its router to its end. Callbacks, not a task: most never wait."""

    __slots__ = (
        "ask",
        "came",
        "held",
        "job",
        "key",
        "link",
        "order",
        "placed",
        "stage",
        "started",
        "station",
        "tries",
        "turns",
    )  # fmt: skip

    def __init__(self, stage: Stage, station: Station, ask: Ask, number: int) -> None:
        self.stage, self.station, self.ask = stage, station, ask
        self.job = Job(f"{number}", ask.prompt, ask.output, ask.blocks)
        self.came = ask.at
        self.tries = 0
        self.key, self.link, self.started = "", 0.0, False
        self.held: Held | None = None
        self.turns: Iterator[tuple[Candidacy, str]] = iter(())

    def arrive(self) -> None:
        """The request is at its router, for the first time or again."""
        now = self.stage.loop.time()
        wish = self.station.wish(self.ask, self.stage.block, now)
        if not wish.eligible:
            self._refused(None)
            return
        try:
            placed = self.station.placing.at_once(wish)
        except PreferConflict:
            self._refused(None)
            return
        if placed is not None:
            self._begin(placed)
            return
        task = self.stage.loop.create_task(self._wait(wish))
        self.stage.tasks.add(task)
        task.add_done_callback(self.stage.tasks.discard)

    async def _wait(self, wish: Wish) -> None:
        began = self.stage.loop.time()
        try:
            placed = await self.station.placing.wait(wish)
        except NoRoom as error:
            self._refused(error.retry_after)
            return
        self.stage.tally.waited.add(self.stage.loop.time() - began)
        self._begin(placed)

    def _refused(self, retry_after: float | None) -> None:
        tally, conduct = self.stage.tally, self.stage.conduct
        if retry_after is not None and self.tries < conduct.again:
            if not self.tries:
                tally.told += 1
            self.tries += 1
            # As a polite client does: not before the time told, and not all at once.
            wait = retry_after * (1 + 0.25 * self.stage.rng.random())
            self.stage.loop.call_later(wait, self.arrive)
            return
        tally.refused[self.ask.tenant] += 1
        self.stage.left()

    # the attempts, as `router.dispatch` makes them

    def _begin(self, placed: Placed) -> None:
        if self.tries:
            self.stage.tally.came_back += 1
            self.came = self.stage.loop.time()
        self.station.budget.earn()
        self.held = placed.held
        self.turns = self._in_turn(placed)
        self._next(None)

    def _in_turn(self, placed: Placed) -> Iterator[tuple[Candidacy, str]]:
        kept = None if placed.held is None else placed.held.key
        for candidacy in placed.order:
            name = candidacy.endpoint.name
            keys = self.station.balance.in_turn(self.station.snapshot, name, kept)
            most = None if candidacy is placed.order[-1] else HERE
            for key in islice(keys, most):
                yield candidacy, key

    def _next(self, failed: Sign | None) -> None:
        if failed is not None:
            self.tries += 1
            self.stage.tally.retried += 1
        attempts = self.station.limits.attempts
        if self.tries > attempts or (failed is Sign.ILL and not self.station.budget.spend()):
            self._lost()
            return
        turn = next(self.turns, None)
        if turn is None:
            self._lost()
            return
        candidacy, key = turn
        if self.held is None or self.held.key != key:
            if self.held is not None:
                self.held.close()
            self.held = self.station.inflight.enter(key, self.ask.prompt)
        self.key = key
        self._send(candidacy)

    def _send(self, candidacy: Candidacy) -> None:
        stage = self.stage
        region = stage.fleet.at[self.key]
        if candidacy not in self.station.eligible(self.ask.tenant):
            stage.tally.outside += 1
        self.station.health.start(self.key, stage.loop.time())
        self.link = round_trip(self.station.home, region)
        stage.loop.call_later(self.link / 2, self._reached)

    def _reached(self) -> None:
        engine = self.stage.fleet.engines[self.key]
        if not engine.up:
            self.stage.loop.call_later(self.link / 2, self._failed, Sign.DEAD)
            return
        engine.submit(self.job, self)

    def _failed(self, sign: Sign) -> None:
        self.station.health.observe(self.key, sign, self.stage.loop.time())
        if self.started:
            self._closed()
            self.stage.tally.broken += 1
            return
        self._next(sign)

    def first(self) -> None:
        """The first token left the engine."""
        self.started = True
        self.stage.loop.call_later(self.link / 2, self._opened)

    def _opened(self) -> None:
        stage, now = self.stage, self.stage.loop.time()
        stage.tally.first(self.ask, now - self.came, stage.fleet.specs[self.key])
        self.station.health.observe(self.key, Sign.OK, now)
        if self.held is not None:
            self.held.opened(now)

    def ended(self, times: JobTimes | None) -> None:
        """The answer is whole, or its engine died."""
        if times is None:
            self.stage.loop.call_later(self.link / 2, self._failed, Sign.ILL)
        else:
            self.stage.loop.call_later(self.link / 2, self._whole)

    def _whole(self) -> None:
        stage = self.stage
        stage.tally.lasted.add(stage.loop.time() - self.came)
        self.station.balance.lengths.learn(MODEL, self.ask.tenant, self.ask.output)
        stage.tally.whole(self.ask, stage.fleet.at[self.key], stage.loop.time())
        self._closed()

    def _lost(self) -> None:
        self.stage.tally.lost += 1
        self._closed()

    def _closed(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.close()
        self.stage.left()


@dataclass(slots=True)
class Played:
    """What a run gave: its numbers, their sources, and the loads seen if it sampled."""

    result: Result
    tally: Tally
    fleet: Fleet
    samples: list[tuple[float, dict[str, int]]]


def play(scenario: Scenario, trace: Trace, conduct: Conduct | None = None) -> Played:
    """Replay a load; equal arguments give equal results.

    Raises:
        ValueError: an engine could never hold one of its requests.
    """
    for spec in {ground.engine for ground in scenario.grounds}:
        most = min(spec.context, spec.kv_blocks * spec.block_size)
        largest = max((ask.prompt + ask.output for ask in trace.asks), default=0)
        if largest > most:
            raise ValueError(f"{largest} tokens, where {most} are the most")
    return run(_Play(scenario, trace, conduct or Conduct()).go())


class _Play:
    def __init__(self, scenario: Scenario, trace: Trace, conduct: Conduct) -> None:
        self._scenario, self._trace, self._conduct = scenario, trace, conduct
        self._samples: list[tuple[float, dict[str, int]]] = []

    async def go(self) -> Played:
        scenario = self._scenario
        loop = asyncio.get_running_loop()
        homes = [ground.region for ground in scenario.grounds]
        snapshots = {home: scenario.snapshot(home) for home in homes}
        fleet = Fleet.of(scenario, snapshots[homes[0]])
        stations = {home: self._stations(home, snapshots[home]) for home in homes}
        rng = random.Random(scenario.seed)
        stage = Stage(
            scenario, self._conduct, fleet, Tally(scenario.target), self._trace.block, rng, loop
        )
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
        engines = [one.engine for one in fleet.engines.values()]
        end = stage.tally.last or loop.time()
        found = result(self._conduct.strategy, stage.tally, engines, end)
        return Played(found, stage.tally, fleet, self._samples)

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
            stage.tally.asked[ask.tenant] += 1
            Flight(stage, routers[number % len(routers)], ask, number).arrive()

    async def _scrape(self, station: Station, fleet: Fleet, first: float) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(first)
        while True:
            station.scrape(fleet, loop.time())
            await asyncio.sleep(self._scenario.scrape)

    async def _sample(self, fleet: Fleet) -> None:
        loop = asyncio.get_running_loop()
        while self._conduct.sample:
            self._samples.append((loop.time(), fleet.loads()))
            await asyncio.sleep(self._conduct.sample)

    async def _outage(self, outage: Outage, fleet: Fleet) -> None:
        engines = [one for key, one in fleet.engines.items() if fleet.at[key] == outage.region]
        await asyncio.sleep(outage.at)
        for one in engines:
            one.kill()
        await asyncio.sleep(outage.until - outage.at)
        for one in engines:
            one.revive()
