from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError, EventStreamError

from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.faults import Fault, Kind
from tests.router.simulator.conversing import ARN, EU, SIX, SONNET, Aws, ask, do, stream

LITELLM = """
import asyncio, json, sys
import litellm
base, model = sys.argv[1], sys.argv[2]
keys = dict(aws_access_key_id=sys.argv[3], aws_secret_access_key=sys.argv[4],
            aws_region_name="eu-central-1", aws_bedrock_runtime_endpoint=base)
messages = [{"role": "user", "content": "hello"}]
out = []
for route in ("bedrock/converse/", "bedrock/invoke/"):
    answer = litellm.completion(route + model, messages=messages, max_tokens=20, **keys)
    chunks = litellm.completion(
        route + model, messages=messages, max_tokens=20, stream=True, **keys)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    out.append([answer.choices[0].message.content, said])
print(json.dumps(out))
"""


async def test_converse_and_its_stream_say_the_same_and_are_recorded(
    aws: Aws, stub: BedrockStub
) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    plain = await do(client.converse, **ask())
    events = await stream(client, **ask())
    said = plain["output"]["message"]["content"][0]["text"]
    deltas = [e["contentBlockDelta"]["delta"]["text"] for e in events if "contentBlockDelta" in e]
    assert "".join(deltas) == said
    assert len(deltas) == plain["usage"]["outputTokens"]
    assert next(iter(events[0])) == "messageStart"
    assert events[-2]["messageStop"]["stopReason"] == plain["stopReason"] == "end_turn"
    assert events[-1]["metadata"]["usage"] == plain["usage"]
    first, second = stub.calls
    assert (first.op, second.op, second.stream) == ("Converse", "ConverseStream", True)
    assert first.host == "bedrock-runtime.eu-central-1.amazonaws.com"
    assert (first.region, first.signed_region, first.signed_service) == (
        "eu-central-1", "eu-central-1", "bedrock",
    )  # fmt: skip
    assert (first.credential, first.key_id) == ("sigv4", TEST_KEY)
    assert (first.path, first.target, first.profile) == (f"/model/{EU}/converse", EU, EU)
    assert first.actual in SIX
    assert [call.outcome for call in stub.calls] == ["answered", "answered"]
    assert first.request_id == plain["ResponseMetadata"]["RequestId"]
    assert first.body == b""


@pytest.mark.parametrize(
    ("region", "model", "profile", "destinations"),
    [
        ("eu-central-1", SONNET + "-v1:0", "", ("eu-central-1",)),
        ("eu-central-1", f"arn:aws:bedrock:eu-central-1::foundation-model/{SONNET}-v1:0", "",
         ("eu-central-1",)),
        ("eu-west-2", EU, EU, (*SIX, "eu-west-2")),
        ("eu-west-1", f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{EU}", EU, SIX),
        ("eu-west-1", ARN, ARN, SIX),
        ("eu-central-1", f"global.{SONNET}", f"global.{SONNET}",
         ("us-east-1", "ap-northeast-1", "sa-east-1")),
    ],
)  # fmt: skip
async def test_every_id_form_verifies_and_resolves(
    aws: Aws,
    stub: BedrockStub,
    region: str,
    model: str,
    profile: str,
    destinations: tuple[str, ...],
) -> None:
    client = aws(stub, "bedrock-runtime", region)
    await do(client.converse, **ask(model=model))
    (call,) = stub.calls
    assert (call.target, call.profile) == (model, profile)
    assert call.actual in destinations
    assert ("%3A" in call.path) == (":" in model)


async def test_where_a_profile_runs_is_drawn_over_all_destinations_by_the_seed(aws: Aws) -> None:
    world = BedrockWorld.of({EU: {"eu-central-1": SIX}})
    seen: list[list[str]] = []
    for seed in (1, 1, 2):
        async with BedrockStub(BedrockSpec(world, speed=1e4, seed=seed)) as stub:
            client = aws(stub, "bedrock-runtime", "eu-central-1")
            for _ in range(30):
                await do(client.converse, **ask())
            seen.append([call.actual for call in stub.calls])
    assert seen[0] == seen[1] != seen[2]
    assert set(seen[0]) <= set(SIX)
    assert len(set(seen[0])) >= 5


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        (SONNET, "ValidationException", "with on-demand throughput isn’t supported"),
        ("us." + SONNET, "ValidationException", "model identifier is invalid"),
        (ARN, "ValidationException", "model identifier is invalid"),  # another region's
        ("nope", "ValidationException", "model identifier is invalid"),
    ],
)
async def test_what_does_not_go_together_is_refused_as_aws_does(
    aws: Aws, stub: BedrockStub, model: str, code: str, words: str
) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    with pytest.raises(ClientError, match=words) as caught:
        await do(client.converse, **ask(model=model))
    assert caught.value.response["Error"]["Code"] == code
    assert (stub.calls[0].status, stub.calls[0].error, stub.calls[0].actual) == (400, code, "")


async def test_a_wrong_signature_key_region_or_token_is_403(aws: Aws, stub: BedrockStub) -> None:
    with pytest.raises(ClientError) as caught:
        await do(aws(stub, "bedrock-runtime", "eu-central-1", "AKIDOTHER").converse, **ask())
    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"
    with pytest.raises(ClientError) as caught:
        await do(aws(stub, "bedrock-runtime", "eu-south-1").converse, **ask())
    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"
    async with httpx.AsyncClient(trust_env=False) as http:
        host = {"host": "bedrock-runtime.eu-central-1.amazonaws.com"}
        url = f"{stub.url}/model/{EU}/converse"
        bare = await http.post(url, json=ask(), headers=host)
        assert bare.status_code == 403
        assert bare.headers["x-amzn-errortype"].startswith("MissingAuthenticationToken")
        for token, status in (("bad", 403), ("good", 200)):
            headers = {**host, "authorization": f"Bearer {token}"}
            assert (await http.post(url, json=ask(), headers=headers)).status_code == status
    assert [(call.credential, call.signed_region) for call in stub.calls][-1] == ("bearer", "")
    assert all(call.actual == "" for call in stub.calls[:-1])


