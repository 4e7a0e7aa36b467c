"""`domicile serve` is killed under load, again and again: what it said stays true."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import uvloop

from router.audit.layout import Folder
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.reading import LogReader
from router.audit.receipt import Receipt
from router.audit.tree import leaf_hash
from router.audit.verify import verify
from router.simulator.fleet import SimulatedFleet
from tests.chaos import evidence
from tests.chaos.world import Client, Heard, Question, specs, write
from tests.router.audit.faults import Fault, Vandal

# Fifty deaths are CI's; a few of the same kind are everybody's.
KILLS = int(os.environ.get("DOMICILE_KILLS") or (50 if os.environ.get("CI") else 8))
ASKING = 12
ROUNDS = 40
ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Held:
    """What clients and auditors hold, that no crash may take back."""

    answers: list[Heard] = field(default_factory=list)
    heads: list[Checkpoint] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)


class Serving:
    """One `domicile serve`; the next one is already imported, and waits."""

    def __init__(self, config: Path, port: int) -> None:
        self._config, self._port = config, port
        self._waiting: asyncio.subprocess.Process | None = None
        self._running: asyncio.subprocess.Process | None = None

    async def start(self) -> float:
        """Begin to serve; gives the seconds until the port answered."""
        process = self._waiting or await self._import()
        began = time.monotonic()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        self._running = process
        while not await self._answers():
            assert process.returncode is None, self.said
            assert time.monotonic() < began + 30, self.said
            await asyncio.sleep(0.01)
        seconds = time.monotonic() - began
        self._waiting = await self._import()
        return seconds

    async def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; gives the exit code."""
        assert self._running is not None
        self._running.send_signal(number)
        code = await self._running.wait()
        self._running = None
        return code

    async def close(self) -> None:
        """Leave nothing behind."""
        for process in (self._running, self._waiting):
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()

    @property
    def said(self) -> str:
        """What it wrote to its standard error."""
        return self._said.read_text()

    @property
    def _said(self) -> Path:
        return self._config.with_name("stderr.txt")

    async def _import(self) -> asyncio.subprocess.Process:
        with self._said.open("ab") as said:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.chaos.victim", str(self._config),
                cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=said, stderr=said,
                env={"PATH": os.environ["PATH"]},
            )  # fmt: skip

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        try:
            writer.write(b"GET /v1/chat/completions HTTP/1.1\r\nhost: x\r\n\r\n")
            return b" 405 " in await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()


async def load(port: int, held: Held, stop: asyncio.Event, rng: random.Random) -> None:
    """Ask until told to stop; keep every whole answer."""
    client = Client(f"http://127.0.0.1:{port}")

    async def ask() -> None:
        while not stop.is_set():
            key = rng.choice(("clinic", "clinic", "games", "nobody"))
            heard = await client.ask(Question(key, stream=rng.random() < 0.5))
            # A stream that the kill cut short has its receipt all the same, but not its end.
            if heard.status == 200:
                held.answers.append(heard)
            elif heard.status == 0:
                return

    await asyncio.gather(*(ask() for _ in range(ASKING)))
    await client.close()


@asynccontextmanager
async def serving(
    folder: Path, free_port: Callable[[], int]
) -> AsyncIterator[tuple[Serving, SimulatedFleet, int]]:
    """A fleet, files, and a router that is not started yet."""
    async with SimulatedFleet(specs()) as fleet:
        port = free_port()
        main = write(folder, {one.name: one.url for one in fleet}, (port, free_port()))
        router = Serving(main, port)
        try:
            yield router, fleet, port
        finally:
            await router.close()


async def die(router: Serving, port: int, held: Held, rng: random.Random) -> None:
    """Start, work, be killed at a random point."""
    held.restarts.append(await router.start())
    stop = asyncio.Event()
    working = asyncio.create_task(load(port, held, stop, rng))
    await asyncio.sleep(rng.uniform(0.0, 0.35))
    assert await router.end(signal.SIGKILL) == -signal.SIGKILL, router.said
    stop.set()
    await asyncio.wait_for(working, 20)


