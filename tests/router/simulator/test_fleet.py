from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import openai
import pytest

from router.simulator.faults import Fault, Kind
from router.simulator.fleet import SimulatedFleet, run_fleet
from router.simulator.replica import Replica, ReplicaSpec
from router.simulator.timing import EngineSpec

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


async def test_completions_models_version_load_health_tokenize(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    url = fleet["fra1"].url
    body = {"model": "alias", "prompt": "once", "max_tokens": 4}
    plain = (await http.post(url + "/v1/completions", json=body)).json()
    streamed = await http.post(url + "/v1/completions", json={**body, "stream": True})
    assert plain["object"] == "text_completion"
    pieces = "".join(event["choices"][0]["text"] for event in events(streamed.text))
    assert pieces == plain["choices"][0]["text"]
    models = (await http.get(url + "/v1/models")).json()
    assert [model["id"] for model in models["data"]] == ["tiny", "alias"]
    assert (await http.get(url + "/version")).json() == {"version": "0.32.0"}
    assert (await http.get(url + "/load")).json() == {"server_load": 0}
    assert (await http.get(url + "/health")).status_code == 200
    tokens = (await http.post(url + "/tokenize", json={"model": "tiny", "prompt": "a b"})).json()
    assert tokens["count"] == len(tokens["tokens"]) == 2
    assert fleet["fra1"].polled["/health"] == 1


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 400, "BadRequestError"),
        (b"[]", 400, "BadRequestError"),
        (b'{"model": "nope", "messages": []}', 404, "NotFoundError"),
        (b'{"model": "tiny", "messages": []}', 400, "BadRequestError"),
        (b'{"model": "tiny", "messages": [{}]}', 400, "BadRequestError"),
        (json.dumps(ask(max_tokens=0)).encode(), 400, "BadRequestError"),
        (json.dumps(ask(max_tokens=-1)).encode(), 400, "BadRequestError"),
        (json.dumps(ask(max_tokens=10**6)).encode(), 400, "BadRequestError"),
        (json.dumps(ask(n=2)).encode(), 400, "BadRequestError"),
    ],
)
async def test_bad_calls_are_refused_in_vllms_shape(
    fleet: SimulatedFleet, http: httpx.AsyncClient, body: bytes, status: int, kind: str
) -> None:
    answer = await http.post(fleet["fra1"].url + "/v1/chat/completions", content=body)
    assert answer.status_code == status
    assert answer.json().get("error", {}).get("type", "") == kind
    assert fleet["fra1"].seen[-1].outcome == f"status:{status}"


async def test_a_key_can_be_required(http: httpx.AsyncClient) -> None:
    async with SimulatedFleet({"a": ReplicaSpec(api_key="k", speed=100.0)}) as fleet:
        assert (await chat(http, fleet["a"])).status_code == 401
        headers = {"authorization": "Bearer k"}
        url = fleet["a"].url + "/v1/chat/completions"
        assert (await http.post(url, json=ask(), headers=headers)).status_code == 200


