from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import Replica, ReplicaSpec

SPEC = ReplicaSpec(models=("tiny", "alias"), speed=200.0)
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
}


@pytest.fixture
async def fleet() -> AsyncIterator[SimulatedFleet]:
    async with SimulatedFleet({"self:fra1": SPEC, "self:iad1": SPEC}, control=True) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
        yield client


def ask(text: str = "hello", **more: object) -> dict[str, object]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


async def chat(http: httpx.AsyncClient, replica: Replica, **more: object) -> httpx.Response:
    return await http.post(replica.url + "/v1/chat/completions", json=ask(**more))  # type: ignore[arg-type]


def events(text: str) -> list[dict[str, Any]]:
    blocks = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert blocks[-1] == "[DONE]"
    return [json.loads(block) for block in blocks[:-1]]


async def test_max_tokens_cuts_and_says_length(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    body = (await chat(http, fleet["fra1"], max_tokens=3)).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 3
    exact = (await chat(http, fleet["fra1"], max_tokens=70, ignore_eos=True)).json()
    assert exact["usage"]["completion_tokens"] == 70


async def test_tools_are_called_when_asked_for_in_streamed_fragments(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    silent = (await chat(http, fleet["fra1"], tools=[TOOL])).json()
    assert silent["choices"][0]["message"]["tool_calls"] == []
    body = (await chat(http, fleet["fra1"], text="please call get_weather", tools=[TOOL])).json()
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    arguments = json.loads(call["function"]["arguments"])
    assert isinstance(arguments["days"], int)
    stream = await chat(
        http, fleet["fra1"], text="please call get_weather", tools=[TOOL], stream=True
    )
    deltas = [event["choices"][0]["delta"] for event in events(stream.text)]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["id"] == call["id"]
    assert len(calls) > 2
    assert "".join(c["function"]["arguments"] for c in calls) == call["function"]["arguments"]
    forced = await chat(http, fleet["fra1"], tools=[TOOL], tool_choice="required")
    assert forced.json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_replicas_and_models_and_prompts_differ(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    bodies = [
        (await chat(http, fleet["fra1"])).json(),
        (await chat(http, fleet["iad1"])).json(),
        (await chat(http, fleet["fra1"], text="bye")).json(),
    ]
    assert len({body["choices"][0]["message"]["content"] for body in bodies}) == 3
    assert len({body["id"] for body in bodies}) == 3
