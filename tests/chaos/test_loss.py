"""A replica dies, a region dies and comes back, under load over real sockets.

As many requests at once as there are clients, each asking again when it is answered; the rates
that came of it are printed. A steady rate, 500 a second if the machine can, is `steady.py`'s.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop

from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from tests.chaos import evidence
from tests.chaos.world import OUTSIDE, PATIENT, Client, Heard, Question, World, running

ENGINE = EngineSpec(step_floor=0.005, per_sequence=0.00001, prefill_rate=100_000)
CLIENTS = 32
EACH = 6
HOME = tuple(f"self:fra1/{number}" for number in range(EACH))
NEXT = tuple(f"self:par1/{number}" for number in range(EACH))
WINDOW = 1.0


@dataclass(slots=True)
class Told:
    """What clients heard, each with the loop time at which it was asked."""

    heard: list[tuple[float, Heard]] = field(default_factory=list)

    def since(self, began: float, ended: float) -> list[Heard]:
        """Of requests that were asked in between."""
        return [one for at, one in self.heard if began <= at < ended]


@asynccontextmanager
async def asking(world: World) -> AsyncIterator[Told]:
    """Clients that ask while the block runs; half of them stream."""
    told, stop = Told(), asyncio.Event()
    loop = asyncio.get_running_loop()
    client = Client(world.url)

    async def ask(number: int) -> None:
        while not stop.is_set():
            began = loop.time()
            # No two alike: what is alike goes where the first one went, to use its cache.
            text = f"{number}, {began}: say something"
            question = Question("clinic", stream=number % 2 == 0, tokens=60, text=text)
            told.heard.append((began, await client.ask(question)))

    tasks = [asyncio.create_task(ask(number)) for number in range(CLIENTS)]
    try:
        await asyncio.sleep(1.0)
        yield told
    finally:
        stop.set()
        await asyncio.gather(*tasks)
        await client.close()


def replicas() -> dict[str, ReplicaSpec]:
    """Two regions inside, one outside."""
    return dict.fromkeys((*HOME, *NEXT, "self:iad1/0"), ReplicaSpec(engine=ENGINE))


def broken(one: Heard) -> bool:
    """Whether a stream ended with the typed event."""
    return one.stream and b'"code":"incomplete"' in one.body


def nothing_wrong(world: World, told: Told) -> None:
    """Every answer is whole or says that it isn't; every call was decided, inside."""
    heard = [one for _, one in told.heard]
    assert {one.status for one in heard} == {200}, Counter(one.code for one in heard)
    assert list(evidence.malformed(heard)) == []
    log = evidence.traces(world.log)
    found = list(evidence.reached(world.fleet, (), world.log, world.clock))
    assert list(evidence.unjustified(found, log))[:5] == []
    assert list(evidence.unsettled(log))[:5] == []
    assert not [hit for hit in found if hit.endpoint in OUTSIDE]


async def killed(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    async with running(folder, replicas(), PATIENT) as world:
        async with asking(world) as told:
            dead = max(HOME, key=lambda name: len(world.fleet[name].seen))
            open_ = [hit for hit in world.fleet[dead].seen if hit.outcome == "open"]
            world.fleet[dead].kill()
            at = loop.time()
            await asyncio.sleep(3.0)
        cut = [one for _, one in told.heard if broken(one)]
        before, after = told.since(0, at), told.since(at + 1, at + 3)
        again = [one for one in told.since(at, at + 1) if one.headers["x-domicile-attempts"] != "1"]
    nothing_wrong(world, told)
    sys.stdout.write(
        f"\n{len(told.heard)} requests; {len(open_)} ran at the replica that died, {len(cut)} of "
        f"them streams that had begun; {len(again)} asked elsewhere again in the first second, "
        f"none of {len(after)} later\n"
    )
    assert len(before) > CLIENTS
    assert all(broken(one) for one in cut)
    assert 0 < len(cut) <= len(open_)
    assert not any(broken(one) for one in told.since(at, at + 3)), "what came later isn't cut"
    assert {one.headers["x-domicile-attempts"] for one in after} == {"1"}
    assert len(after) > CLIENTS


async def lost(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    async with running(folder, replicas(), PATIENT) as world:
        async with asking(world) as told:
            for name in HOME:
                world.fleet[name].kill()
            gone = loop.time()
            await asyncio.sleep(2.5)
            for name in HOME:
                await world.fleet[name].start()
            back = loop.time()
            await asyncio.sleep(5.0)
            end = loop.time()
        dark = [one for one in told.since(gone + 1, back) if not broken(one)]
    nothing_wrong(world, told)
    whole = back_together(world, back)
    shares = windows(world, whole, end)
    sys.stdout.write(
        f"\n{len(told.heard) / (end - gone + 1):.0f} requests a second; {len(dark)} answered by "
        f"{Counter(one.headers['x-domicile-endpoint'] for one in dark)} while the region was away; "
        f"all its replicas took part {whole - back:.2f} s after its return; then the load of the "
        f"busiest, second by second, in means of its region: {shares}\n"
    )
    assert {one.headers["x-domicile-endpoint"] for one in dark} == {"par"}
    assert shares, "the region took part again"
    assert max(shares) <= 2, shares


def load(world: World, name: str, began: float, ended: float) -> float:
    """How many clients' requests ran at a replica, on average over a time."""
    spans = (
        min(ended, hit.ended or ended) - max(began, hit.at)
        for hit in world.fleet[name].seen if hit.request_id != "probe"
    )  # fmt: skip
    return sum(span for span in spans if span > 0) / (ended - began)


def back_together(world: World, back: float) -> float:
    """When the last replica of the region had its first client again."""
    firsts = [
        next((hit.at for hit in world.fleet[name].seen if hit.at > back
              and hit.request_id != "probe"), float("inf"))
        for name in HOME
    ]  # fmt: skip
    return max(firsts)


def windows(world: World, began: float, ended: float) -> list[float]:
    """Of each second: the load of the busiest replica at home, in means of all at home."""
    found = []
    while began + WINDOW <= ended:
        loads = [load(world, name, began, began + WINDOW) for name in HOME]
        if sum(loads) >= CLIENTS / 4:
            found.append(round(max(loads) * EACH / sum(loads), 2))
        began += WINDOW
    return found


@pytest.mark.slow
@pytest.mark.chaos
def test_a_killed_replica_costs_only_the_streams_it_had_begun(tmp_path: Path) -> None:
    uvloop.run(killed(tmp_path))


@pytest.mark.slow
@pytest.mark.chaos
def test_a_lost_region_stays_inside_and_comes_back_without_a_herd(tmp_path: Path) -> None:
    uvloop.run(lost(tmp_path))
