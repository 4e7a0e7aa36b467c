"""Neighbours of the reports on streams: errors that go by no such name, and ends without a mark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from router.transport.client import HttpTransport
from tests.cases.built import BASELINE, MAIN, Files, built, outcomes
from tests.cases.test_wire_answers import DONE as LAST
from tests.cases.test_wire_answers import ENDED, FIRST
from tests.rawserver import Line, RawServer, Script, now
from tests.router.scripted import DONE, JSON, Reply, answer, event, stream


def chunk(reason: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": {}, "finish_reason": reason, **more}
    return b"data: " + json.dumps({"model": "tiny", "choices": [choice]}).encode() + b"\n\n"


def data(value: object, name: bytes = b"") -> bytes:
    return (b"event: " + name + b"\n" if name else b"") + b"data: %b\n\n" % json.dumps(
        value
    ).encode()


BARE = {"code": "Throttling", "message": "WORDS"}
# How an engine, an aggregator or a framework says that it gave up, after a status of success.
GIVEN_UP: Mapping[str, bytes] = {
    "an event's name, and no error in it": data(BARE, b"error"),
    "an event's name, and no JSON in it": b"event: error\ndata: WORDS\n\n",
    "a code and words": data(BARE),
    "words of a framework": data({"detail": "WORDS"}),
    "an error in a list": data([{"error": {"code": 503, "message": "WORDS"}}]),
    "an error of a choice": chunk("stop", error={"code": 502, "message": "WORDS"}),
    "a broken network": chunk("network_error"),
    "no room": chunk("insufficient_system_resource"),
    "a worker that shuts down": chunk("cancelled"),
}


@pytest.mark.parametrize("name", GIVEN_UP)
async def test_an_answer_that_was_given_up_is_no_good_one(tmp_path: Path, name: str) -> None:
    """The end that follows only looks like one. See diegosouzapw/OmniRoute#8210."""
    said = stream(event(role="assistant", content=""), event(content="a"), GIVEN_UP[name], DONE)
    async with built(tmp_path, lambda h, n: said) as world:
        done = await world.ask("eu", stream=True)
    assert b'"code":"incomplete"' in done.written
    assert b"[DONE]" not in done.written
    assert b"WORDS" not in done.written
    (outcome,) = outcomes(tmp_path)
    assert (outcome["status"], outcome["broke"]) == ("incomplete", "upstream_error")


@pytest.mark.parametrize("name", GIVEN_UP)
async def test_and_before_first_content_another_makes_it_good(tmp_path: Path, name: str) -> None:
    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return stream(event(role="assistant", content=""), GIVEN_UP[name], DONE)
        return stream(event(content="b"), DONE)

    async with built(tmp_path, script) as world:
        assert (await world.ask("eu", stream=True)).sent["x-domicile-endpoint"] == "par"


@pytest.mark.parametrize("name", [name for name, said in GIVEN_UP.items() if b'"choices"' in said])
async def test_nor_is_a_whole_one(tmp_path: Path, name: str) -> None:
    body = json.loads(GIVEN_UP[name].removeprefix(b"data: "))
    body["choices"][0]["message"] = {"role": "assistant", "content": "half of"}

    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [json.dumps(body).encode()]) if host == "fra1" else answer()

    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"


async def test_a_limit_told_in_a_good_status_is_load_and_did_no_work(tmp_path: Path) -> None:
    """So that another managed endpoint may be asked."""
    busy = Reply(200, JSON, [json.dumps({"code": 429, "message": "slow down"}).encode()])
    script = lambda h, n: busy if n == 0 and h.startswith("eu.") else answer()  # noqa: E731
    async with built(tmp_path, script) as world:
        done = await world.ask("world", model="openai")
        assert (done.status, len(world.transport.sent)) == (200, 2)
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert attempts[0]["result"] == "load"


@pytest.mark.parametrize("usage", [True, False])
async def test_a_good_end_is_marked_where_its_endpoint_does_not(
    tmp_path: Path, usage: bool
) -> None:
    """Clients wait for the mark, or take what has none for cut off."""
    told = data({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    pieces = [event(content="a"), chunk("stop"), *([told] if usage else [])]
    async with built(tmp_path, lambda h, n: stream(*pieces)) as world:
        done = await world.ask("eu", stream=True, stream_options={"include_usage": True})
    assert done.written == b"".join(pieces).replace(b"tiny", b"assistant") + DONE
    (outcome,) = outcomes(tmp_path)
    assert outcome["status"] == "ok"
    assert not usage or outcome["tokens"] == [7, 1]


async def test_an_empty_answer_counts_for_next_to_nothing(tmp_path: Path) -> None:
    """All that its events are made of was counted for text."""
    said = stream(event(role="assistant", content=""), chunk("stop"), DONE)
    async with built(tmp_path, lambda h, n: said) as world:
        await world.ask("eu", stream=True)
    (outcome,) = outcomes(tmp_path)
    usage = outcome["tokens"]
    assert isinstance(usage, list)
    assert usage[1] <= 3


async def held(folder: Path, script: Script, idle: str) -> tuple[bytes, float]:
    """What a client of a real connection gets, and in how many seconds."""
    transport = HttpTransport()
    async with RawServer(script) as fra:
        url = f'"http://127.0.0.1:{fra.port}", probe: "off", model: tiny'
        baseline = BASELINE.replace('"http://fra1", model: tiny', url)
        files = Files(MAIN.replace("idle: 2s", f"idle: {idle}"), baseline)
        async with built(folder, lambda h, n: answer(), files, transport) as world:
            began = now()
            done = await world.ask("de", stream=True)
            took = now() - began
        await transport.close()
    return done.written, took


@pytest.mark.parametrize("marked", [True, False])
async def test_who_says_that_it_is_done_and_stays_is_not_waited_for(
    tmp_path: Path, marked: bool
) -> None:
    """A connection that is never closed kept the client until the limit, and told it that the
    answer broke off. See maximhq/bifrost#2910."""

    async def script(line: Line) -> None:
        await line.request()
        await line.say(ENDED + (LAST if marked else b""))
        await asyncio.sleep(60)

    done, took = await held(tmp_path, script, "50s")
    assert b"incomplete" not in done
    assert done.endswith(DONE)
    assert took < 20
    assert outcomes(tmp_path)[0]["status"] == "ok"


async def test_who_stops_in_the_middle_still_is(tmp_path: Path) -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(FIRST)
        await asyncio.sleep(60)

    done, _ = await held(tmp_path, script, "1s")
    assert b'"reason":"timeout"' in done
    assert outcomes(tmp_path)[0]["status"] == "incomplete"
