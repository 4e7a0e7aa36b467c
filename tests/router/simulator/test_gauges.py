from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import Replica, ReplicaSpec
from router.simulator.timing import EngineSpec


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
        yield client


def ask(text: str = "hello", **more: object) -> dict[str, object]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


async def chat(http: httpx.AsyncClient, replica: Replica, **more: object) -> httpx.Response:
    return await http.post(replica.url + "/v1/chat/completions", json=ask(**more))  # type: ignore[arg-type]


async def test_queueing_shows_in_the_gauges(http: httpx.AsyncClient) -> None:
    spec = ReplicaSpec(engine=EngineSpec(max_num_seqs=2), speed=4.0)
    async with SimulatedFleet({"a": spec}) as fleet:
        calls = [
            asyncio.create_task(chat(http, fleet["a"], text=str(n), max_tokens=40, ignore_eos=True))
            for n in range(6)
        ]
        await asyncio.sleep(0.1)
        page = (await http.get(fleet["a"].url + "/metrics")).text
        assert 'vllm:num_requests_running{engine="0",model_name="tiny"} 2.0' in page
        assert 'vllm:num_requests_waiting{engine="0",model_name="tiny"} 4.0' in page
        await asyncio.gather(*calls)
        page = (await http.get(fleet["a"].url + "/metrics")).text
    assert (
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 6.0'
        in page
    )
    assert 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 240.0' in page
    assert 'vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 6.0' in page
