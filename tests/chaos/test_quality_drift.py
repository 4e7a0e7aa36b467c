"""The small model gets worse while it serves: the alarm, the way back to large, and the log.

Real files, real sockets, a simulated fleet; nothing of the router is replaced. One request in
twenty is also asked of both tiers, as drawn from a seeded source. Both models say the same at
first, since they have one seed; then the small one says something else.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from router.app import Clocks, Router
from router.audit.verify import verify
from router.server import Serving
from router.settings.loading import load_snapshot, log_settings
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.tiers.outcome_store import OutcomeStore
from tests.cases.built import Files, entries, key_of, now
from tests.cases.graded import files
from tests.router.house import listening
from tests.router.shadow_texts import easy

pytestmark = pytest.mark.slow

CONSENT = "  eu: {grant: {process: EU, retain: EU}, shadow: 0.05}\n"
GRADING = "{strong_share: 0.05, accept_prior: true, explore: 0.05, tolerance: 0.05}"
SPEC = ReplicaSpec(seed=7, speed=50.0)
TOGETHER = 8


def over(fleet: SimulatedFleet) -> Files:
    """The files of a model with two tiers, over these replicas."""
    found = files(grading=GRADING, tenants=CONSENT)
    baseline = found.baseline
    for name in ("fra1", "par1", "iad1"):
        baseline = baseline.replace(f'"http://{name}"', f'"{fleet[name].url}"')
    return replace(found, baseline=baseline)


@asynccontextmanager
async def serving(folder: Path, fleet: SimulatedFleet) -> AsyncIterator[tuple[Router, str]]:
    """A router of these files on a socket, and its address."""
    loop = asyncio.get_running_loop()
    path = over(fleet).write(folder)
    start, began = now(), time.time()
    clocks = Clocks(lambda: start + time.time() - began, loop.time, random.Random(5).randbytes)
    snapshot = load_snapshot(path, over(fleet).environment, start)
    router = await Router.open(snapshot, log_settings(snapshot.config, folder), clocks)
    router.lane.restore(OutcomeStore(folder / "outcomes" / "eu-1.jsonl"))
    public = listening()
    served = Serving(router, public, listening())
    await served.start()
    try:
        yield router, f"http://127.0.0.1:{public.getsockname()[1]}"
    finally:
        await served.stop(drain=2)


async def ask(client: httpx.AsyncClient, text: str) -> str:
    """The tier that answered one request."""
    body = {
        "model": "two", "max_tokens": 6, "messages": [{"role": "user", "content": text}],
    }  # fmt: skip
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["model"] == "two"
    return response.headers["x-domicile-tier"]


async def several(client: httpx.AsyncClient, first: int, count: int) -> list[str]:
    """The tiers of so many requests, a few at a time."""
    tiers: list[str] = []
    for start in range(first, first + count, TOGETHER):
        texts = [easy(number) for number in range(start, start + TOGETHER)]
        tiers += await asyncio.gather(*(ask(client, text) for text in texts))
    return tiers


async def test_when_the_small_model_gets_worse_traffic_returns_to_large(tmp_path: Path) -> None:
    regions = ("self:fra1", "self:par1", "self:iad1")
    async with (
        SimulatedFleet(dict.fromkeys(regions, SPEC)) as fleet,
        serving(tmp_path, fleet) as (router, url),
        httpx.AsyncClient(
            base_url=url,
            timeout=20,
            trust_env=False,
            headers={"authorization": f"Bearer {key_of('eu')}"},
        ) as client,
    ):
        metrics = router.live.metrics

        def alarms() -> float:
            return metrics.value("domicile_quality_changes_total", ("two", "alarm"))

        good = await several(client, 0, 400)
        await router.lane.idle()
        assert good.count("small") > 300
        judged = metrics.value("domicile_shadow_total", ("two", "judged"))
        assert 5 <= judged <= 40
        assert alarms() == 0

        fleet["par1"].seed = 8  # what it says now is something else
        changed_at = router.live.stamp()
        asked = 0
        while not alarms() and asked < 2000:
            await several(client, 1000 + asked, 40)
            await router.lane.idle()
            asked += 40
        assert alarms(), "no alarm within 2,000 requests"

        after = await several(client, 5000, 40)
        assert set(after) == {"large"}
        returned = metrics.value("domicile_grade_total", ("two", "large", "returned"))
        assert returned > 30
        assert any("answered by the large tier" in one for one in router.live.degraded())
        # A canary of the router's own asks for one token; no request of the tenant does.
        assert all(hit.tokens == 1 for hit in fleet["iad1"].seen)
    found = [entry for entry in entries(tmp_path) if entry.kind == "drift"]
    [first, *_] = [one for one in found if one.body["event"] == "quality_alarm"]
    assert first.time / 1e6 >= changed_at
    assert (first.body["model"], first.body["why"]) == ("two", "quality")
    assert int(str(first.body["loss"])) > 0
    reasons = [
        one.body["graded"] for one in entries(tmp_path) if one.kind == "decision"
        if one.time > first.time and "graded" in one.body
    ]  # fmt: skip
    assert any(isinstance(one, dict) and one["reason"] == "returned" for one in reasons)
    assert verify(tmp_path / "log").ok
