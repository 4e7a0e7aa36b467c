"""A region is lost and comes back under a steady rate, through a router that runs by itself.

python -m tests.chaos.steady [--rate 500] [--seconds 30]

The router is a process of its own with files of its own; fleet and clients are this one. Requests
come at random moments (a Poisson process of the given rate, seeded), whether answers come or not.
Engines are slow enough for about eight requests at each replica, whatever the rate.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import httpx
import uvloop

from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from tests.chaos.town import free_ports
from tests.chaos.world import PATIENT, Client, Heard, Question, write
from tests.router.supervisor.running import Running, started

EACH = 8
STEP = 0.02
MEAN = 7.5
ENGINE = EngineSpec(step_floor=STEP, per_sequence=0.00001, prefill_rate=100_000, max_num_seqs=256)
HOME = tuple(f"self:fra1/{number}" for number in range(EACH))
NEXT = tuple(f"self:par1/{number}" for number in range(EACH))
OUTSIDE = "self:iad1/0"
LIMITS = f"{PATIENT}, concurrency: 100000"


@dataclass(frozen=True, slots=True)
class Course:
    """How it went. Loads are those of the busiest replica in means of its region, each averaged
    over one second: the most of any second.

    `lag`: the longest that a request was sent after its moment; `outside`: what came to the
    replica that no request may reach.
    """

    heard: tuple[Heard, ...]
    seconds: float
    lag: float
    before: float
    dark: float
    after: float
    outside: int

    def __str__(self) -> str:
        waits = sorted(one.seconds for one in self.heard)
        found = Counter(f"{one.status} {one.code}".strip() for one in self.heard)
        return (
            f"{len(self.heard) / self.seconds:.0f} requests a second: {dict(found)}; sent "
            f"{self.lag:.2f} s late at most; whole answers p50 {waits[len(waits) // 2]:.2f} s, p99 "
            f"{waits[len(waits) * 99 // 100]:.2f} s; outside {self.outside}; busiest in means: "
            f"before {self.before:.2f}, dark {self.dark:.2f}, after the return {self.after:.2f}"
        )


def load(fleet: SimulatedFleet, name: str, began: float, ended: float) -> float:
    """How many clients' requests ran at a replica, on average over a time."""
    spans = (
        min(ended, hit.ended or ended) - max(began, hit.at)
        for hit in fleet[name].seen if hit.request_id != "probe"
    )  # fmt: skip
    return sum(span for span in spans if span > 0) / (ended - began)


def crest(fleet: SimulatedFleet, began: float, ended: float) -> float:
    """The most of any replica over the mean of its region, of any second; a look each half.

    Of its region, for the nearest one gets all while it can: the other's are then idle by choice.
    A region with less than two requests a replica is on its way in or out.
    """
    worst = 0.0
    while began + 1 <= ended:
        for region in (HOME, NEXT):
            loads = [load(fleet, name, began, began + 1) for name in region]
            if fmean(loads) >= 2:
                worst = max(worst, max(loads) / fmean(loads))
        began += 0.5
    return worst


def _specs() -> Mapping[str, ReplicaSpec]:
    return dict.fromkeys((*HOME, *NEXT, OUTSIDE), ReplicaSpec(engine=ENGINE))


async def steady(folder: Path, rate: float, seconds: float, seed: int = 0) -> Course:
    """Play it: a third of the time before, a sixth without the region, the rest after."""
    async with SimulatedFleet(_specs()) as fleet, httpx.AsyncClient(trust_env=False) as http:
        public, admin = free_ports(2)
        write(folder, {one.name: one.url for one in fleet}, (public, admin), limits=LIMITS)
        process = await started(folder, 1)
        url, told = f"http://127.0.0.1:{public}", f"http://127.0.0.1:{admin}"
        router = Running(process, folder, url, told, fleet, http)
        try:
            await router.ready()
            return await _course(router, rate, seconds, random.Random(seed))
        finally:
            if process.returncode is None:
                await _stopped(router)


async def _stopped(router: Running) -> None:
    """End it as an operator does; one that doesn't end is killed, and that is told."""
    try:
        await router.end()
    finally:
        if router.process.returncode is None:
            router.process.kill()
            await router.process.wait()


async def _course(router: Running, rate: float, seconds: float, rng: random.Random) -> Course:
    loop, fleet = asyncio.get_running_loop(), router.fleet
    client, began = Client(router.url), loop.time()
    tokens = max(1, round(MEAN * 2 * EACH / rate / STEP))
    gone, back = began + seconds / 3, began + seconds / 2
    breaking = asyncio.create_task(_lost(fleet, gone, back))
    asking, at, lag, number = [], began, 0.0, 0
    while (at := at + rng.expovariate(rate)) < began + seconds:
        if at > loop.time():
            await asyncio.sleep(at - loop.time())
        lag = max(lag, loop.time() - at)
        number += 1
        question = Question("clinic", tokens=tokens, text=f"{number} {at}: say something")
        asking.append(asyncio.create_task(client.ask(question)))
    heard = tuple(await asyncio.gather(*asking))
    await breaking
    await client.close()
    again = min(
        (hit.at for name in HOME for hit in fleet[name].seen
         if hit.at > back and hit.request_id != "probe"), default=back,
    )  # fmt: skip
    outside = sum(hit.request_id != "probe" for hit in fleet[OUTSIDE].seen)
    return Course(
        heard, seconds, lag, crest(fleet, began + 2, gone), crest(fleet, gone + 1, back),
        crest(fleet, again, began + seconds), outside,
    )  # fmt: skip


async def _lost(fleet: SimulatedFleet, gone: float, back: float) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(gone - loop.time())
    for name in HOME:
        fleet[name].kill()
    await asyncio.sleep(back - loop.time())
    for name in HOME:
        await fleet[name].start()


def main(arguments: list[str]) -> int:
    """Play it once, and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.steady", description=__doc__)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = uvloop.run(steady(Path(folder), options.rate, options.seconds, options.seed))
    sys.stdout.write(f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
