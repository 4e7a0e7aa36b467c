from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from router.simulator.bedrock import BedrockSpec
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.fleet import SimulatedFleet, run_fleet
from router.simulator.replica import Replica
from tests.router.simulator.chatting import SPEC


def client(replica: Replica) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=replica.url + "/v1", api_key="x", max_retries=0)


async def test_the_openai_client_gets_the_same_answer_plain_and_streamed(
    fleet: SimulatedFleet,
) -> None:
    async with client(fleet["fra1"]) as openai_client:
        messages: Any = [{"role": "user", "content": "tell me"}]
        plain = await openai_client.chat.completions.create(model="tiny", messages=messages)
        again = await openai_client.chat.completions.create(model="tiny", messages=messages)
        streamed, usage = "", None
        async for chunk in await openai_client.chat.completions.create(
            model="tiny", messages=messages, stream=True, stream_options={"include_usage": True}
        ):
            usage = chunk.usage or usage
            streamed += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    said = plain.choices[0].message.content
    assert said is not None
    assert said == again.choices[0].message.content == streamed
    assert plain.usage is not None
    assert usage is not None
    assert usage.completion_tokens == plain.usage.completion_tokens >= 8
    assert plain.choices[0].finish_reason == "stop"


async def test_several_replicas_of_a_region_and_unclear_names(fleet: SimulatedFleet) -> None:
    names = {"self:fra1/a": SPEC, "self:fra1/b": SPEC}
    async with SimulatedFleet(names) as other:
        assert [r.region for r in other.in_region("self:fra1")] == ["self:fra1", "self:fra1"]
        assert other["fra1/b"] is other["self:fra1/b"]
        assert len(other) == 2
    with pytest.raises(KeyError, match="no replica `nowhere`"):
        fleet["nowhere"]


async def test_run_fleet_announces_runs_and_stops() -> None:
    rows: list[list[dict[str, object]]] = []
    until = asyncio.Event()

    def announce(found: list[dict[str, object]], control: str, bedrock: str) -> None:
        assert bedrock == ""
        assert control.startswith("http://127.0.0.1:")
        rows.append(found)
        until.set()

    await run_fleet({"self:fra1": SPEC}, announce=announce, until=until)
    assert [row["name"] for row in rows[0]] == ["self:fra1"]


async def test_run_fleet_can_run_a_bedrock_stub_beside_it() -> None:
    urls: list[str] = []
    until = asyncio.Event()

    def announce(found: list[dict[str, object]], control: str, bedrock: str) -> None:
        assert found == []
        urls.extend((control, bedrock))
        until.set()

    spec = BedrockSpec(BedrockWorld())
    await run_fleet({}, bedrock=spec, announce=announce, until=until)
    assert all(url.startswith("http://127.0.0.1:") for url in urls)
    assert urls[0] != urls[1]