async def test_a_signature_for_another_region_than_the_host_is_refused(
    aws: Aws, stub: BedrockStub
) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")

    def elsewhere(request: Any, **_: object) -> None:
        request.headers["Host"] = "bedrock-runtime.us-east-1.amazonaws.com"

    client.meta.events.register_last("before-send.bedrock-runtime", elsewhere)
    with pytest.raises(ClientError) as caught:
        await do(client.converse, **ask())
    assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"
    assert (stub.calls[0].region, stub.calls[0].signed_region) == ("us-east-1", "eu-central-1")


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        (Fault(Kind.STATUS, status=429), "ThrottlingException", 429),
        (Fault(Kind.STATUS, error="ModelNotReadyException"), "ModelNotReadyException", 429),
        (Fault(Kind.STATUS, status=503), "ServiceUnavailableException", 503),
        (Fault(Kind.STATUS, status=403), "AccessDeniedException", 403),
        (Fault(Kind.STATUS, status=500), "InternalServerException", 500),
    ],
)
async def test_error_answers_to_plain_and_streaming_calls(
    aws: Aws, stub: BedrockStub, fault: Fault, code: str, status: int
) -> None:
    stub.fail(fault)
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    for call in (client.converse, client.converse_stream):
        with pytest.raises(ClientError) as caught:
            await do(call, **ask())
        assert caught.value.response["Error"]["Code"] == code
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ({"status": 429}, "throttlingException"),
        ({"error": "modelStreamErrorException", "status": 500}, "modelStreamErrorException"),
    ],
)
async def test_an_exception_in_the_stream_before_or_after_content(
    aws: Aws, stub: BedrockStub, fault: dict[str, Any], name: str, after: int
) -> None:
    stub.fail(Fault(Kind.ERROR_EVENT, after=after, **fault))
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    seen: list[dict[str, Any]] = []

    def read() -> None:
        with closing(client.converse_stream(**ask())["stream"]) as events:
            for event in events:
                seen.append(event)  # noqa: PERF402

    with pytest.raises(EventStreamError, match=name):
        await do(read)
    assert sum("contentBlockDelta" in event for event in seen) == after


async def test_faults_can_be_for_one_region_or_model(aws: Aws, stub: BedrockStub) -> None:
    stub.fail(Fault(Kind.RESET_HEAD, region="eu-west-2"))
    assert await do(aws(stub, "bedrock-runtime", "eu-central-1").converse, **ask())
    with pytest.raises(Exception, match=r"(?i)connection"):
        await do(aws(stub, "bedrock-runtime", "eu-west-2").converse, **ask())
    assert [call.outcome for call in stub.calls] == ["answered", "reset_head"]


async def test_unknown_operations_and_broken_bodies(stub: BedrockStub) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        headers = {
            "host": "bedrock-runtime.eu-central-1.amazonaws.com", "authorization": "Bearer good",
        }  # fmt: skip
        raw_arn = f"{stub.url}/model/{ARN}/converse"  # its slash makes one segment too many
        for url, body, status in (
            (raw_arn, b"{}", 404),
            (f"{stub.url}/model/{EU}/nonsense", b"{}", 404),
            (f"{stub.url}/model/{EU}/converse", b"{", 400),
            (f"{stub.url}/model/{EU}/converse", b"[]", 400),
        ):
            assert (await http.post(url, content=body, headers=headers)).status_code == status


async def test_the_trail_tells_where_calls_ran(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    await do(client.converse, **ask())
    await stream(client, **ask())
    await do(client.converse, **ask(model=SONNET + "-v1:0"))
    with pytest.raises(ClientError):
        await do(client.converse, **ask(model="nope"))
    records: list[Any] = list(stub.trail)
    plain, streamed, served, in_region, failed = records
    assert plain["additionalEventData"]["inferenceRegion"] == stub.calls[0].actual
    assert "additionalEventData" not in streamed
    assert (served["eventType"], "requestParameters" in served) == ("AwsServiceEvent", False)
    details = served["serviceEventDetails"]
    assert details["parentRequestId"] == streamed["requestID"] == stub.calls[1].request_id
    entries = details["AdditionalEventData"]["additionalEntries"]
    assert entries["inferenceRegion"] == stub.calls[1].actual
    assert "inferenceRegion" not in in_region["additionalEventData"]
    assert failed["errorCode"] == "ValidationException"
    assert {record["awsRegion"] for record in stub.trail} == {"eu-central-1"}


@pytest.mark.slow
async def test_litellm_reads_every_route(stub: BedrockStub, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", LITELLM, stub.url, SONNET + "-v1:0",
        TEST_KEY, TEST_SECRET.secret_key, cwd=tmp_path,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, errors.decode()[-2000:]
    for plain, streamed in json.loads(out.decode().splitlines()[-1]):
        assert plain == streamed != ""
    assert [call.op for call in stub.calls] == [
        "Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream",
    ]  # fmt: skip
    assert "%3A" in stub.calls[0].path
    assert "%3A" not in stub.calls[2].path  # the other form, and its signature verifies too
