"""Security reports of `reports.yaml`, through the whole router."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import httpx
import pytest

from router.admin import build as admin_app
from router.config import ConfigError
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built
from tests.router.house import house
from tests.router.scripted import DONE, Reply, Scripted, answer, event, failure, scripted, stream
from tests.router.wire import request, say

SECRET = "k3y-in-the-url-91ab"


async def told(world: Scripted) -> str:
    """What metrics and status say."""
    transport = httpx.ASGITransport(admin_app(world.router.live, world.router.watches))
    async with httpx.AsyncClient(transport=transport, base_url="http://admin") as client:
        return (await client.get("/metrics")).text + (await client.get("/status")).text


def written(folder: Path, *but: str) -> bytes:
    """Every file below a folder but those named."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in but]
    return b"".join(path.read_bytes() for path in files)


# --- security-03 ------------------------------------------------------------------------------

KEYS_OF_OTHERS = (
    "sk-" + "proj-4kQ9s7TxLm2pVw8z",
    "sk-" + "ant-api03-aaaaBBBBccccDDDD",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "dom-eu-but-not-quite",
    "x" * 3000,
)


async def test_security_03_a_wrong_key_is_shown_by_a_fingerprint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    outputs = b""
    async with house(tmp_path) as found:
        for key in KEYS_OF_OTHERS:
            for fields in ((), (b"x-api-key: " + key.encode(),)):
                answered = await say(found, request(b"{}", *fields, key=key.encode()))
                assert (answered.status, answered.code) == (401, "invalid_api_key")
                message = json.loads(answered.body)["error"]["message"]
                assert "fingerprint" in message
                outputs += answered.head + answered.body
        async with httpx.AsyncClient(base_url=found.admin, trust_env=False) as client:
            outputs += (await client.get("/metrics")).content + (
                await client.get("/status")
            ).content
    out, err = capfd.readouterr()
    text = outputs + written(tmp_path) + (out + err + caplog.text).encode()
    for key in KEYS_OF_OTHERS:
        assert key.encode() not in text
        assert key[:12].encode() not in text.replace(b"dom-eu", b"")


# --- security-06 ------------------------------------------------------------------------------

OPTIONS = (
    (b"x-domicile-tier", b"large"),
    (b"x-domicile-attr-data_class", b"public"),
    (b"idempotency-key", b"abc"),
    (b"x-stainless-timeout", b"60"),
)
ANY = {"model", "messages", "temperature", "stream", "max_tokens", "user"}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("model", ["assistant", "openai"])
async def test_security_06_the_body_holds_the_clients_fields(
    tmp_path: Path, streaming: bool, model: str
) -> None:
    def script(host: str, number: int) -> Reply:
        sent = world.transport.sent[-1]
        unknown = set(json.loads(sent.body)) - ANY - {"stream_options"}
        if unknown:
            return failure(400)
        return stream(event(content="x"), DONE) if streaming else answer()

    async with built(tmp_path, script) as world:
        given = {"temperature": 0.5, "max_tokens": 3, "user": "u", "model": model}
        done = await world.ask("world", OPTIONS, stream=streaming, **given)
        assert done.status == 200
        sent = world.transport.sent[-1]
        body = json.loads(sent.body)
        added = {"stream_options"} if streaming and model == "assistant" else set()
        assert set(body) == ANY | added
        assert {name: body[name] for name in ("temperature", "max_tokens", "user")} == {
            "temperature": 0.5, "max_tokens": 3, "user": "u",
        }  # fmt: skip
        names = {name for name, _ in sent.headers}
        assert not [name for name in names if b"domicile" in name or b"idempotency" in name]


async def test_security_06_usage_is_asked_for_only_where_it_is_enabled(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: stream(event(content="x"), DONE)) as world:
        done = await world.ask("eu", stream=True)
        assert json.loads(world.transport.sent[0].body)["stream_options"] == {"include_usage": True}
        assert b'"usage"' not in done.written


# --- security-09 ------------------------------------------------------------------------------

KEYED = BASELINE.replace(
    '"https://eu.api.openai.com/v1"', '"https://eu.api.openai.com/v1?key=env:URL_KEY"'
)


@pytest.mark.parametrize("how", ["429", "stream 429", "500 page", "refused"])
async def test_security_09_a_key_in_a_url_is_never_shown(
    tmp_path: Path, how: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"https://eu.api.openai.com/v1?key={SECRET}".encode()
    limited = (
        b'data: {"error":{"code":429,"type":"rate_limit_error","message":"' + echo + b'"}}\n\n'
    )

    def script(host: str, number: int) -> Reply | Exception:
        if host != "eu.api.openai.com":
            return stream(event(content="hello"), DONE)
        if how == "refused":
            from router.transport.messages import ConnectFailed

            return ConnectFailed("no", "refused")
        if how == "stream 429":
            return stream(event(role="assistant", content=""), limited)
        status = 429 if how == "429" else 503
        return Reply(status, ((b"content-type", b"text/html"),), [echo])

    files = Files(baseline=KEYED, environment={**ENVIRONMENT, "URL_KEY": SECRET})
    async with built(tmp_path, script, files) as world:
        done = await world.ask("world", model="openai", stream=True)
        assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "openai-world")
        asked = world.transport.sent[0]
        assert asked.target == f"/v1/chat/completions?key={SECRET}"
        failing = await world.ask("world", model="openai", stream=True)
        text = await told(world) + repr(world.router.live.snapshot.targets) + repr(asked)
        text += str(done.sent) + done.written.decode() + str(failing.sent)
        snapshot = world.router.live.snapshot.content
    out, err = capfd.readouterr()
    assert SECRET not in out + err + caplog.text + text
    assert SECRET.encode() not in written(tmp_path) + snapshot


@pytest.mark.parametrize(
    "url", [f"https://x.example/v1?key={SECRET}", f"https://u:{SECRET}@x.example", f"https://x.example/#{SECRET}"]
)  # fmt: skip
def test_security_09_a_key_written_out_does_not_load_and_is_not_shown(
    tmp_path: Path, url: str
) -> None:
    files = Files(baseline=BASELINE.replace("https://api.openai.com/v1", url))
    with pytest.raises(ConfigError) as caught:
        files.load(tmp_path)
    assert SECRET not in str(caught.value)
    assert "by reference" in str(caught.value)
