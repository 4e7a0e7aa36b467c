"""What a request came to, from how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases.built import Files, built, outcomes
from tests.router.scripted import (
    DONE,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    lost,
    silent,
    stream,
)


def told(code: str) -> bytes:
    """An endpoint's error in a stream."""
    return b"data: " + json.dumps({"error": {"code": code, "type": code}}).encode() + b"\n\n"


USAGE = b'data: {"model":"tiny","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}\n\n'


async def came_to(folder: Path, reply: object, **body: object) -> Mapping[str, object]:
    """The outcome entry of one request that every endpoint answers so."""

    def script(host: str, number: int) -> Reply | Exception:
        assert callable(reply)
        made: Reply | Exception = reply()
        return made

    async with built(folder, script) as world:
        await ask(world, body)
    (outcome,) = outcomes(folder)
    return outcome


async def ask(world: Scripted, body: Mapping[str, object]) -> None:
    exchange = world.exchange("eu")
    whole = {**json.loads(await exchange.body(0)), **body}
    exchange._body = json.dumps(whole).encode()
    await world.run(exchange)


async def test_usage_that_was_told(tmp_path: Path) -> None:
    found = await came_to(tmp_path, answer)
    assert (found["status"], found["tokens"], "estimated" in found) == ("ok", [3, 2], False)
    assert found["endpoint"] == "fra"
    assert isinstance(found["millis"], int)


async def test_usage_in_a_stream(tmp_path: Path) -> None:
    found = await came_to(tmp_path, lambda: stream(event(content="x"), USAGE, DONE), stream=True)
    assert (found["status"], found["tokens"]) == ("ok", [7, 9])


async def test_usage_that_nobody_told_is_marked_as_estimated(tmp_path: Path) -> None:
    found = await came_to(tmp_path, lambda: stream(event(content="x"), DONE), stream=True)
    assert found["estimated"] is True
    tokens = found["tokens"]
    assert isinstance(tokens, list)
    assert all(isinstance(count, int) and count > 0 for count in tokens)


@pytest.mark.parametrize(
    ("last", "broke", "code"),
    [
        (lost(), "connection_lost", None),
        (silent(), "timeout", None),
        (told("server_error"), "upstream_error", "server_error"),
        (told("my own words"), "upstream_error", None),
    ],
)
async def test_why_an_answer_broke_off(
    tmp_path: Path, last: bytes | Exception, broke: str, code: str | None
) -> None:
    found = await came_to(tmp_path, lambda: stream(event(content="x"), last), stream=True)
    assert found["status"] == "incomplete"
    assert (found["broke"], found.get("provider_code")) == (broke, code)


async def test_when_nothing_answered_there_is_no_usage_and_no_place(tmp_path: Path) -> None:
    found = await came_to(tmp_path, lambda: failure(503))
    assert found["status"] == "upstream_unavailable"
    assert not {"tokens", "place", "ran", "endpoint"} & set(found)
    attempts = found["attempts"]
    assert isinstance(attempts, list)
    assert [one["endpoint"] for one in attempts] == ["fra", "par"]


async def test_a_price_is_in_millionths_of_a_dollar(tmp_path: Path) -> None:
    priced = Files().baseline.replace(
        'url: "http://fra1", model: tiny,',
        'url: "http://fra1", model: tiny, price: {input: 1.0, output: 2.0},',
    )
    async with built(tmp_path, lambda host, number: answer(), Files(baseline=priced)) as world:
        await world.ask("eu")
    (found,) = outcomes(tmp_path)
    # 3 tokens in at 1 dollar a million, 2 out at 2 dollars a million.
    assert found["cost"] == 7
