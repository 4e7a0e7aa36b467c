"""A lost region that comes back: how much more than the mean any replica has, and what a perfect
eye and chance come to. Virtual time, seeded.

The load of a replica is what is there: requests, or tokens (prompts and whole answers), running
or waiting, averaged over a second. Less than a request lasts says more of chance than of any
choice: of 64 replicas with 7.8 requests each by chance alone (Poisson), the busiest has 1.9 times
the mean at every look.
The mean is that of all replicas with any load in that second, whatever their region: one that
came back late in it, and could take little, counts whole, and makes the figure higher.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Final

from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Fleet, Outage, Sample
from router.simulator.timing import EngineSpec, Job, JobTimes
from router.simulator.traces import Ask, Days, Trace, days
from router.simulator.virtual import Ended, LoopEngine, run

FOUR: Final = ("self:fra1", "self:par1", "self:sto1", "self:iad1")
LENGTHS: Final = [(300, 40), (600, 60), (150, 20)]
LONG: Final = (70.0, 20.0, 40.0)
SHORT: Final = (24.0, 6.0, 18.0)
"""Seconds in all, until the region is gone, and until it is back."""
EVERY: Final = 0.1
"""Seconds between two looks at all engines."""
_SECOND: Final = 10
"""Looks in one second."""


def asked(rate: float, seconds: float, seed: int) -> Trace:
    """So many requests a second, a quarter in each region, a tenth bound to their own country."""
    load = Days(
        tuple((name, 0.0) for name in FOUR), rate / len(FOUR), seconds, swing=0.0, bound=0.1
    )
    return days(load, LENGTHS, seed=2 + seed)


def scene(replicas: int, routers: int, seed: int) -> Scenario:
    """Four regions of so many replicas, and so many routers in each."""
    fleets = grounds([f"{name}={replicas}" for name in FOUR], EngineSpec())
    return Scenario(fleets, routers=routers, seed=seed)


def during(strategy: str, gone: float, back: float) -> Conduct:
    """The first region is gone from `gone` to `back`, and everybody's load is looked at."""
    return Conduct(strategy, outages=(Outage(FOUR[0], gone, back),), sample=EVERY)


def crest(
    samples: Sequence[Sample], began: float, ended: float, load: str = "requests", of: str = ""
) -> float:
    """The most of any replica, in any second, over the mean of those with any load in it.

    Args:
        load: `requests` or `tokens`.
        of: how the keys of those begin who may be the busiest; the mean is of all.
    """
    window = [getattr(one, load) for one in samples if began <= one.at < ended]
    worst = 0.0
    for number in range(len(window) - _SECOND + 1):
        second = window[number : number + _SECOND]
        means = {key: fmean(loads[key] for loads in second) for key in second[0]}
        working = [one for one in means.values() if one]
        if working:
            most = max(one for key, one in means.items() if key.startswith(of))
            worst = max(worst, most / fmean(working))
    return worst


def crests(samples: Sequence[Sample], gone: float, back: float) -> dict[str, dict[str, float]]:
    """The same before, dark, and in every second from the last dark one on, in both loads; and of
    those that came back alone."""
    end = samples[-1].at + EVERY
    spans = {
        "before": (gone / 4, gone, ""),
        "dark": (gone + 2, back, ""),
        "return": (back - 1 + EVERY, min(back + 2, end), ""),
        "returned": (back, end, FOUR[0].partition(":")[2]),
        "after": (back + 1, end, ""),
    }
    return {
        load: {name: round(crest(samples, a, b, load, of), 2) for name, (a, b, of) in spans.items()}
        for load in ("requests", "tokens")
    }


# --------------------------------------------------------------------------------------


class _Sent(Ended):
    def __init__(self, send: Callable[[_Sent], None], job: Job) -> None:
        self.job, self._send, self._begun = job, send, False

    def first(self) -> None:
        self._begun = True

    def ended(self, times: JobTimes | None) -> None:
        if times is None and not self._begun:
            self._send(self)


def _requests(one: LoopEngine) -> float:
    load = one.engine.load
    return load.running + load.waiting


EYES: Final[Mapping[str, Callable[[LoopEngine], float]]] = {
    "fewest requests": _requests,
    "fewest tokens": lambda one: one.engine.held,
    "chance": lambda one: 0.0,
}
"""What is least at the replica that each takes; equal ones by lot."""


def eyed(eye: str, scenario: Scenario, trace: Trace, outage: Outage) -> list[Sample]:
    """The loads where one chooses among all replicas at no distance, and sees what is at each now:
    what no router can, and the least that any choice comes to. No boundary is kept."""

    async def go() -> list[Sample]:
        loop, rng, weigh = asyncio.get_running_loop(), random.Random(scenario.seed), EYES[eye]
        fleet = Fleet.of(scenario, scenario.snapshot(scenario.grounds[0].region))
        found, engines = list[Sample](), list(fleet.engines.values())

        def send(one: _Sent) -> None:
            up = [engine for engine in engines if engine.up]
            min(up, key=lambda engine: (weigh(engine), rng.random())).submit(one.job, one)

        def begin(number: int, ask: Ask) -> None:
            send(_Sent(send, Job(f"{number}", ask.prompt, ask.output)))

        def lose() -> None:
            lost = fleet.lost(outage)
            for one in lost:
                one.up = False  # who is sent on from the first goes to none of the others
            for one in lost:
                one.kill()

        def bring_back() -> None:
            for one in fleet.lost(outage):
                one.revive()

        loop.call_at(outage.at, lose)
        loop.call_at(outage.until, bring_back)
        for number, ask in enumerate(trace.asks):
            loop.call_at(ask.at, begin, number, ask)
        while loop.time() < trace.asks[-1].at:
            found.append(fleet.sample(loop.time()))
            await asyncio.sleep(EVERY)
        return found

    return run(go())