async def test_hits_are_recorded_without_the_prompt(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    before = (time.monotonic(), time.time())
    url = fleet["fra1"].url + "/v1/chat/completions"
    answer = await http.post(url, json=ask("secret"), headers={"x-request-id": "r-1"})
    assert answer.headers["x-request-id"] == "r-1"
    (hit,) = fleet.seen
    assert (hit.request_id, hit.model, hit.region, hit.outcome, hit.status) == (
        "r-1", "tiny", "self:fra1", "answered", 200,
    )  # fmt: skip
    assert before[0] <= hit.at <= cast("float", hit.ended)
    assert before[1] - 0.05 <= hit.wall <= time.time()
    assert hit.tokens >= 8
    assert "secret" not in repr([hit.body, hit.headers, hit.row()])
    assert fleet["iad1"].seen == []


async def test_keep_bodies_keeps_them(http: httpx.AsyncClient) -> None:
    async with SimulatedFleet({"a": ReplicaSpec(keep_bodies=True, speed=100.0)}) as fleet:
        await chat(http, fleet["a"], text="secret")
        assert b"secret" in fleet["a"].seen[0].body
        assert ("content-type", "application/json") in fleet["a"].seen[0].headers


async def test_several_replicas_of_a_region_and_unclear_names(fleet: SimulatedFleet) -> None:
    names = {"self:fra1/a": SPEC, "self:fra1/b": SPEC}
    async with SimulatedFleet(names) as other:
        assert [r.region for r in other.in_region("self:fra1")] == ["self:fra1", "self:fra1"]
        assert other["fra1/b"] is other["self:fra1/b"]
        assert len(other) == 2
    with pytest.raises(KeyError, match="no replica `nowhere`"):
        fleet["nowhere"]


async def test_a_killed_replica_refuses_and_comes_back(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    replica = fleet["fra1"]
    slow = asyncio.create_task(chat(http, replica, max_tokens=20_000, ignore_eos=True))
    await asyncio.sleep(0.1)
    replica.kill()
    with pytest.raises(httpx.ReadError):
        await slow
    await asyncio.sleep(0)
    assert replica.seen[0].outcome == "killed"
    assert not replica.alive
    with pytest.raises(httpx.ConnectError):
        await chat(http, replica)
    await replica.heal()
    assert (await chat(http, replica)).status_code == 200


async def test_a_frozen_replica_looks_healthy_hangs_and_goes_on_when_thawed(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    replica = fleet["fra1"]
    replica.freeze()
    hanging = asyncio.create_task(chat(http, replica))
    await asyncio.sleep(0.15)
    assert not hanging.done()
    assert (await http.get(replica.url + "/health")).status_code == 200
    metrics = (await http.get(replica.url + "/metrics")).text
    assert 'vllm:num_requests_running{engine="0",model_name="tiny"} 0.0' in metrics  # stale
    replica.thaw()
    assert (await hanging).status_code == 200


async def test_a_client_that_leaves_frees_the_engine(fleet: SimulatedFleet) -> None:
    replica = fleet["fra1"]
    for stream in (True, False):
        replica.fail(Fault(Kind.SLOW_START, seconds=5, times=1))
        async with httpx.AsyncClient(timeout=0.1, trust_env=False) as impatient:
            more: dict[str, Any] = {"max_tokens": 20_000, "ignore_eos": True, "stream": stream}
            with pytest.raises(httpx.ReadTimeout):
                await chat(impatient, replica, **more)
        await asyncio.sleep(0.02)
        assert replica.seen[-1].outcome == "gone"
    assert (replica._engine.load.running, replica._engine.load.waiting) == (0, 0)


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


async def test_the_control_port_breaks_and_heals(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    control = fleet.control_url
    fault = {"kind": "status", "status": 429, "retry_after": "2"}
    assert (await http.post(control + "/fail?fra1", json=fault)).status_code == 200
    limited = await chat(http, fleet["fra1"])
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2")
    assert (await http.post(control + "/heal?fra1")).json()[0]["faults"] == []
    assert (await chat(http, fleet["fra1"])).status_code == 200
    assert (await http.post(control + "/kill?iad1")).json()[1]["alive"] is False
    assert (await http.post(control + "/freeze?fra1")).json()[0]["alive"] is False
    assert (await http.post(control + "/thaw?fra1")).json()[0]["alive"] is True
    seen = (await http.get(control + "/seen")).json()
    assert [row["outcome"] for row in seen] == ["status:429", "answered"]
    for path, body in (("/fail?fra1", {"kind": "flood"}), ("/nope?fra1", {}), ("/kill?x", {})):
        assert (await http.post(control + path, json=body)).status_code == 400


async def test_run_fleet_announces_runs_and_stops() -> None:
    rows: list[list[dict[str, object]]] = []
    until = asyncio.Event()

    def announce(found: list[dict[str, object]], control: str) -> None:
        assert control.startswith("http://127.0.0.1:")
        rows.append(found)
        until.set()

    await run_fleet({"self:fra1": SPEC}, announce=announce, until=until)
    assert [row["name"] for row in rows[0]] == ["self:fra1"]
