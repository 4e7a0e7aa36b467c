"""The small model is worse while two workers serve: traffic of both returns to large.

Real processes and sockets, a simulated fleet. One request in twenty is also asked of both tiers,
by the worker that it met. Nothing is kept on disk, so that a worker that is started again can
only know of the alarm from its sibling.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from tests.cases.built import MAIN, Files, key_of
from tests.router.shadow_texts import easy
from tests.router.supervisor.running import Running, started, until

pytestmark = [pytest.mark.slow, pytest.mark.chaos]
BASELINE = """\
version: 1
regions:
  self:fra1: {{country: DE}}
  self:par1: {{country: FR}}
tenants:
  eu: {{grant: {{process: EU, retain: EU}}, shadow: 0.05}}
models:
  two:
    grade: "on"
    grading: {{strong_share: 0.05, accept_prior: true, explore: 0.05, tolerance: 0.05}}
    tiers: {{small: [par], large: [fra]}}
endpoints:
  fra: {{kind: vllm, region: self:fra1, url: "{fra1}", model: tiny, operate: [DE], retain: nothing}}
  par: {{kind: vllm, region: self:par1, url: "{par1}", model: tiny, operate: [FR], retain: nothing}}
"""
SPEC = ReplicaSpec(seed=7, speed=50.0)
TOGETHER = 8


@asynccontextmanager
async def serving(folder: Path, free_port: Callable[[], int]) -> AsyncIterator[Running]:
    """Two workers over a fleet whose small model says something else than the large one."""
    regions = ("self:fra1", "self:par1")
    async with (
        SimulatedFleet(dict.fromkeys(regions, SPEC)) as fleet,
        httpx.AsyncClient(trust_env=False, timeout=30) as http,
    ):
        fleet["par1"].seed = 8
        port, admin = free_port(), free_port()
        at = f"id: eu-1\n  listen: 127.0.0.1:{port}\n  admin: 127.0.0.1:{admin}\n"
        baseline = BASELINE.format(fra1=fleet["fra1"].url, par1=fleet["par1"].url)
        Files(MAIN.replace("id: eu-1\n", at), baseline, "version: 1\nrules: []\n").write(folder)
        one = await started(folder, 2)
        running = Running(
            one, folder, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}", fleet, http
        )
        try:
            await running.ready()
            yield running
        finally:
            if one.returncode is None:
                one.terminate()
                await one.wait()


async def tiers(one: Running, first: int) -> list[str]:
    """The tiers of some requests, each over a connection of its own: both workers get some."""

    async def ask(number: int) -> str:
        messages = [{"role": "user", "content": easy(number)}]
        body = {"model": "two", "max_tokens": 6, "messages": messages}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            response = await client.post(
                f"{one.url}/v1/chat/completions",
                json=body,
                headers={"authorization": f"Bearer {key_of('eu')}"},
            )
        assert response.status_code == 200, response.text
        return response.headers["x-domicile-tier"]

    return await asyncio.gather(*(ask(number) for number in range(first, first + TOGETHER)))


async def returned(one: Running) -> list[bool]:
    """Of each worker, whether the tenant is answered by large."""
    found = []
    for worker in await one.workers():
        status = worker["status"]
        groups = status["grading"] if isinstance(status, dict) else []
        found.append(any(g["group"] == "tenant=eu" and g["returned"] for g in groups))
    return found


async def test_an_alarm_of_one_worker_is_all_workers_(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    async with serving(tmp_path, free_port) as one:
        asked = 0
        while not any(await returned(one)):
            await tiers(one, asked)
            asked += TOGETHER
            assert asked < 4000, "no alarm"

        async def both() -> bool:
            return await returned(one) == [True, True]

        await until(both)
        for number in range(4):
            assert set(await tiers(one, 10_000 + number * TOGETHER)) == {"large"}

        first, _ = await one.pids()
        os.kill(first, signal.SIGKILL)

        async def another() -> bool:
            return (await one.pids())[0] not in (0, first)

        await until(another)
        await one.serving()
        await until(both)
        for number in range(4):
            assert set(await tiers(one, 20_000 + number * TOGETHER)) == {"large"}
