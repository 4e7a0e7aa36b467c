from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anthropic
import httpx
import pytest

from router.simulator.faults import Fault, Kind
from router.simulator.fleet import SimulatedFleet
from router.simulator.record import credential_digest
from router.simulator.replica import Replica, ReplicaSpec

BODY = {"model": "m", "max_tokens": 60, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    spec = ReplicaSpec(models=("m",), speed=400.0, api_key="k")
    async with SimulatedFleet({"self:fra1": spec}) as fleet:
        yield fleet["fra1"]


async def post(replica: Replica, body: dict[str, object], key: str = "k") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        headers = {"x-api-key": key, "host": "api.example.com"}
        return await http.post(replica.url + "/v1/messages", json=body, headers=headers)


async def test_the_anthropic_client_gets_the_same_plain_and_streamed(replica: Replica) -> None:
    async with anthropic.AsyncAnthropic(base_url=replica.url, api_key="k", max_retries=0) as client:
        plain = await client.messages.create(**BODY)  # type: ignore[call-overload]
        async with client.messages.stream(**BODY) as stream:  # type: ignore[arg-type]
            said = "".join([text async for text in stream.text_stream])
            whole = await stream.get_final_message()
    assert plain.content[0].text == said == whole.content[0].text  # type: ignore[union-attr]
    assert whole.usage.output_tokens == plain.usage.output_tokens > 0
    assert [hit.path for hit in replica.seen] == ["/v1/messages"] * 2


async def test_host_and_credential_are_recorded(replica: Replica) -> None:
    assert (await post(replica, {**BODY})).status_code == 200
    assert replica.seen[0].host == "api.example.com"
    assert replica.seen[0].credential == credential_digest("k")


async def test_errors_are_in_the_shape_of_messages(replica: Replica) -> None:
    cases: list[tuple[dict[str, object], str, int, str]] = [
        ({**BODY}, "wrong", 401, "authentication_error"),
        ({**BODY, "model": "other"}, "k", 404, "not_found_error"),
        ({**BODY, "max_tokens": None}, "k", 400, "invalid_request_error"),
        ({**BODY, "messages": []}, "k", 400, "invalid_request_error"),
        ({**BODY, "tools": [{"name": "x"}]}, "k", 400, "invalid_request_error"),
        ({**BODY, "tool_choice": {"type": "tool", "name": "x"}}, "k", 400,
         "invalid_request_error"),
    ]  # fmt: skip
    for body, key, status, kind in cases:
        answer = await post(replica, body, key)
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    replica.fail(Fault(Kind.STATUS, status=529, times=1))
    overloaded = await post(replica, {**BODY})
    assert overloaded.json()["error"]["type"] == "overloaded_error"


async def test_an_error_event_has_its_name(replica: Replica) -> None:
    replica.fail(Fault(Kind.ERROR_EVENT, status=529, after=1))
    answer = await post(replica, {**BODY, "stream": True})
    last = answer.text.rstrip().split("\n\n")[-1].split("\n")
    assert last[0] == "event: error"
    assert json.loads(last[1][6:])["error"]["type"] == "overloaded_error"
    assert answer.text.count("text_delta") == 1
