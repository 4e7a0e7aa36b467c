from __future__ import annotations

import asyncio
from collections import Counter

import httpx
import pytest

from router.simulator.faults import Fault, Kind
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.storm import Gust, Storm, StormSpec

NAMES = ("self:fra1", "self:ams1", "self:iad1")
SPECS = {name: ReplicaSpec(speed=500.0) for name in NAMES}
BODY = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}


async def weather(seed: int, **more: object) -> tuple[list[Gust], Counter[str], int]:
    async with SimulatedFleet(SPECS) as fleet:
        spec = StormSpec(seed=seed, blackout=NAMES[:2], dark=0.2, disturbed=0.0, **more)  # type: ignore[arg-type]
        storm = Storm(fleet, spec)
        down: Counter[str] = Counter()
        dark = 0
        for _ in range(600):
            await storm.step()
            down.update(replica.name for replica in fleet if not replica.alive)
            dark += storm.dark
            if storm.dark:
                assert not any(fleet[name].alive for name in NAMES[:2])
        await storm.calm()
        assert all(replica.alive for replica in fleet)
        return storm.gusts, down, dark


async def test_the_same_seed_gives_the_same_gusts_in_the_asked_shares() -> None:
    gusts, down, dark = await weather(3)
    again, _, _ = await weather(3)
    other, _, _ = await weather(4)
    assert gusts == again
    assert gusts != other
    assert {gust.change for gust in gusts} == {"kill", "freeze", "up"}
    assert 0.08 < dark / 600 < 0.35
    assert 0.05 < down["self:iad1"] / 600 < 0.30
    assert down["self:fra1"] > down["self:iad1"] > 0


async def test_freezes_can_be_left_out() -> None:
    gusts, _, _ = await weather(5, freezes=False)
    assert {gust.change for gust in gusts} == {"kill", "up"}


async def test_the_asked_share_of_requests_is_disturbed() -> None:
    faults = (Fault(Kind.STATUS, status=429), Fault(Kind.STATUS, status=503), Fault(Kind.HTML))
    spec = StormSpec(seed=1, disturbed=0.4, faults=faults, down=0.0)
    async with SimulatedFleet(SPECS, seed=11) as fleet, httpx.AsyncClient(trust_env=False) as http:
        storm = Storm(fleet, spec)
        url = fleet["fra1"].url + "/v1/chat/completions"
        statuses = Counter([(await http.post(url, json=BODY)).status_code for _ in range(300)])
        await storm.calm()
        assert (await http.post(url, json=BODY)).status_code == 200
    assert 0.30 < 1 - statuses[200] / 300 < 0.50
    assert statuses[429] > 20


async def test_run_steps_on_a_clock_and_always_calms_down() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            raise asyncio.CancelledError

    async with SimulatedFleet(SPECS) as fleet:
        storm = Storm(fleet, StormSpec(seed=2, down=0.9, spell=2.0))
        with pytest.raises(asyncio.CancelledError):
            await storm.run(50, 0.25, sleep)
        assert slept == [0.25] * 5
        assert storm.gusts
        assert all(replica.alive and not replica.faults.armed for replica in fleet)
