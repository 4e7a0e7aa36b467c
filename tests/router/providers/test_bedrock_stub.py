"""Over real sockets to the stub, which verifies each signature by code of its own."""

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from botocore.config import Config
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from regions.model import Endpoint
from router.providers.base import (
    Ask,
    AwsKeys,
    Bearer,
    Decoder,
    EqualEvents,
    Failure,
    Kind,
    Provider,
    Target,
)
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld, Guardrail, Profile
from router.simulator.faults import Fault
from router.simulator.faults import Kind as FaultKind
from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver
from router.transport.messages import OutboundResponse, Timeouts, Tls, read_body

SONNET = "anthropic.claude-sonnet-4-6"
EU = f"eu.{SONNET}"
SIX = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
ACCOUNT = "arn:aws:bedrock:eu-central-1:123456789012"
APPLICATION = f"{ACCOUNT}:application-inference-profile/abc123def456"
WORLD = BedrockWorld.of(
    {
        EU: {"eu-central-1": SIX},
        f"global.{SONNET}": {"eu-central-1": ("us-east-1", "ap-northeast-1")},
    },
    {"eu-central-1": [f"{SONNET}-v1:0", "amazon.nova-lite-v1:0"]},
    more=[Profile("abc123def456", "eu-central-1", SONNET, SIX, arn=APPLICATION)],
    guardrails=[
        Guardrail("gr1234567890", "eu-central-1", "2", ("forbidden",), "eu.guardrail.v1:0")
    ],
)
KEYS = AwsKeys(TEST_KEY, TEST_SECRET.secret_key)
FORMS = [
    f"{SONNET}-v1:0",
    f"arn:aws:bedrock:eu-central-1::foundation-model/{SONNET}-v1:0",
    EU,
    f"{ACCOUNT}:inference-profile/{EU}",
    f"global.{SONNET}",
    APPLICATION,
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    }
    for name in ("get_weather", "get_time")
]

Send = Callable[..., Awaitable[OutboundResponse]]
Make = Callable[..., Endpoint]
MakeAsk = Callable[..., Ask]


HOST = "bedrock-runtime.eu-central-1.amazonaws.com"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of the stub, for the real host name."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName(HOST), x509.IPAddress(IPv4Address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    form, pem = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("papers") / "stub.pem"
    file.write_bytes(secret + signed.public_bytes(pem))
    return file


@pytest.fixture
async def stub(papers: Path) -> AsyncIterator[BedrockStub]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(papers)
    spec = BedrockSpec(WORLD, bearers=frozenset({"good"}), speed=200.0, seed=7, keep_bodies=True)
    async with BedrockStub(spec, tls=server) as running:
        yield running


@pytest.fixture
async def transport(stub: BedrockStub) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(SystemResolver({HOST: ("127.0.0.1", stub.port)}))
    yield made
    await made.close()


@pytest.fixture
def send(transport: HttpTransport, bedrock: Provider, papers: Path) -> Send:
    """Encodes and sends one ask to the real host name, which is the stub."""

    async def run(
        ask: Ask, there: Endpoint, credential: AwsKeys | Bearer = KEYS
    ) -> OutboundResponse:
        target = Target("", credential, Tls(ca=papers.read_text()))
        request = bedrock.encode(ask, there, target, time.time())
        return await transport.send(request, Timeouts(asyncio.get_running_loop().time() + 20))

    return run


async def answer(
    provider: Provider, ask: Ask, there: Endpoint, response: OutboundResponse
) -> tuple[bytes, Decoder]:
    assert response.status == 200
    decoder = provider.decoder(ask, there, response.headers)
    assert not isinstance(decoder, EqualEvents | Failure)
    out, until = [], asyncio.get_running_loop().time() + 20
    while data := await response.chunk(until):
        out.append(decoder.feed(data))
    out.append(decoder.finish())
    return b"".join(out), decoder


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", FORMS)
async def test_each_form_is_signed_right(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    model: str,
    stream: bool,
) -> None:
    asked, there = ask(stream=stream), endpoint(model)
    response = await send(asked, there)
    out, decoder = await answer(bedrock, asked, there, response)
    call = stub.calls[0]
    assert (call.host, call.region) == (HOST, "eu-central-1")
    assert (call.credential, call.signed_region, call.signed_service) == (
        "sigv4", "eu-central-1", "bedrock",
    )  # fmt: skip
    assert (call.target, call.stream, call.status) == (model, stream, 200)
    assert bedrock.call_id(response.headers) == call.request_id
    assert orjson.loads(call.body)["requestMetadata"] == {"domicile-record": "eu-1/7"}
    assert decoder.usage is not None
    assert decoder.failure is None
    assert out.endswith(b"data: [DONE]\n\n") == stream


