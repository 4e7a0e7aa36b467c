"""A supervisor with two workers dies under load, in part or whole, again and again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from router.audit.layout import Folder
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.verify import verify
from router.simulator.fleet import SimulatedFleet
from tests.chaos import evidence
from tests.chaos.test_workers import LOGS, ask, receipt
from tests.chaos.town import alive
from tests.chaos.world import Heard, specs, write
from tests.router.supervisor.running import Running, started, until

ROUNDS = int(os.environ.get("DOMICILE_KILLS") or 1)
ASKING = 8
Victims = Callable[[int, Sequence[int]], Sequence[int]]
"""Of a supervisor's process id and its workers', those that are killed."""

VICTIMS: Mapping[str, Victims] = {
    "the supervisor": lambda supervisor, workers: [supervisor],
    "it and a worker": lambda supervisor, workers: [workers[0], supervisor],
    "a worker, then it": lambda supervisor, workers: [supervisor, workers[1]],
    "all": lambda supervisor, workers: [supervisor, *workers],
}


@dataclass(slots=True)
class Held:
    """What clients and auditors hold, that no crash may take back."""

    heard: list[Heard] = field(default_factory=list)
    heads: list[Checkpoint] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)

    @property
    def answers(self) -> list[Heard]:
        """Requests that were served."""
        return [one for one in self.heard if one.status == 200]


@asynccontextmanager
async def town(
    folder: Path, free_port: Callable[[], int]
) -> AsyncIterator[Callable[[], Awaitable[Running]]]:
    """A fleet and files; what is given makes a router of them that is not started yet."""
    async with SimulatedFleet(specs()) as fleet, httpx.AsyncClient(trust_env=False) as http:
        port, admin = free_port(), free_port()
        write(folder, {one.name: one.url for one in fleet}, (port, admin))
        processes: list[asyncio.subprocess.Process] = []

        async def start() -> Running:
            processes.append(await started(folder, 2))
            urls = (f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}")
            return Running(processes[-1], folder, *urls, fleet, http)

        try:
            yield start
        finally:
            for process in processes:
                if process.returncode is None:
                    process.kill()  # the workers see it go, and end
                    await process.wait()


async def die(one: Running, held: Held, victims: Victims, rng: random.Random) -> None:
    """Work, and be killed at a random point; nobody is left when this ends."""
    stop, workers = asyncio.Event(), await one.pids()
    rngs = [random.Random(rng.random()) for _ in range(ASKING)]
    asking = [asyncio.create_task(ask(one, held.heard, stop, own)) for own in rngs]
    await asyncio.sleep(rng.uniform(0.1, 0.6))
    for pid in victims(one.process.pid, workers):
        os.kill(pid, signal.SIGKILL)

    async def nobody_left() -> bool:
        return not alive(workers)

    await until(nobody_left)
    assert await one.process.wait() == -signal.SIGKILL
    stop.set()
    await asyncio.wait_for(asyncio.gather(*asking), 60)


def nothing_lost(log: Path, held: Held) -> None:
    """On the disk that the crash left: every head, every receipt, and no checkpoint set back."""
    receipts = [receipt(one) for one in held.answers]
    verdict = verify(log, against=[*held.heads, *receipts])
    assert verdict.ok, verdict.all_findings
    for name in LOGS:
        head = parse_checkpoint(Folder(log).log(name).checkpoint.read_text())
        before = max((one.size for one in held.heads if one.origin == name), default=0)
        assert head.size >= before, name
        held.heads.append(head)


def settled(log: Path, held: Held, found: Sequence[evidence.Reached]) -> None:
    """The stopped logs: every decision closed, every upstream call and answer in them."""
    held.heads += [parse_checkpoint(Folder(log).log(name).checkpoint.read_text()) for name in LOGS]
    verdict = verify(log, against=[*held.heads, *map(receipt, held.answers)])
    assert verdict.ok, verdict.all_findings
    assert [one.log for one in verdict.logs] == list(LOGS)
    assert not any(one.tail or one.torn for one in verdict.logs)
    requests = evidence.traces(log, LOGS)
    assert list(evidence.unsettled(requests)) == []
    assert list(evidence.unjustified(found, requests))[:5] == []
    asked = {one.headers["x-request-id"] for one in held.answers}
    assert asked <= {request.partition(".")[0] for request in requests}


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize("who", VICTIMS)
async def test_a_killed_crew_begins_again_with_whole_logs(
    tmp_path: Path, free_port: Callable[[], int], who: str
) -> None:
    rng, held = random.Random(7), Held()
    log = tmp_path / "log"
    async with town(tmp_path, free_port) as start:
        for _ in range(ROUNDS):
            began = time.monotonic()
            one = await start()
            await one.ready()
            await one.serving()
            held.starts.append(time.monotonic() - began)
            await die(one, held, VICTIMS[who], rng)
            nothing_lost(log, held)
        one = await start()
        await one.ready()
        await one.serving()
        assert await one.end() == 0, one.said
        found = list(evidence.reached(one.fleet, (), log))
    settled(log, held, found)
    sys.stdout.write(
        f"\n{ROUNDS} deaths of {who}: {len(held.answers)} answers of {len(held.heard)}, ready "
        f"again after {max(held.starts):.1f} s at most\n"
    )
    assert len(held.answers) > ROUNDS
