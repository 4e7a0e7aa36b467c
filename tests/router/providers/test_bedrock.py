"""Bedrock's provider: where a call goes, what it holds, and that only the endpoint says so."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import botocore.auth
import orjson
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import (
    Ask,
    AwsKeys,
    Bearer,
    Failure,
    Kind,
    Misconfigured,
    Provider,
    Target,
)
from router.providers.bedrock import Bedrock, converse_model
from router.providers.converse_answer import EventAnswer, WholeAnswer
from router.transport.messages import OutboundRequest, Tls

NOW = 1_795_000_000.0
ARN = "arn:aws:bedrock:eu-central-1:123456789012"
FORMS = {
    "anthropic.claude-3-5-sonnet-20240620-v1:0": "anthropic.claude-3-5-sonnet-20240620-v1%3A0",
    "eu.anthropic.claude-sonnet-4-6": "eu.anthropic.claude-sonnet-4-6",
    "global.anthropic.claude-sonnet-4-6": "global.anthropic.claude-sonnet-4-6",
    f"{ARN}:application-inference-profile/a1b2": f"{ARN}:application-inference-profile/a1b2"
    .replace(":", "%3A").replace("/", "%2F"),
    f"{ARN}:prompt-router/abc": f"{ARN}:prompt-router/abc".replace(":", "%3A").replace("/", "%2F"),
    f"{ARN}:provisioned-model/abc": f"{ARN}:provisioned-model/abc"
    .replace(":", "%3A").replace("/", "%2F"),
}  # fmt: skip
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
RICH: Mapping[str, Any] = {
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": PNG}},
        ]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function",
             "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'}},
            {"id": "c2", "type": "function",
             "function": {"name": "get_weather", "arguments": '{"city":"Bonn"}'}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "sun"},
        {"role": "tool", "tool_call_id": "c2", "content": "rain"},
    ],
    "tools": [TOOL],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_tokens": 100,
    "temperature": 0.5,
    "stop": ["END"],
}  # fmt: skip

Make = Callable[..., Endpoint]
MakeAsk = Callable[..., Ask]


def names(request: OutboundRequest) -> dict[str, str]:
    return {k.decode(): v.decode() for k, v in request.headers}


def expected_signature(request: OutboundRequest, keys: AwsKeys, region: str) -> str:
    """The signature computed anew from what goes over the wire, as a server would."""
    headers = names(request)
    given = headers.pop("authorization")
    signed = given.split("SignedHeaders=")[1].split(",")[0].split(";")
    bare = AWSRequest(
        method=request.method,
        url=f"{request.origin}{request.target}",
        data=request.body,
        headers={n: headers[n] for n in signed if n != "host"},
    )
    bare.context["timestamp"] = headers["x-amz-date"]
    credentials = Credentials(keys.access_key, keys.secret_key, keys.session_token)
    auth = botocore.auth.SigV4Auth(credentials, "bedrock", region)
    text = auth.string_to_sign(bare, auth.canonical_request(bare))
    scope = f"{keys.access_key}/{headers['x-amz-date'][:8]}/{region}/bedrock/aws4_request"
    signature = auth.signature(text, bare)
    return (
        f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={';'.join(signed)}, "
        f"Signature={signature}"
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "encoded"), FORMS.items())
def test_each_form_of_id(
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    keys: AwsKeys,
    model: str,
    encoded: str,
    stream: bool,
) -> None:
    request = bedrock.encode(ask(stream=stream), endpoint(model), Target(credential=keys), NOW)
    assert request.origin.host == "bedrock-runtime.eu-central-1.amazonaws.com"
    assert (request.origin.scheme, request.origin.port) == ("https", 443)
    operation = "converse-stream" if stream else "converse"
    assert request.target == f"/model/{encoded}/{operation}"
    assert names(request)["authorization"] == expected_signature(request, keys, "eu-central-1")
    assert names(request)["x-amz-security-token"] == keys.session_token
    assert not request.replay_safe


def test_the_hash_of_the_body_is_signed(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    one = bedrock.encode(ask(), endpoint(), Target(credential=keys), NOW)
    two = bedrock.encode(ask(max_tokens=3), endpoint(), Target(credential=keys), NOW)
    assert names(one)["authorization"] != names(two)["authorization"]


@pytest.mark.usefixtures("hostile_environment")
@pytest.mark.parametrize("model", list(FORMS))
def test_the_environment_has_no_say(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys, model: str
) -> None:
    fresh = Bedrock().encode(ask(), endpoint(model), Target(credential=keys), NOW)
    assert fresh.origin.host == "bedrock-runtime.eu-central-1.amazonaws.com"
    assert "/eu-central-1/bedrock/aws4_request" in names(fresh)["authorization"]
    assert "AKIDEXAMPLE" in names(fresh)["authorization"]
    assert "evil" not in repr(names(fresh)) + fresh.body.decode() + fresh.target
    with pytest.raises(Misconfigured, match="credential"):
        bedrock.encode(ask(), endpoint(model), Target(), NOW)
    with pytest.raises(RequestError, match="seed"):
        bedrock.encode(ask(seed=1), endpoint(model), Target(credential=keys), NOW)


def test_a_bearer_key(bedrock: Provider, endpoint: Make, ask: MakeAsk) -> None:
    request = bedrock.encode(ask(), endpoint(), Target(credential=Bearer("bedrock-key")), NOW)
    assert names(request)["authorization"] == "Bearer bedrock-key"


def test_only_our_headers(bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys) -> None:
    request = bedrock.encode(ask(stream=True), endpoint(), Target(credential=keys), NOW)
    assert set(names(request)) == {
        "content-type", "accept", "accept-encoding", "x-amz-date", "x-amz-security-token",
        "authorization",
    }  # fmt: skip
    assert names(request)["accept"] == "application/vnd.amazon.eventstream"


@pytest.mark.parametrize(
    ("model", "source", "host"),
    [
        ("eusc.amazon.nova-lite-v1:0", "eusc-de-east-1", "eusc-de-east-1.amazonaws.eu"),
        ("us-gov.anthropic.claude-3-haiku", "aws:us-gov-west-1", "us-gov-west-1.amazonaws.com"),
    ],
)
def test_other_partitions(
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    keys: AwsKeys,
    model: str,
    source: str,
    host: str,
) -> None:
    request = bedrock.encode(ask(), endpoint(model, source=source), Target(credential=keys), NOW)
    assert request.origin.host == f"bedrock-runtime.{host}"


def test_own_urls_and_tls(bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys) -> None:
    tls = Tls(name="bedrock.internal")
    there = Target("http://127.0.0.1:8123", keys, tls)
    request = bedrock.encode(ask(), endpoint(), there, NOW)
    assert (str(request.origin), request.origin.tls) == ("http://127.0.0.1:8123", tls)
    assert names(request)["authorization"] == expected_signature(request, keys, "eu-central-1")
    with pytest.raises(Misconfigured):
        bedrock.encode(
            ask(), endpoint(), Target("https://bedrock-runtime.us-east-1.amazonaws.com", keys), NOW
        )


@pytest.mark.parametrize(
    "settings",
    [
        {"model": f"{ARN}:inference-profile/x".replace("eu-central-1", "us-east-1")},
        {"model": "arn:aws:bedrock:::foundation-model/anthropic.claude"},
        {"model": "no/such id"},
        {"model": "claude"},
        {"source": None},
        {"source": "frankfurt"},
        {"urls": ("https://evil.example",)},
        {"settings": {"guardrail": "gr1"}},
        {"settings": {"guardrail": "gr1:latest"}},
        {"settings": {"guardrail": "arn:aws:bedrock:us-east-1:123456789012:guardrail/g:1"}},
    ],
)  # fmt: skip
def test_an_endpoint_that_can_not_work(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys, settings: dict[str, Any]
) -> None:
    broken = endpoint(**settings)
    with pytest.raises(Misconfigured):
        bedrock.check(broken)
    with pytest.raises(Misconfigured):
        bedrock.encode(ask(), broken, Target(credential=keys), NOW)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", [{}, RICH], ids=["plain", "rich"])
def test_the_body_is_one_that_botocore_accepts(
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    keys: AwsKeys,
    body: dict[str, Any],
    stream: bool,
) -> None:
    there = endpoint(settings={"guardrail": "gr1:1"})
    asked = ask(stream=stream, **body)
    before = orjson.dumps(asked.body)
    request = bedrock.encode(asked, there, Target(credential=keys), NOW)
    assert orjson.dumps(asked.body) == before == asked.raw
    service = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    operation = service.operation_model("ConverseStream" if stream else "Converse")
    sent = orjson.loads(request.body)
    assert not sent.keys() - operation.input_shape.members.keys()
    report = ParamValidator().validate({"modelId": "m", **sent}, operation.input_shape)
    # botocore wants bytes where JSON holds base64.
    complaints = [e for e in report.generate_report().splitlines() if "bytes" not in e]
    assert complaints == []


def test_a_rich_request_arrives(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    request = bedrock.encode(ask(**RICH), endpoint(), Target(credential=keys), NOW)
    sent = orjson.loads(request.body)
    assert sent["system"] == [{"text": "be brief"}]
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][0]["content"][1]["image"]["format"] == "png"
    uses = [part["toolUse"] for part in sent["messages"][1]["content"]]
    assert [(u["toolUseId"], u["input"]) for u in uses] == [
        ("c1", {"city": "Rome"}),
        ("c2", {"city": "Bonn"}),
    ]
    results = [part["toolResult"] for part in sent["messages"][2]["content"]]
    assert [r["toolUseId"] for r in results] == ["c1", "c2"]
    assert sent["toolConfig"]["toolChoice"] == {"any": {}}
    assert sent["additionalModelRequestFields"]["tool_choice"]["disable_parallel_tool_use"] is True
    assert sent["inferenceConfig"] == {
        "maxTokens": 100, "temperature": 0.5, "stopSequences": ["END"],
    }  # fmt: skip
    assert sent["requestMetadata"] == {"domicile-record": "eu-1/7"}


def test_no_name_of_a_tool_is_remembered(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    """The library maps names it changed in a table that all requests share; none is changed."""
    bedrock.encode(ask(**RICH), endpoint(), Target(credential=keys), NOW)
    table = sys.modules["litellm"].bedrock_tool_name_mappings
    assert not table.cache_dict


def test_the_record_is_one_that_bedrock_takes(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    service = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    metadata = service.shape_for("RequestMetadata")
    sent = orjson.loads(bedrock.encode(ask(), endpoint(), Target(credential=keys), NOW).body)
    ((key, value),) = sent["requestMetadata"].items()
    for shape, text in ((metadata.key, key), (metadata.value, value)):
        assert re.fullmatch(shape.metadata["pattern"], text)
        assert shape.metadata["min"] <= len(text) <= shape.metadata["max"]


def test_the_guardrail_is_the_endpoints(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    arn = "arn:aws:bedrock:eu-central-1:123456789012:guardrail/gr1"
    for named in ("gr1:2", f"{arn}:DRAFT"):
        there = endpoint(settings={"guardrail": named})
        identifier, _, version = named.rpartition(":")
        for stream in (False, True):
            request = bedrock.encode(ask(stream=stream), there, Target(credential=keys), NOW)
            sent = orjson.loads(request.body)
            assert sent["guardrailConfig"] == {
                "guardrailIdentifier": identifier, "guardrailVersion": version,
            }  # fmt: skip
            # All of the conversation is judged, not only a part that is marked.
            assert b"guardContent" not in request.body


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("anthropic.claude-sonnet-4-6", "anthropic.claude-sonnet-4-6"),
        ("eu.anthropic.claude-sonnet-4-6", "anthropic.claude-sonnet-4-6"),
        ("global.amazon.nova-2-lite-v1:0", "amazon.nova-2-lite-v1:0"),
        ("apac.meta.z", "meta.z"),
        ("us-gov.vendor.k", "vendor.k"),
        ("jp.anthropic.x", "anthropic.x"),
        ("au.anthropic.x", "anthropic.x"),
        ("in.anthropic.x", "anthropic.x"),
        ("ca.amazon.x", "amazon.x"),
        (f"{ARN}:inference-profile/eu.anthropic.x", "anthropic.x"),
        ("arn:aws:bedrock:eu-west-1::foundation-model/amazon.x-v1:0", "amazon.x-v1:0"),
        (f"{ARN}:provisioned-model/abc", f"{ARN}:provisioned-model/abc"),
    ],
)
def test_a_prefix_is_no_vendor(endpoint: Make, model: str, bare: str) -> None:
    assert converse_model(endpoint(model)) == bare


EVENTS = ((b"content-type", b"application/vnd.amazon.eventstream"),)
JSON = ((b"content-type", b"application/json"),)


def test_only_an_event_stream_is_decoded_as_one(
    bedrock: Provider, endpoint: Make, ask: MakeAsk
) -> None:
    there = endpoint()
    assert isinstance(bedrock.decoder(ask(stream=True), there, EVENTS), EventAnswer)
    assert isinstance(bedrock.decoder(ask(), there, JSON), WholeAnswer)
    for asked, headers in ((ask(stream=True), JSON), (ask(), EVENTS), (ask(), ())):
        failure = bedrock.decoder(asked, there, headers)
        assert isinstance(failure, Failure)
        assert failure.kind is Kind.BAD_ANSWER


def test_a_streaming_call_answered_with_json_and_403(bedrock: Provider) -> None:
    headers = (*JSON, (b"x-amzn-errortype", b"AccessDeniedException"))
    failure = bedrock.failure(403, headers, b'{"message":"denied"}', NOW)
    assert (failure.kind, failure.status) == (Kind.AUTH, 403)
    assert failure.provider_code == "AccessDeniedException"


def test_call_ids_are_those_of_cloudtrail(bedrock: Provider) -> None:
    told = "0199f1de-24b8-7cc1-9e0a-3f5f5a5e7d10"
    assert bedrock.call_id(((b"x-amzn-requestid", told.encode()),)) == told


def test_nothing_is_read_from_disk(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    bedrock.encode(ask(**RICH), endpoint(), Target(credential=keys), NOW)

    def no(*_: object, **__: object) -> Any:
        raise AssertionError("opened a file")

    monkeypatch.setattr("builtins.open", no)
    monkeypatch.setattr(Path, "open", no)
    bedrock.encode(ask(**RICH), endpoint(), Target(credential=keys), NOW)
