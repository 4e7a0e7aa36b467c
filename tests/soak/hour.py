"""A soak: load at a steady rate, weather, samples; all evidence stays in a folder.

python -m tests.soak.hour FOLDER RATE SECONDS SEED [cuts]

With `cuts` it must run in a network namespace of its own.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx
import orjson

from tests.chaos.town import Town, alive, descriptors, memory, stamp
from tests.router.supervisor.running import ROOT
from tests.soak.weather import Weather

WARM = 20.0
CALM = 15.0
REST = 12.0
EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """How much load for how long."""

    folder: Path
    rate: float
    seconds: float
    seed: int
    cuts: bool

    def load(self, url: str, seconds: float, name: str) -> tuple[str, ...]:
        """The command of clients."""
        journal = str(self.folder / name)
        figures = (str(self.rate), str(seconds), str(self.seed), journal)
        return (sys.executable, "-m", "tests.chaos.load", url, *figures)


async def clients(command: tuple[str, ...], said: BinaryIO) -> asyncio.subprocess.Process:
    """Start clients."""
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=said)


async def sample(town: Town) -> dict[str, object]:
    """Memory (KiB) and descriptors of each process, tasks of each worker, requests open."""
    process = town.router.process
    assert process is not None
    pids = [process.pid, *(int(str(one["pid"] or 0)) for one in await town.workers())]
    found = await town.metrics()
    return {
        "at": stamp(),
        "pids": pids,
        "memory": [memory(pid) for pid in pids],
        "descriptors": [descriptors(pid) for pid in pids],
        "tasks": [found.get(f'domicile_tasks{{worker="{n}"}}', 0.0) for n in (1, 2)],
        "open": found["domicile_open_requests"],
        "tokens": sum(v for k, v in found.items() if k.startswith("domicile_inflight_tokens{")),
    }


async def at_rest(town: Town) -> dict[str, object]:
    """The same when nobody asks and idle connections have been closed."""
    await asyncio.sleep(REST)
    async with asyncio.timeout(60):
        while any(one["state"] != "serving" for one in await town.workers()):  # noqa: ASYNC110
            await asyncio.sleep(0.5)
    await asyncio.sleep(2)
    return await sample(town)


async def watch(town: Town, file: BinaryIO) -> None:
    """A sample now and then."""
    while True:
        file.write(orjson.dumps(await sample(town)) + b"\n")
        file.flush()
        await asyncio.sleep(EVERY)


async def storm(asked: Asked, town: Town, said: BinaryIO) -> None:
    """The load, with weather until shortly before its end."""
    rng, stop = random.Random(asked.seed), asyncio.Event()
    process = await clients(asked.load(town.url, asked.seconds, "load.jsonl"), said)
    with (
        (asked.folder / "events.jsonl").open("ab") as events,
        (asked.folder / "samples.jsonl").open("ab") as samples,
    ):
        weather = Weather(town, rng, lambda row: print_line(events, row))
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch(town, samples))
            group.create_task(weather.regions(stop))
            group.create_task(weather.rest(stop))
            await asyncio.sleep(max(1.0, asked.seconds - CALM))
            stop.set()
            assert await process.wait() == 0
            watching.cancel()


def print_line(file: BinaryIO, row: object) -> None:
    """One JSON line, at once."""
    file.write(orjson.dumps(row) + b"\n")
    file.flush()


async def run(asked: Asked) -> None:
    """All of it; leaves `rest.json` when it came to its end."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        town = Town(asked.folder, http)
        with (asked.folder / "clients.stderr").open("ab") as said:
            try:
                await town.open()
                if asked.cuts:
                    await town.fence()
                warm = await clients(asked.load(town.url, WARM, "warm.jsonl"), said)
                assert await warm.wait() == 0
                before = await at_rest(town)
                began = stamp()
                await storm(asked, town, said)
                ended = stamp()
                after = await at_rest(town)
                counted = await town.metrics()
            finally:
                code = await town.close()
    pids = after["pids"]
    assert isinstance(pids, list)
    found = {"before": before, "after": after, "began": began, "ended": ended, "code": code}
    found |= {"left": alive(pids), "metrics": counted}
    (asked.folder / "rest.json").write_bytes(orjson.dumps(found))


if __name__ == "__main__":
    where, rate, seconds, seed, *more = sys.argv[1:]
    asyncio.run(run(Asked(Path(where), float(rate), float(seconds), int(seed), "cuts" in more)))