def nothing_lost(log: Path, held: Held, since: int) -> None:
    """On the disk that the crash left: every head and every new answer's entry is there."""
    verdict = verify(log, against=held.heads)
    assert verdict.ok, verdict.all_findings
    head = Folder(log).log("eu-1").checkpoint
    held.heads.append(parse_checkpoint(head.read_text()))
    records = dict(heard.record for heard in held.answers[since:])
    reader = LogReader(Folder(log).log("eu-1"))
    assert {index: leaf_hash(reader.line(index)).hex() for index in records} == records


async def killed(folder: Path, free_port: Callable[[], int]) -> None:
    rng = random.Random(11)
    held = Held()
    log = folder / "log"
    async with serving(folder, free_port) as (router, fleet, port):
        for _ in range(KILLS):
            known = len(held.answers)
            await die(router, port, held, rng)
            nothing_lost(log, held, known)
        held.restarts.append(await router.start())
        assert await router.end(signal.SIGTERM) == 0, router.said
        found = list(evidence.reached(fleet, (), log))
    settled(log, held, found)
    tampered(folder, held, rng)


def settled(log: Path, held: Held, found: list[evidence.Reached]) -> None:
    """The stopped log: whole, every decision closed, every receipt and upstream call in it."""
    head = parse_checkpoint(Folder(log).log("eu-1").checkpoint.read_text())
    receipts = [Receipt("eu-1", *heard.record, head.text) for heard in held.answers]
    verdict = verify(log, against=[*held.heads, *receipts])
    assert verdict.ok, verdict.all_findings
    assert not any(one.tail or one.torn for one in verdict.logs)
    requests = evidence.traces(log)
    assert list(evidence.unsettled(requests)) == []
    assert list(evidence.unjustified(found, requests))[:5] == []
    recovered = [one for one in requests.values() if one.outcomes and _by_recovery(one)]
    assert {one.status for one in recovered} == {"unknown"}
    cut = [one for one in held.answers if requests[one.headers["x-request-id"]] in recovered]
    sys.stdout.write(
        f"\n{KILLS} kills: {len(held.answers)} answers, {len(requests)} requests, {len(recovered)} "
        f"settled by recovery ({len(cut)} of them answered), restart {max(held.restarts):.2f} s "
        "at most\n"
    )
    assert len(held.answers) > KILLS
    assert recovered


def _by_recovery(trace: evidence.Trace) -> bool:
    return trace.outcomes[0].body.get("by") == "recovery"


def added(log: Path, rng: random.Random) -> Fault:
    """A line of the right form that the log never wrote, somewhere in it."""
    segment = Folder(log).log("eu-1").segments()[-1]
    lines = segment.path.read_bytes().splitlines(keepends=True)
    at = rng.randrange(1, len(lines))
    made = lines[at - 1].replace(b'"n":"', b'"n":"A', 1)
    segment.path.write_bytes(b"".join([*lines[:at], made, *lines[at:]]))
    return Fault("added", segment.first + at)


def tampered(folder: Path, held: Held, rng: random.Random) -> None:
    """Any single change below a checkpoint held elsewhere is found, and its place named; one
    above it is reported as such."""
    head, seen = held.heads[-1], set()
    for _ in range(ROUNDS):
        copy = folder / "copy"
        shutil.copytree(folder / "log", copy)
        vandal = Vandal(rng, copy, copy)
        made = (vandal.flip, vandal.drop, vandal.swap, vandal.duplicate, partial(added, copy, rng))
        fault = rng.choice(made)()
        assert fault.first is not None
        verdict = verify(copy, against=[head])
        first = min((one.place.index for one in verdict.all_findings), default=head.size)
        if fault.first < head.size:
            seen.add(fault.name)
            assert not verdict.ok, fault
            assert first == fault.first, (fault, verdict.all_findings)
        else:
            assert first >= head.size, (fault, verdict.all_findings)
            assert any(one.tail or one.torn for one in verdict.logs), fault
        shutil.rmtree(copy)
    assert len(seen) >= 4


@pytest.mark.slow
@pytest.mark.chaos
def test_killed_again_and_again(tmp_path: Path, free_port: Callable[[], int]) -> None:
    uvloop.run(killed(tmp_path, free_port))
