"""Neighbours of the reports on streams: errors inside answers, and ends that only look like one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from tests.cases.built import built, outcomes
from tests.router.scripted import DONE, JSON, FakeExchange, Reply, answer, stream

TOO_LONG: Mapping[str, object] = {
    "message": "This model's maximum context length is 4096 tokens. However, you asked for PROMPT",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
SHAPES: Mapping[str, Mapping[str, object]] = {
    "vllm": TOO_LONG,
    "openai": {**TOO_LONG, "type": "invalid_request_error", "code": "context_length_exceeded"},
    "code alone": {"code": "context_length_exceeded", "message": "no"},
    "other words": {"type": "invalid_request_error", "message": "input is too long for PROMPT"},
    "neither type nor code": {"message": TOO_LONG["message"]},
    "told as its own fault": {"message": TOO_LONG["message"], "code": 500},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_prompt_that_is_too_long_is_told_as_such_inside_an_answer_too(
    tmp_path: Path, shape: str, streamed: bool
) -> None:
    """As with its own status: what to do, and nothing against the endpoint."""
    said = json.dumps({"error": SHAPES[shape]}).encode()

    def script(host: str, number: int) -> Reply:
        return stream(b"data: " + said + b"\n\n", DONE) if streamed else Reply(200, JSON, [said])

    async with built(tmp_path, script) as world:
        for _ in range(3):
            done = await world.ask("eu", stream=streamed)
            assert (done.status, done.code) == (400, "upstream_refused")
            message = json.loads(done.written)["error"]["message"]
            assert message.startswith("the request is longer than the model's context")
            assert "PROMPT" not in message
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert (world.transport.at("fra1"), world.transport.at("par1")) in ((3, 0), (2, 1), (1, 2))


@pytest.mark.parametrize(
    "error",
    [
        {"type": "rate_limit_error", "message": "you exceed the maximum tokens per minute"},
        {"code": 429, "message": "input is too long for this minute"},
        {"type": "InternalServerError", "code": 500, "message": "cuda"},
        {"message": "cuda"},
    ],
)
async def test_what_is_the_endpoints_own_stays_its_own(
    tmp_path: Path, error: Mapping[str, object]
) -> None:
    said = json.dumps({"error": error}).encode()

    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [said]) if host == "fra1" else answer()

    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"


def piece(index: int, end: bool, *, text: str = "x") -> bytes:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": "stop" if end else None}
    return b"data: " + json.dumps({"model": "tiny", "choices": [choice]}).encode() + b"\n\n"


async def streamed(folder: Path, pieces: list[bytes], n: int | None) -> FakeExchange:
    async with built(folder, lambda host, number: stream(*pieces)) as world:
        return await world.ask("eu", stream=True, n=n)


@pytest.mark.parametrize("missing", [*combinations(range(3), 1), *combinations(range(3), 2)])
async def test_a_stream_without_a_last_event_is_whole_when_each_answer_has_ended(
    tmp_path: Path, missing: tuple[int, ...]
) -> None:
    """One answer's end was taken for the end of all."""
    begun = [piece(index, end=False) for index in range(3)]
    ends = [piece(index, end=True) for index in range(3) if index not in missing]
    done = await streamed(tmp_path, [*begun, *ends, *ends], n=3)
    assert done.written.endswith(b"\n\n")
    assert b'"code":"incomplete"' in done.written
    (outcome,) = outcomes(tmp_path)
    assert (outcome["status"], outcome["broke"]) == ("incomplete", "connection_lost")


@pytest.mark.parametrize(("count", "ends"), [(1, [0]), (None, [0]), (3, [2, 0, 1])])
async def test_and_is_when_they_have(tmp_path: Path, count: int | None, ends: list[int]) -> None:
    done = await streamed(tmp_path, [piece(index, end=True) for index in ends], n=count)
    assert b"incomplete" not in done.written
    assert [one["status"] for one in outcomes(tmp_path)] == ["ok"]


async def test_the_last_event_is_the_end_of_all(tmp_path: Path) -> None:
    await streamed(tmp_path, [piece(0, end=True), DONE], n=3)
    assert [one["status"] for one in outcomes(tmp_path)] == ["ok"]
