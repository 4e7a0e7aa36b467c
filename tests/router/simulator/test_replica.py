from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast

import httpx
import pytest

from router.simulator.faults import Fault, Kind
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from tests.router.simulator.chatting import ask, chat, events


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
