"""Streaming reports of `reports.yaml`, through the whole router."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import httpx
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.health import Sign
from router.simulator.faults import Fault, Kind
from tests.cases.built import BEDROCK, built, entries, outcomes
from tests.router.house import KEYS, Plan, house
from tests.router.scripted import (
    DONE,
    JSON,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    lost,
    scripted,
    silent,
    stream,
)

START = event(role="assistant", content="")
NO_CHOICES = b'data: {"id":"x","object":"chat.completion.chunk","model":"tiny","choices":[]}\n\n'
Pieces = Sequence[bytes | Exception]


def coded(code: object, kind: str = "server_error") -> bytes:
    error = {"error": {"message": "x", "type": kind, "code": code}}
    return b"data: " + json.dumps(error).encode() + b"\n\n"


OVERLOAD = coded(503, "overloaded_error")
FAILED = b'event: response.failed\ndata: {"type":"response.failed","error":{"code":"x"}}\n\n'


def datas(written: bytes) -> list[str]:
    """The data of every event, by the rules of event streams."""
    lines = written.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    found = []
    for block in lines:
        data = [one[5:].removeprefix(" ") for one in block.split("\n") if one[:5] == "data:"]
        if data:
            found.append("\n".join(data))
    return found


def texts(written: bytes) -> str:
    """The text of all chunks of a stream."""
    found = ""
    for data in datas(written):
        if data != "[DONE]":
            for choice in json.loads(data).get("choices", []):
                found += choice["delta"].get("content") or ""
    return found


# --- streaming-01, -02 ------------------------------------------------------------------------

NOTHING: dict[str, Pieces] = {
    "closed": [START],
    "cut": [START, lost()],
    "overload": [START, OVERLOAD],
    "limit": [START, coded(429, "rate_limit_error")],
    "error in text": [START, coded("internal_error")],
    "failed event": [START, FAILED],
    "failed event only": [FAILED],
    "error event": [b"event: error\ndata: {\"message\":\"x\"}\n\n"],
    "done": [DONE],
    "start and done": [START, DONE],
    "silence": [START, silent()],
    "comments": [b": a\n\n", b": b\n\n", lost()],
    "usage only": [NO_CHOICES.replace(b'[]}', b'[],"usage":{"prompt_tokens":1}}'), DONE],
    "nothing": [],
    "page": [b"<html>"],
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
async def test_streaming_01_no_start_frame_of_a_failed_endpoint(tmp_path: Path, name: str) -> None:
    async with built(tmp_path, lambda host, number: stream(*NOTHING[name])) as world:
        done = await world.ask("eu", stream=True)
        assert 500 <= done.status < 600
        assert done.sent["content-type"] == "application/json"
        assert json.loads(done.written)["error"]["code"] == done.code
        assert b"data:" not in done.written
        assert world.transport.at("iad1") == 0


async def test_streaming_01_two_different_faults(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return stream(START, lost()) if host == "fra1" else stream(START, OVERLOAD)

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", stream=True)
        assert (done.status // 100, done.sent["content-type"]) == (5, "application/json")
        assert (world.transport.at("fra1"), world.transport.at("par1")) == (1, 1)


@pytest.mark.parametrize("name", NOTHING)
async def test_streaming_02_never_an_empty_success(tmp_path: Path, name: str) -> None:
    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return stream(*NOTHING[name])
        return stream(START, event(content="hello"), DONE)

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", stream=True)
        assert done.sent["x-domicile-endpoint"] == "par"
        assert texts(done.written) == "hello"
        assert done.written.endswith(DONE)
        assert done.written.count(b'"role"') == 1
    assert outcomes(tmp_path)[0]["status"] == "ok"


@pytest.mark.parametrize("body", [b"{}", b'{"choices":[]}', b'{"error":{"code":500}}', b"null"])
async def test_streaming_02_plain_answers_too(tmp_path: Path, body: bytes) -> None:
    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [body]) if host == "fra1" else answer()

    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"


# --- streaming-06 -----------------------------------------------------------------------------

WORDS = [event(content=f"w{n} ") for n in range(60)]
FINISH = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"tiny",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
)
BROKEN: dict[str, tuple[Pieces, str]] = {
    "cut": ([*WORDS[:40], lost()], "connection_lost"),
    "closed": (WORDS[:40], "connection_lost"),
    "silence": ([*WORDS[:20], silent()], "timeout"),
    "error event": ([*WORDS[:20], OVERLOAD], "upstream_error"),
    "cut in an event": ([*WORDS[:3], WORDS[4][:20], lost()], "connection_lost"),
    "cut before the end": ([*WORDS, lost()], "connection_lost"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_streaming_06_nothing_is_spliced(tmp_path: Path, name: str) -> None:
    pieces, reason = BROKEN[name]
    async with built(tmp_path, lambda host, number: stream(*pieces)) as world:
        done = await world.ask("eu", stream=True)
        assert len(world.transport.sent) == 1
        assert done.status == 200
        last = done.written.strip().split(b"\n\n")[-1]
        error = json.loads(last.removeprefix(b"data: "))["error"]
        assert (error["code"], error["reason"]) == ("incomplete", reason)
        assert DONE not in done.written
        assert done.ended
        before = done.written.split(b'data: {"error"')[0]
        assert before.count(b'"delta"') == sum(1 for one in pieces if one in WORDS)
    assert outcomes(tmp_path)[0]["status"] == "incomplete"


@pytest.mark.parametrize("at", [1, 30, 59])
async def test_streaming_06_one_bad_event_is_left_out_and_counted(tmp_path: Path, at: int) -> None:
    pieces = [*WORDS[:at], b'data: {"choices":[{"delta"\n\n', *WORDS[at:], FINISH, DONE]
    async with built(tmp_path, lambda host, number: stream(*pieces)) as world:
        done = await world.ask("eu", stream=True)
        assert texts(done.written) == "".join(f"w{n} " for n in range(60))
        assert done.written.endswith(DONE)
        assert world.router.live.metrics.value("domicile_malformed_events_total", ("fra",)) == 1
    assert outcomes(tmp_path)[0]["status"] == "ok"


# --- streaming-08, -09 ------------------------------------------------------------------------

ODD_USAGE = ["null", "[]", '"x"', "{}", '{"prompt_tokens":"x"}', '{"prompt_tokens":-1}',
             '{"prompt_tokens":1e99,"completion_tokens":null}', "0", "true"]  # fmt: skip


@pytest.mark.parametrize("usage", ODD_USAGE)
async def test_streaming_08_accounting_never_stands_in_the_way(tmp_path: Path, usage: str) -> None:
    odd = NO_CHOICES.replace(b"[]}", b'[],"usage":' + usage.encode() + b"}")

    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return stream(NO_CHOICES, odd, lost())
        return stream(NO_CHOICES, odd, event(content="hello"), odd, FINISH, DONE)

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", stream=True)
        assert done.sent["x-domicile-endpoint"] == "par"
        assert texts(done.written) == "hello"
    (outcome,) = outcomes(tmp_path)
    assert outcome["status"] == "ok"
    assert all(count >= 0 for count in outcome["tokens"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [429, "rate_limit_exceeded", 500, 503, "server_error", 529])
async def test_streaming_09_an_error_in_the_stream_is_retried_as_a_status_is(
    tmp_path: Path, code: object
) -> None:
    """Two replicas of one endpoint and no other endpoint: the retry is the endpoint's own."""
    for made in (lambda: stream(START, coded(code)), lambda: failure(503)):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()

        def script(host: str, number: int, made=made) -> Reply:  # type: ignore[no-untyped-def]
            return made() if host == "fra1" else stream(event(content="hello"), DONE)

        async with built(folder, script) as world:
            done = await world.ask("eu", stream=True)
            assert (done.sent["x-domicile-attempts"], texts(done.written)) == ("2", "hello")
        kinds = [one.kind for one in entries(folder) if one.kind in ("decision", "attempt")]
        assert kinds == ["decision", "attempt"]


