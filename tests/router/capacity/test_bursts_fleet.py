"""Burst budgets end to end: real sockets, a simulated fleet, and two routers with one Redis."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import cast

import httpx
from redis.asyncio import Redis

from regions.model import Burst
from router.audit.verify import verify
from router.state.shared import Scripts
from router.state.shared_spending import SharedSpending
from tests.cases.built import built
from tests.router.budgeted import files
from tests.router.crowd import settle_for
from tests.router.house import KEYS, House, Plan, house
from tests.router.scripted import Reply, Scripted, answer

HOUR = 3600.0
PATH = "/v1/chat/completions"
BUDGET = 1500


async def ask(client: httpx.AsyncClient, tenant: str, stream: bool = False) -> httpx.Response:
    body = {"model": "assistant", "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 6, "stream": stream}  # fmt: skip
    return await client.post(PATH, headers={"authorization": f"Bearer {KEYS[tenant]}"}, json=body)


def client_of(found: House) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=30)
    return httpx.AsyncClient(base_url=found.url, timeout=30, trust_env=False, limits=limits)


async def test_what_is_too_much_spills_as_far_as_the_budget_goes_and_no_further(
    tmp_path: Path,
) -> None:
    plan = Plan(bursts={"self:par1": Burst(None, (BUDGET, HOUR), 50)})
    async with house(tmp_path, plan) as found, client_of(found) as client:
        settle_for(cast("Scripted", found), fra1={"capacity_requests": "2"})
        done = await asyncio.gather(*(ask(client, "eu", n % 3 == 0) for n in range(60)))
        places = Counter(one.headers.get("x-domicile-endpoint") for one in done)
        assert {one.status_code for one in done} == {200}  # who found no room there had one at home
        assert places["par1"] >= 5
        assert places["fra1"] >= 5
        # Each took a token a byte and its limit, and was corrected to what the engine told.
        told = [one.json()["usage"]["total_tokens"] for one in done
                if one.headers["x-domicile-endpoint"] == "par1"
                and one.headers["content-type"] == "application/json"]  # fmt: skip
        stands = found.router.live.bursts.stands(found.router.live.snapshot.policy.endpoints)
        (par,) = stands
        assert sum(told) <= par.spent <= BUDGET
        assert found.hits("self:par1") == places["par1"]
        assert found.hits("self:iad1") == 0
    assert verify(tmp_path / "log").ok


async def test_who_may_only_be_served_there_is_told_the_truth(tmp_path: Path) -> None:
    plan = Plan(region="self:iad1", bursts={"self:iad1": Burst(None, (400, HOUR), 50)})
    async with house(tmp_path, plan) as found, client_of(found) as client:
        used = 0
        while (one := await ask(client, "us")).status_code == 200:
            used += one.json()["usage"]["total_tokens"]
            assert used <= 400
        assert used > 200
        error = one.json()["error"]
        assert (one.status_code, error["code"]) == (503, "burst_spent")
        assert 3500 < int(one.headers["retry-after"]) <= 3660
        assert found.hits("self:fra1") == found.hits("self:par1") == 0
        async with httpx.AsyncClient(base_url=found.admin, trust_env=False) as admin:
            shown = (await admin.get("/status")).json()["bursts"]
            metrics = (await admin.get("/metrics")).text
        assert shown == [{"endpoint": "iad1", "of": "tokens", "limit": 400, "spent": used,
                          "seconds": 3600}]  # fmt: skip
        assert f'domicile_burst_spent{{endpoint="iad1",of="tokens"}} {used}.0' in metrics
        assert 'domicile_burst_refused_total{endpoint="iad1"} 1.0' in metrics


async def test_two_routers_share_one_budget(requires_redis: str, tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return answer()

    def shared(world: Scripted, name: str) -> None:
        scripts = cast("Scripts", redis)
        own = SharedSpending(scripts, time.monotonic, 0.5, name, timeout=5.0)
        world.router.live.bursts.spending = own

    redis: Redis = Redis.from_url(requires_redis)
    await redis.flushall()
    told = files(fra="tokens: 300/h, output: 40")
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    async with built(folders[0], script, told) as one, built(folders[1], script, told) as two:
        shared(one, "one")
        shared(two, "two")
        # A request takes up to 130 of the 300, and is told to have used 5.
        done = await asyncio.gather(*((one, two)[n % 2].ask() for n in range(12)))
        for number in range(60):
            done.append(await (one, two)[number % 2].ask())
        assert {each.status for each in done} == {200}
        places = Counter(each.sent["x-domicile-endpoint"] for each in done)
        assert 30 <= places["fra"] <= 60
        for live in (one.router.live, two.router.live):
            (stand,) = live.bursts.stands(live.snapshot.policy.endpoints)
            assert 5 * places["fra"] <= stand.spent <= 300
            await live.bursts.spending.close()
        held = await redis.hgetall("domicile:{burst:fra}:tokens:3600")
        assert sum(int(v) for k, v in held.items() if b":" in k) == 5 * places["fra"]
    await redis.aclose()
