"""What provider tests share: endpoints, asks, event stream frames, a hostile environment."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from regions.model import Endpoint
from router.providers.base import Ask, AwsKeys, Decoder, Provider
from router.providers.registry import load

CANARY = "canary-7f3a91-do-not-repeat"


@pytest.fixture(scope="session")
def bedrock() -> Provider:
    """Bedrock's provider; importing the translation takes seconds."""
    return load("bedrock")


@pytest.fixture(scope="session")
def canary() -> str:
    """A text that must come out nowhere."""
    return CANARY


@pytest.fixture(scope="session")
def keys() -> AwsKeys:
    """AWS keys of nobody."""
    return AwsKeys("AKIDEXAMPLE", "secret-example", "token-example")


@pytest.fixture(scope="session")
def endpoint() -> Callable[..., Endpoint]:
    """Makes a Bedrock endpoint unless told otherwise."""

    def make(model: str = "eu.anthropic.claude-sonnet-4-6", **more: Any) -> Endpoint:
        settings: dict[str, Any] = {
            "name": "e",
            "kind": "bedrock",
            "provider": "aws",
            "source": "eu-central-1",
            **more,
        }
        return Endpoint(model=model, **settings)

    return make


@pytest.fixture(scope="session")
def ask() -> Callable[..., Ask]:
    """Makes an ask of the chat surface from body members."""

    def make(*, stream: bool = False, surface: str = "chat.completions", **body: Any) -> Ask:
        whole = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}], **body}
        if stream:
            whole["stream"] = True
        return Ask(
            surface,
            whole,
            orjson.dumps(whole),
            stream,
            "assistant",
            "req-1",
            "eu-1/7",
            1_795_000_000,
        )

    return make


@pytest.fixture(scope="session")
def frame() -> Callable[..., bytes]:
    """Encodes one event stream message; a name that starts with `!` is an exception."""
    return encode_frame


def encode_frame(name: str, payload: dict[str, Any]) -> bytes:
    """One message of AWS's event stream, with its checksums."""
    kind = "exception" if name.startswith("!") else "event"
    headers = b""
    for key, value in (
        (f":{kind}-type", name.removeprefix("!")),
        (":content-type", "application/json"),
        (":message-type", kind),
    ):
        k, v = key.encode(), value.encode()
        headers += bytes([len(k)]) + k + b"\x07" + struct.pack("!H", len(v)) + v
    body = json.dumps(payload).encode()
    head = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    head += struct.pack("!I", zlib.crc32(head))
    message = head + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


@pytest.fixture(scope="session")
def through() -> Callable[..., bytes]:
    """Feeds pieces to a decoder and returns all that came out."""

    def run(decoder: Decoder, *pieces: bytes) -> bytes:
        out = b"".join(decoder.feed(piece) for piece in pieces)
        return out + decoder.finish()

    return run


@pytest.fixture
def hostile_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything that moves AWS's own clients and litellm, pointing elsewhere."""
    config = tmp_path / "config"
    config.write_text(
        "[default]\nregion = us-east-1\nendpoint_url = https://evil.example\n"
        "aws_access_key_id = AKIDEVIL\naws_secret_access_key = evil\n"
        "[profile evil]\nregion = us-east-1\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME"):
        monkeypatch.setenv(name, "us-east-1")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(config))
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "AWS_BEDROCK_RUNTIME_ENDPOINT",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "ALL_PROXY",
        "LITELLM_MODEL_COST_MAP_URL",
    ):
        monkeypatch.setenv(name, "http://evil.example:3128")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.setenv(name, "evil")
    for name in ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "LITELLM_DROP_PARAMS"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "evil-token")
    monkeypatch.setenv("LITELLM_MODIFY_PARAMS", "true")
    monkeypatch.setenv("LITELLM_LOG", "DEBUG")