# --- streaming-12, -14, -15 -------------------------------------------------------------------


def sdk(world: Scripted) -> openai.AsyncOpenAI:
    """The official client, straight into the router's application."""
    transport = httpx.ASGITransport(world.router)
    http = httpx.AsyncClient(transport=transport, base_url="http://router")
    return openai.AsyncOpenAI(
        api_key=KEYS["eu"],
        base_url="http://router/v1",
        http_client=http,  # type: ignore[arg-type]  # its stub names a fork of httpx
        max_retries=0,
    )


QUIET: dict[str, Pieces] = {
    "comments": [b": keep-alive\n\n"] * 40,
    "comment lines": [b":\n", b":\n\n"] * 20,
    "pings": [b"event: ping\n\n", b"event: ping\ndata:\n\n"],
    "ids": [b"id: 7\n\n", b"id: 8\nretry: 3000\n\n"],
    "empty data": [b"data:\n\n", b"data: \n\n"],
    "blank lines": [b"\n\n\n", b"\r\n\r\n"],
    "mark": [b"\xef\xbb\xbf"],
    "mark and comment": [b"\xef\xbb\xbf: hi\n\n"],
}


@pytest.mark.parametrize("name", QUIET)
async def test_streaming_12_the_official_client_completes(tmp_path: Path, name: str) -> None:
    pieces: list[bytes | Exception] = [*QUIET[name], START]
    for piece in (event(content="one "), event(content="two"), FINISH):
        # A mark stands at the start of a stream only.
        between = [] if "mark" in name else list(QUIET[name])
        pieces += [b"id: 3\n" + piece, *between]
    async with (
        built(tmp_path, lambda host, number: stream(*pieces, DONE)) as world,
        sdk(world) as client,
    ):
        answered = await client.chat.completions.create(
            model="assistant", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        found = [chunk.choices[0].delta.content async for chunk in answered if chunk.choices]
    assert "".join(one or "" for one in found) == "one two"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_streaming_14_only_well_formed_events_reach_the_client(
    tmp_path: Path, end: bytes
) -> None:
    many = (
        b'data: {"id":"x","model":"tiny",\n'
        b'data: "choices":[{"index":0,"delta":\ndata: {"content":"multi"}}]}\n\n'
    )
    odd = [
        b"\xef\xbb\xbf", b"event: ping\n\n", b"data\n\n", b"data:\n\n", b"retry: 10\n\n",
        b"id: 1\n\n", b"unknown: field\n\n", many, event(content=" end"), FINISH, DONE,
    ]  # fmt: skip
    pieces = [piece.replace(b"\n", end) for piece in odd]
    async with built(tmp_path, lambda host, number: stream(*pieces)) as world:
        done = await world.ask("eu", stream=True)
    assert texts(done.written) == "multi end"
    assert all(data == "[DONE]" or json.loads(data) for data in datas(done.written))
    assert not done.written.startswith(b"\xef\xbb\xbf")


TEXT = "日本語 👩‍👩‍👧 é e\u0301 𝔘 नमस्ते \u2028 \u0085 |"


async def test_streaming_15_cut_at_every_byte(tmp_path: Path) -> None:
    whole = (
        START
        + b"data: "
        + json.dumps(
            {"id": "x", "model": "tiny", "choices": [{"index": 0, "delta": {"content": TEXT}}]},
            ensure_ascii=False,
        ).encode()
        + b"\n\n"
        + FINISH
        + DONE
    )
    cuts = range(1, len(whole))
    async with scripted(
        tmp_path, lambda host, number: stream(whole[: cuts[number]], whole[cuts[number] :])
    ) as world:
        for _ in cuts:
            assert texts((await world.ask("eu", stream=True)).written) == TEXT
    folder = tmp_path / "bytes"
    folder.mkdir()
    async with built(folder, lambda host, number: stream(*(b"%c" % b for b in whole))) as world:
        assert texts((await world.ask("eu", stream=True)).written) == TEXT


@settings(max_examples=25)
@given(st.text(max_size=40), st.data())
def test_streaming_15_any_text_any_cuts(text: str, data: st.DataObject) -> None:
    from router.answers.framing import framed
    from router.providers.base import EqualEvents

    payload = {"model": "tiny", "choices": [{"index": 0, "delta": {"content": text + "."}}]}
    whole = b"data: " + json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"
    reader = framed(EqualEvents("assistant", drops_usage=False), "chat.completions", ())
    out, rest = b"", whole
    while rest:
        cut = data.draw(st.integers(1, len(rest)))
        out += b"".join(frame.data for frame in reader.feed(rest[:cut]))
        rest = rest[cut:]
    assert texts(out) == text.encode("utf-8", "replace").decode() + "."


async def test_streaming_15_on_real_sockets(tmp_path: Path) -> None:
    async with house(tmp_path, Plan(regions=("self:fra1",))) as found:
        found.fleet["fra1"].fail(Fault(Kind.SPLIT, size=1))
        body = {"model": "assistant", "messages": [{"role": "user", "content": TEXT}],
                "stream": True, "max_tokens": 20}  # fmt: skip
        async with httpx.AsyncClient(base_url=found.url, timeout=20, trust_env=False) as client:
            key = {"authorization": f"Bearer {KEYS['eu']}"}
            told = await client.post("/v1/chat/completions", json=body, headers=key)
        assert told.content.decode("utf-8").endswith("data: [DONE]\n\n")
        assert "\ufffd" not in told.text


async def test_streaming_bedrock_is_no_exception(tmp_path: Path) -> None:
    """Frames of another format go through the same opening."""

    def script(host: str, number: int) -> Reply:
        if host == BEDROCK:
            return Reply(200, ((b"content-type", b"application/vnd.amazon.eventstream"),), [lost()])
        return stream(event(content="hello"), DONE)

    async with built(tmp_path, script) as world:
        live = world.router.live
        live.health.observe("fra", Sign.LOAD, live.loop_time())  # else the own one is cheaper
        done = await world.ask("eu", model="claude", stream=True)
        assert done.status == 502  # a managed endpoint may have begun: it is not asked twice
        assert b"data:" not in done.written
