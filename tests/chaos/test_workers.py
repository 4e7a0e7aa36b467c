"""One worker of two is killed under load, again and again: its log, its siblings, its successor."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from router.audit.layout import Folder
from router.audit.note import parse_checkpoint
from router.audit.receipt import Receipt
from router.audit.roster import read_roster
from router.audit.verify import verify
from tests.chaos import evidence
from tests.chaos.world import Heard, Question
from tests.router.supervisor.running import Running, running, until

KILLS = int(os.environ.get("DOMICILE_KILLS") or (10 if os.environ.get("CI") else 4))
ASKING = 12
LOGS = ("eu-1.w1", "eu-1.w2")


async def ask(one: Running, heard: list[Heard], stop: asyncio.Event, rng: random.Random) -> None:
    """Ask until told to stop; a client whose connection broke makes a new one."""
    client = one.clients(1)[0]
    while not stop.is_set():
        question = Question(rng.choice(("clinic", "games", "nobody")), stream=rng.random() < 0.5)
        found = await client.ask(question)
        heard.append(found)
        if found.status == 0:
            await client.close()
            client = one.clients(1)[0]
    await client.close()


async def kill(one: Running, heard: list[Heard], rng: random.Random) -> int:
    """Kill a worker; gives how many answers came while it was away."""
    await asyncio.sleep(rng.uniform(0.1, 0.4))
    number = rng.randrange(2)
    pid = (await one.pids())[number]
    os.kill(pid, signal.SIGKILL)
    since = len(heard)

    async def is_back() -> bool:
        worker = (await one.workers())[number]
        return worker["pid"] != pid and worker["state"] == "serving"

    await until(is_back)
    return sum(1 for found in heard[since:] if found.status == 200)


@pytest.mark.slow
@pytest.mark.chaos
async def test_a_killed_worker_takes_nothing_with_it(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    rng, heard, stop = random.Random(5), list[Heard](), asyncio.Event()
    async with running(tmp_path, free_port) as one:
        await one.ready()
        asking = [asyncio.create_task(ask(one, heard, stop, rng)) for _ in range(ASKING)]
        meanwhile = [await kill(one, heard, rng) for _ in range(KILLS)]
        assert (await one.status())["ready"]
        stop.set()
        await asyncio.wait_for(asyncio.gather(*asking), 60)
        assert await one.end() == 0, one.said
        found = list(evidence.reached(one.fleet, (), tmp_path / "log"))
    assert min(meanwhile) > 0, "the other one served on"
    whole(tmp_path / "log", heard, found)


def whole(log: Path, heard: list[Heard], found: list[evidence.Reached]) -> None:
    """Every answer's receipt holds, every decision is settled, every start has its end."""
    answers = [one for one in heard if one.status == 200]
    heads = [parse_checkpoint(Folder(log).log(n).checkpoint.read_text()) for n in LOGS]
    verdict = verify(log, against=[*heads, *(receipt(one) for one in answers)])
    assert verdict.ok, verdict.all_findings
    assert [one.log for one in verdict.logs] == list(LOGS)
    assert not any(one.tail or one.torn for one in verdict.logs)
    requests = evidence.traces(log, LOGS)
    assert list(evidence.unsettled(requests)) == []
    assert list(evidence.unjustified(found, requests))[:5] == []
    lines, torn = read_roster(Folder(log))
    assert torn == 0
    starts = sum(1 for line in lines if line.event == "start")
    assert starts == len(LOGS) + KILLS
    assert [line.event for line in lines[-2:]] == ["stop", "stop"]
    recovered = [one for one in requests.values() if one.outcomes[:1] and one.status == "unknown"]
    lost = [one for one in heard if one.status == 0]
    sys.stdout.write(
        f"\n{KILLS} kills of one in two: {len(answers)} answers, {len(lost)} connections cut, "
        f"{len(recovered)} requests settled by recovery\n"
    )
    assert recovered


def receipt(one: Heard) -> Receipt:
    """What a client holds of an answer."""
    log, index, leaf = one.headers["x-domicile-record"].split("/")
    head = b64decode(one.headers["x-domicile-head"]).decode()
    return Receipt(log, int(index), leaf, head)