async def test_stream_and_whole_say_what_boto3_reads(
    papers: Path,
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
) -> None:
    client = boto3.client(
        "bedrock-runtime", region_name="eu-central-1", endpoint_url=stub.url,
        aws_access_key_id=TEST_KEY, aws_secret_access_key=TEST_SECRET.secret_key,
        config=Config(retries={"max_attempts": 0}), verify=str(papers),
    )  # fmt: skip
    there = endpoint(EU)
    texts = []
    for stream in (False, True):
        asked = ask(stream=stream)
        out, _ = await answer(bedrock, asked, there, await send(asked, there))
        if not stream:
            texts.append(orjson.loads(out)["choices"][0]["message"]["content"])
            continue
        chunks = [orjson.loads(e[6:]) for e in out.split(b"\n\n") if e and b"[DONE]" not in e]
        parts = [c["choices"][0]["delta"].get("content", "") for c in chunks]
        texts.append("".join(parts))
    body = orjson.loads(stub.calls[0].body)
    try:
        theirs = await asyncio.to_thread(client.converse, modelId=EU, **body)
    finally:
        client.close()
    texts.append(theirs["output"]["message"]["content"][0]["text"])
    assert len(set(texts)) == 1
    assert texts[0]


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calls(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    stream: bool,
) -> None:
    asked, there = ask(stream=stream, tools=TOOLS, tool_choice="required"), endpoint(EU)
    out, _ = await answer(bedrock, asked, there, await send(asked, there))
    calls: dict[int, dict[str, Any]] = {}
    if stream:
        for event in out.split(b"\n\n"):
            if not event or b"[DONE]" in event:
                continue
            for call in orjson.loads(event[6:])["choices"][0]["delta"].get("tool_calls", []):
                made = calls.setdefault(call["index"], {"id": call.get("id"), "arguments": ""})
                made["arguments"] += call["function"]["arguments"]
    else:
        message = orjson.loads(out)["choices"][0]["message"]
        for index, call in enumerate(message["tool_calls"]):
            calls[index] = {"id": call["id"], "arguments": call["function"]["arguments"]}
    assert sorted(calls) == list(range(len(calls)))
    assert calls
    assert len({c["id"] for c in calls.values()}) == len(calls)
    assert all(isinstance(orjson.loads(c["arguments"]), dict) for c in calls.values())


async def test_a_bearer_key(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
) -> None:
    response = await send(ask(), endpoint(EU), Bearer("good"))
    await read_body(response, 1 << 20, asyncio.get_running_loop().time() + 5)
    assert (stub.calls[0].credential, stub.calls[0].status) == ("bearer", 200)


async def test_the_guardrail_answers(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
) -> None:
    settings = {"guardrail": "gr1234567890:2"}
    there = endpoint(EU, settings=settings)
    asked = ask(messages=[{"role": "user", "content": "forbidden"}])
    out, _ = await answer(bedrock, asked, there, await send(asked, there))
    assert orjson.loads(out)["choices"][0]["finish_reason"] == "content_filter"
    assert (stub.calls[0].guardrail, stub.calls[0].guardrail_version) == ("gr1234567890", "2")


@pytest.mark.parametrize(
    ("model", "credential", "kind"),
    [
        (SONNET + "-v2:0", KEYS, Kind.MISSING),
        (EU, AwsKeys(TEST_KEY, "wrong"), Kind.AUTH),
        (EU, Bearer("bad"), Kind.AUTH),
    ],
)
async def test_refusals_over_http(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    model: str,
    credential: AwsKeys | Bearer,
    kind: Kind,
) -> None:
    response = await send(ask(stream=True), endpoint(model), credential)
    body = await read_body(response, 1 << 16, asyncio.get_running_loop().time() + 5)
    failure = bedrock.failure(response.status, response.headers, body, time.time())
    assert failure.kind is kind
    assert failure.provider_code


@pytest.mark.parametrize(
    ("error", "kind"),
    [("ThrottlingException", Kind.LOAD), ("ModelStreamErrorException", Kind.ILL)],
)
@pytest.mark.parametrize("after", [0, 3])
async def test_an_exception_within_the_stream(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    error: str,
    kind: Kind,
    after: int,
) -> None:
    stub.fail(Fault(FaultKind.ERROR_EVENT, after=after, error=error))
    asked, there = ask(stream=True), endpoint(EU)
    out, decoder = await answer(bedrock, asked, there, await send(asked, there))
    assert decoder.failure is not None
    assert (decoder.failure.kind, decoder.failure.provider_code) == (kind, error)
    assert (b'"content":' in out.replace(b'"content":""', b"")) == (after > 0)
    assert b"[DONE]" not in out


async def test_split_into_single_bytes(
    stub: BedrockStub,
    send: Send,
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
) -> None:
    asked, there = ask(stream=True), endpoint(EU)
    whole, _ = await answer(bedrock, asked, there, await send(asked, there))
    stub.fail(Fault(FaultKind.SPLIT, size=1))
    cut, _ = await answer(bedrock, asked, there, await send(asked, there))
    assert cut == whole
