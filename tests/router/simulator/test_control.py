from __future__ import annotations

import httpx
import pytest

from router.simulator.bedrock import BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.fleet import SimulatedFleet
from tests.router.simulator.chatting import chat


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


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/fail?fra1", '{"kind": "flood"}', "a fault is a JSON object with a `kind` of hang, "),
        ("/fail?fra1", "[]", "a fault is a JSON object with a `kind` of hang, "),
        ("/fail?fra1", '{"kind": ["hang"]}', "a fault is a JSON object with a `kind` of hang, "),
        ("/fail?fra1", "", "the body is no JSON: "),
        ("/fail?fra1", '{"kind": "hang", "statuss": 1}', "a fault has no field `statuss`, only "),
        ("/fail?fra1", '{"kind": "status", "status": "5"}', "`status` of a fault must be a "),
        ("/nope?fra1", "", "no such control `nope`; there are fail, heal, kill, "),
        ("/nope/fra1", "", "no such control `POST /nope/fra1`; there are `GET /fleet`, "),
        ("/kill?x", "", "no replica `x`; there are self:fra1, self:iad1"),
    ],
)
async def test_what_can_not_be_done_is_said_with_what_can(
    fleet: SimulatedFleet, http: httpx.AsyncClient, path: str, body: str, said: str
) -> None:
    answer = await http.post(fleet.control_url + path, content=body, timeout=5)
    assert answer.status_code == 400
    assert str(answer.json()["error"]).startswith(said)


async def test_a_bedrock_stub_is_read_and_broken_from_there_too(http: httpx.AsyncClient) -> None:
    spec = BedrockSpec(BedrockWorld(), bearers=frozenset({"k"}))
    async with BedrockStub(spec) as stub, SimulatedFleet({}, control=True, bedrock=stub) as fleet:
        control = fleet.control_url + "/bedrock"
        fault = {"kind": "status", "status": 429}
        assert (await http.post(control + "/fail", json=fault)).json() == ["status"]
        headers = {"authorization": "Bearer k", "host": "bedrock-runtime.eu-west-1.amazonaws.com"}
        await http.post(stub.url + "/model/m/converse", json={}, headers=headers)
        (row,) = (await http.get(control + "/calls")).json()
        assert (row["region"], row["credential"], row["error"]) == (
            "eu-west-1", "bearer", "ThrottlingException",
        )  # fmt: skip
        assert "body" not in row
        assert (await http.get(control + "/trail")).json()[0]["errorCode"] == "ThrottlingException"
        assert (await http.post(control + "/heal")).json() == []
        assert (await http.post(control + "/nope")).status_code == 400
        assert (await http.post(fleet.control_url + "/kill?x")).status_code == 400
