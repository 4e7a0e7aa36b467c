"""Host, path and signature of an AWS call, held against botocore's own client."""

import datetime as dt
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore
import botocore.auth
import pytest
from botocore.config import Config

from router.providers.aws import base_url, dns_suffix, label, region_of, signed
from router.providers.base import AwsKeys, Bearer, Misconfigured

NOW = 1_795_000_000.0
KEYS = AwsKeys("AKIDEXAMPLE", "secret-example", "token-example")
ARN = "arn:aws:bedrock:eu-central-1:123456789012"
FORMS = [
    "anthropic.claude-3-5-sonnet-20240620-v1:0",
    "eu.anthropic.claude-sonnet-4-6",
    "global.anthropic.claude-sonnet-4-6",
    f"{ARN}:application-inference-profile/a1b2c3d4e5f6",
    f"{ARN}:inference-profile/eu.anthropic.claude-sonnet-4-6",
    f"{ARN}:prompt-router/abcdef123456",
    f"{ARN}:default-prompt-router/anthropic.claude:1",
    f"{ARN}:provisioned-model/abcdef123456",
    "arn:aws:bedrock:eu-central-1::foundation-model/amazon.nova-lite-v1:0",
]


class _Captured(Exception):
    """The client was stopped before sending."""


def boto_request(monkeypatch: pytest.MonkeyPatch, model: str, stream: bool) -> Any:
    """What boto3 would send for this id at NOW."""
    at = dt.datetime.fromtimestamp(NOW, dt.UTC).replace(tzinfo=None)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: at)
    client = boto3.client(
        "bedrock-runtime",
        region_name="eu-central-1",
        aws_access_key_id=KEYS.access_key,
        aws_secret_access_key=KEYS.secret_key,
        aws_session_token=KEYS.session_token,
        config=Config(retries={"total_max_attempts": 1}),
    )
    caught: list[Any] = []

    def stop(request: Any, **_: object) -> None:
        caught.append(request)
        raise _Captured

    client.meta.events.register("before-send.*.*", stop)
    call = client.converse_stream if stream else client.converse
    with pytest.raises(_Captured):
        call(modelId=model, messages=[{"role": "user", "content": [{"text": "hi"}]}])
    return caught[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", FORMS)
def test_url_and_signature_are_those_of_boto3(
    monkeypatch: pytest.MonkeyPatch, model: str, stream: bool
) -> None:
    theirs = boto_request(monkeypatch, model, stream)
    path = f"/model/{label(model)}/{'converse-stream' if stream else 'converse'}"
    url = base_url("bedrock-runtime", "eu-central-1", "") + path
    assert url == theirs.url
    names = theirs.headers["Authorization"]
    names = (names if isinstance(names, str) else names.decode()).split("SignedHeaders=")[1]
    wanted = [n for n in names.split(",")[0].split(";") if n != "host" and "amz-date" not in n]
    headers = {
        n: v if isinstance(v, str) else v.decode()
        for n in wanted
        if n != "x-amz-security-token" and (v := theirs.headers[n])
    }
    ours = dict(signed(KEYS, "bedrock", "eu-central-1", "POST", url, headers, theirs.body, NOW))
    expected = theirs.headers["Authorization"]
    assert ours[b"authorization"] == (expected.encode() if isinstance(expected, str) else expected)
    assert b"/eu-central-1/bedrock/aws4_request" in ours[b"authorization"]


def test_every_region_of_botocore_has_its_suffix() -> None:
    file = Path(botocore.__file__).parent / "data" / "partitions.json"
    partitions = json.loads(file.read_text())["partitions"]
    seen = 0
    for partition in partitions:
        for region in partition["regions"]:
            if "global" in region:
                continue
            seen += 1
            assert dns_suffix(region_of(region)) == partition["outputs"]["dnsSuffix"], region
    assert seen > 40


def test_region_with_and_without_provider() -> None:
    assert region_of("aws:eu-central-1") == region_of("eu-central-1") == "eu-central-1"


@pytest.mark.parametrize("source", [None, "", "europe", "self:fra1", "eu-central-1.evil.example"])
def test_no_region_is_refused(source: str | None) -> None:
    with pytest.raises(Misconfigured):
        region_of(source)


@pytest.mark.parametrize(
    "url",
    [
        "https://bedrock-runtime.eu-central-1.amazonaws.com",
        "https://bedrock-runtime-fips.eu-central-1.amazonaws.com",
        "https://vpce-0a1b-2c3d.bedrock-runtime.eu-central-1.vpce.amazonaws.com/",
        "http://127.0.0.1:8123",
    ],
)
def test_own_urls_of_the_region(url: str) -> None:
    assert base_url("bedrock-runtime", "eu-central-1", url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "https://bedrock-runtime.us-east-1.amazonaws.com",
        "http://bedrock-runtime.eu-central-1.amazonaws.com",
        "https://bedrock-runtime.eu-central-1.amazonaws.com.evil.example",
        "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
        "https://bedrock.eu-central-1.amazonaws.com",
        "https://evil.example/bedrock-runtime.eu-central-1.amazonaws.com",
    ],
)
def test_urls_of_elsewhere_are_refused(url: str) -> None:
    with pytest.raises(Misconfigured):
        base_url("bedrock-runtime", "eu-central-1", url)


def test_a_bearer_token_needs_no_signature() -> None:
    made = dict(
        signed(Bearer("key-1"), "bedrock", "eu-central-1", "POST", "https://h/p", {}, b"", NOW)
    )
    assert made == {b"authorization": b"Bearer key-1"}


def test_no_credential_is_said() -> None:
    with pytest.raises(Misconfigured, match="credential"):
        signed(None, "bedrock", "eu-central-1", "POST", "https://h/p", {}, b"", NOW)


def test_environment_and_files_have_no_say(request: pytest.FixtureRequest) -> None:
    def made() -> dict[bytes, bytes]:
        url = base_url("bedrock-runtime", "eu-central-1", "") + "/model/m/converse"
        assert urlsplit(url).hostname == "bedrock-runtime.eu-central-1.amazonaws.com"
        return dict(signed(KEYS, "bedrock", "eu-central-1", "POST", url, {}, b"{}", NOW))

    before = made()
    request.getfixturevalue("hostile_environment")
    assert made() == before
