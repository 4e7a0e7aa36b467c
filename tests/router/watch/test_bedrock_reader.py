"""What is asked of Bedrock's control plane, held against botocore's model and the stub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from botocore.session import Session

from router.providers.base import AwsKeys, Bearer, Misconfigured
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld, Guardrail, Profile
from router.transport.client import HttpTransport
from router.watch.bedrock_reader import (
    OPERATIONS,
    Access,
    BedrockReader,
    NotRead,
    NotThere,
    control_url,
)
from tests.router.folders import AT
from tests.router.scripted import JSON, Reply, ScriptedTransport, refused

KEYS = AwsKeys(TEST_KEY, TEST_SECRET.secret_key)
APP = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123"
WORLD = BedrockWorld.of(
    {f"eu.vendor.m{n}": {"eu-central-1": ("eu-central-1", "eu-west-1")} for n in range(205)}
    | {"global.vendor.m": {"eu-central-1": ("us-east-1",)}},
    more=[Profile("abc123", "eu-central-1", "vendor.m", ("eu-west-3",), arn=APP)],
    guardrails=[Guardrail("gr1", "eu-central-1", "2", (), "eu.guardrail.v1:0"),
                Guardrail("gr2", "eu-central-1", "1")],
)  # fmt: skip


@pytest.fixture
async def stub() -> AsyncIterator[BedrockStub]:
    async with BedrockStub(BedrockSpec(WORLD), wall=lambda: AT) as running:
        yield running


@pytest.fixture
async def reader() -> AsyncIterator[BedrockReader]:
    transport = HttpTransport()
    yield BedrockReader(transport, lambda: AT, asyncio.get_running_loop().time)
    await transport.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_paths_are_those_of_the_service_model(operation: str) -> None:
    model = Session().get_service_model("bedrock").operation_model(operation)
    assert model.http["method"] == "GET"
    assert model.http["requestUri"] == OPERATIONS[operation]


def test_names_in_queries_and_answers_are_those_of_the_service_model() -> None:
    service = Session().get_service_model("bedrock")
    asked = service.operation_model("ListInferenceProfiles").input_shape.members
    names = {asked[name].serialization.get("name") for name in ("maxResults", "nextToken")}
    assert names == {"maxResults", "nextToken"}
    assert asked["typeEquals"].serialization["name"] == "type"
    assert "SYSTEM_DEFINED" in asked["typeEquals"].enum
    version = service.operation_model("GetGuardrail").input_shape.members["guardrailVersion"]
    assert version.serialization["name"] == "guardrailVersion"
    for operation, member in (
        ("ListInferenceProfiles", "inferenceProfileSummaries"),
        ("GetInferenceProfile", "models"),
        ("ListFoundationModels", "modelSummaries"),
        ("GetPromptRouter", "fallbackModel"),
        ("GetGuardrail", "crossRegionDetails"),
        ("GetAccountDataRetention", "mode"),
    ):
        assert member in service.operation_model(operation).output_shape.members


async def test_all_pages_are_read(stub: BedrockStub, reader: BedrockReader) -> None:
    found = await reader.profiles("eu-central-1", Access(KEYS, stub.url))
    assert len(found) == 206
    assert found["eu.vendor.m7"] == (
        "arn:aws:bedrock:eu-central-1::foundation-model/vendor.m7",
        "arn:aws:bedrock:eu-west-1::foundation-model/vendor.m7",
    )
    assert "arn:aws:bedrock:::foundation-model/vendor.m" in found["global.vendor.m"]
    assert [call.op for call in stub.calls] == ["ListInferenceProfiles"] * 3
    assert {call.signed_service for call in stub.calls} == {"bedrock"}


async def test_one_of_each(stub: BedrockStub, reader: BedrockReader) -> None:
    access = Access(KEYS, stub.url)
    stub.retention["eu-central-1"] = "none"
    assert await reader.profile("eu-central-1", access, APP) == (
        "arn:aws:bedrock:eu-west-3::foundation-model/vendor.m",
    )
    assert await reader.guardrail("eu-central-1", access, "gr1:2") == "eu.guardrail.v1:0"
    assert await reader.guardrail("eu-central-1", access, "gr2:1") == "none"
    assert await reader.retention("eu-central-1", access) == "none"
    assert await reader.retention("eu-west-1", access) == "default"


async def test_refusals_are_told_by_aws_s_own_type(
    stub: BedrockStub, reader: BedrockReader
) -> None:
    with pytest.raises(NotThere, match="GetInferenceProfile in eu-west-1: 404 ResourceNotFound"):
        await reader.profile("eu-west-1", Access(KEYS, stub.url), "eu.vendor.m1")
    wrong = Access(AwsKeys(TEST_KEY, "wrong"), stub.url)
    with pytest.raises(NotRead, match="403 InvalidSignatureException"):
        await reader.retention("eu-west-1", wrong)
    with pytest.raises(NotRead, match="403 AccessDenied"):
        await reader.retention("eu-west-1", Access(Bearer("bad"), stub.url))


async def test_a_prompt_router_s_fallback_counts() -> None:
    arns = [f"arn:aws:bedrock:eu-west-1::foundation-model/vendor.m{n}" for n in range(2)]
    body = {"models": [{"modelArn": arns[0]}], "fallbackModel": {"modelArn": arns[1]}}
    reply = Reply(200, JSON, [json.dumps(body).encode()])
    transport = ScriptedTransport(lambda host, number: reply)
    found = await asked(transport).router("eu-west-1", Access(KEYS), "arn:a/b")
    assert found == tuple(arns)
    [sent] = transport.sent
    assert sent.origin.host == "bedrock.eu-west-1.amazonaws.com"
    assert sent.target == "/prompt-routers/arn%3Aa%2Fb"


def asked(transport: ScriptedTransport) -> BedrockReader:
    return BedrockReader(transport, lambda: AT, asyncio.get_running_loop().time)


@pytest.mark.parametrize("body", [b"{", b"[]", b"null"])
async def test_an_answer_that_is_none(body: bytes) -> None:
    reader = asked(ScriptedTransport(lambda host, number: Reply(200, JSON, [body])))
    with pytest.raises(NotRead, match="no JSON object"):
        await reader.retention("eu-west-1", Access(KEYS))


async def test_nobody_there() -> None:
    reader = asked(ScriptedTransport(lambda host, number: refused()))
    with pytest.raises(NotRead, match="GetAccountDataRetention in eu-west-1: connect_failed"):
        await reader.retention("eu-west-1", Access(KEYS))


async def test_a_list_without_end_is_given_up() -> None:
    page = json.dumps({"inferenceProfileSummaries": [], "nextToken": "x"}).encode()
    reader = asked(ScriptedTransport(lambda host, number: Reply(200, JSON, [page])))
    with pytest.raises(NotRead, match="more than 100 pages"):
        await reader.profiles("eu-west-1", Access(KEYS))


async def test_another_host_is_never_asked() -> None:
    reader = asked(ScriptedTransport(lambda host, number: refused()))
    with pytest.raises(Misconfigured):
        await reader.retention("eu-west-1", Access(KEYS, "https://bedrock.us-east-1.amazonaws.com"))


def test_only_a_loopback_url_stands_for_the_control_plane() -> None:
    assert control_url(("http://127.0.0.1:9",)) == "http://127.0.0.1:9"
    assert control_url(("https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com",)) == ""
    assert control_url(()) == ""
