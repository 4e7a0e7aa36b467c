"""Neighbours of the reports on limits and usage: what a request is taken to cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import Limits, Rate
from router.usage import prompt_bytes
from tests.cases.built import outcomes
from tests.router.scripted import (
    DONE,
    FakeExchange,
    Reply,
    Script,
    Scripted,
    answer,
    event,
    lost,
    scripted,
    stream,
)

BYTES = "A" * 2_000_000
MEDIA: list[dict[str, object]] = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BYTES}"}},
    {"type": "image_url", "image_url": f"data:image/png;base64,{BYTES}"},
    {"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:x;base64,{BYTES}"}},
]
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def shown(part: dict[str, object]) -> list[dict[str, object]]:
    return [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, part]}]


def well(host: str, number: int) -> Reply:
    return answer()


@asynccontextmanager
async def limited(folder: Path, script: Script = well) -> AsyncIterator[Scripted]:
    """Tenant `eu` may use 100,000 tokens a minute."""
    async with scripted(folder, script) as world:
        live = world.router.live
        policy = live.snapshot.policy
        eu = replace(policy.tenants["eu"], limits=Limits(tokens=Rate(100_000, 60)))
        policy = replace(policy, tenants={**policy.tenants, "eu": eu})
        live.snapshot = replace(live.snapshot, policy=policy)
        yield world


async def together(world: Scripted, *bodies: dict[str, object]) -> list[FakeExchange]:
    return await asyncio.gather(*(world.ask("eu", **one) for one in bodies))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1])
async def test_a_picture_is_not_counted_as_text(tmp_path: Path, number: int) -> None:
    """Its bytes as tokens are five times the limit: all the tenant's others would be refused."""
    async with limited(tmp_path) as world:
        picture: dict[str, object] = {"messages": shown(MEDIA[number])}
        done = await together(world, picture, picture, {}, {})
        assert [one.status for one in done] == [200] * 4


def test_only_the_media_of_a_dialogue_are_left_out() -> None:
    for part in MEDIA:
        body: dict[str, object] = {"messages": shown(part)}
        assert 4096 < prompt_bytes(json.dumps(body).encode(), body) < 5000
    texts: list[dict[str, object]] = [
        {"messages": [{"role": "user", "content": f"data:image/png;base64,{BYTES}"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "data" + BYTES}]}]},
        {"messages": [{"role": "user", "content": [["data" + BYTES], None]}, 1]},
        {"data": BYTES},
    ]
    for body in texts:
        raw = json.dumps(body).encode()
        assert prompt_bytes(raw, body) == len(raw)


@pytest.mark.parametrize("most", [10**6, 10**12, 10**18])
async def test_a_wish_for_endless_answers_keeps_nobody_out_for_longer_than_the_limit_lasts(
    tmp_path: Path, most: int
) -> None:
    """A tenant's other clients were told to come back in nineteen years."""
    async with limited(tmp_path) as world:
        done = await together(world, {"max_tokens": most}, {}, {})
        assert [one.status for one in done] == [200, 429, 429]
        assert {int(one.sent["retry-after"]) for one in done[1:]} <= set(range(1, 61))
        assert (await world.ask("eu")).status == 200  # of the first, only what it used stays


@pytest.mark.parametrize("count", [100, 10**9])
async def test_each_of_several_answers_is_reserved(tmp_path: Path, count: int) -> None:
    async with limited(tmp_path) as world:
        four = [dict[str, object](n=count, max_tokens=1000)] * 4
        done = await together(world, *four)
        assert sorted(one.status for one in done) == [200, 429, 429, 429]


@pytest.mark.parametrize("count", [None, 0, -5, 1.5, "3", True, []])
async def test_what_is_no_number_of_answers_is_one(tmp_path: Path, count: object) -> None:
    async with limited(tmp_path) as world:
        done = await together(world, *[{"n": count, "max_tokens": 20_000}] * 4)
        assert [one.status for one in done] == [200] * 4


def told(usage: str) -> bytes:
    return b'data: {"choices":[],"usage":' + usage.encode() + b"}\n\n"


WORDS = [event(content=" word") for _ in range(200)]


@pytest.mark.parametrize(
    "last",
    [
        [FINISH, DONE],
        [FINISH, told('{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}'), DONE],
        [FINISH, told("null"), DONE],
        [FINISH, told("{}"), DONE],
        [lost()],
    ],
)
async def test_a_stream_that_tells_no_usage_is_charged_for_its_text(
    tmp_path: Path, last: list[bytes | Exception]
) -> None:
    """Not for the JSON around each word, which is fifty times as much; nor for nothing."""
    async with scripted(tmp_path, lambda h, n: stream(*WORDS, *last)) as world:
        await world.ask("eu", stream=True)
    (outcome,) = outcomes(tmp_path)
    assert outcome["estimated"] is True
    tokens = outcome["tokens"]
    assert isinstance(tokens, list)
    assert 200 <= tokens[1] <= 300


async def test_who_leaves_is_charged_for_what_came(tmp_path: Path) -> None:
    held, gone = asyncio.Event(), asyncio.Event()

    class Slow(Reply):
        async def chunk(self, until: float) -> bytes:
            if len(self._chunks) == 1:
                held.set()
                await gone.wait()
                raise lost()
            return await super().chunk(until)

        def abort(self) -> None:
            super().abort()
            gone.set()

    headers = ((b"content-type", b"text/event-stream"),)
    async with scripted(tmp_path, lambda h, n: Slow(200, headers, [*WORDS, DONE])) as world:
        exchange = world.exchange("eu", stream=True)
        running = asyncio.create_task(world.run(exchange))
        await held.wait()
        exchange.leave()
        await running
    (outcome,) = outcomes(tmp_path)
    tokens = outcome["tokens"]
    assert isinstance(tokens, list)
    assert 190 <= tokens[1] <= 300


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens":7,"completion_tokens":9}',
        '{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":null}',
        '{"prompt_tokens":7,"completion_tokens":9,"total_tokens":null,"cost":0.1}',
        '{"input_tokens":7,"output_tokens":9}',
    ],
)
@pytest.mark.parametrize("where", ["apart", "with the end", "in each", "in the last choice"])
async def test_usage_counts_once_wherever_it_stands(tmp_path: Path, usage: str, where: str) -> None:
    """Also where Moonshot tells it, see earendil-works/pi#2017."""
    each = [one.replace(b'"choices"', b'"usage":%b,"choices"' % usage.encode()) for one in WORDS]
    end = FINISH.replace(b'"choices"', b'"usage":%b,"choices"' % usage.encode())
    inside = FINISH.replace(b'"delta"', b'"usage":%b,"delta"' % usage.encode())
    pieces = {
        "apart": [*WORDS, FINISH, told(usage)],
        "with the end": [*WORDS, end],
        "in the last choice": [*WORDS, inside],
    }
    sent = pieces.get(where, [*each, end])
    async with scripted(tmp_path, lambda h, n: stream(*sent, DONE)) as world:
        await world.ask("eu", stream=True)
    assert [one["tokens"] for one in outcomes(tmp_path)] == [[7, 9]]


PARTLY: dict[str, tuple[list[int], list[int]]] = {
    # MiXaiLL76/auto_ai_router#142, PostHog/posthog-js#4664: a count of nothing beside a real one
    '{"prompt_tokens":0,"completion_tokens":200}': ([22, 22], [200, 200]),
    '{"prompt_tokens":50,"completion_tokens":0,"total_tokens":50}': ([50, 50], [200, 400]),
    '{"prompt_tokens":50,"completion_tokens":null}': ([50, 50], [200, 400]),
    # sonami-tech/omni-llm-provider#49, router-for-me/CLIProxyAPI#5733: reasoning in the total alone
    '{"prompt_tokens":25,"completion_tokens":89,"total_tokens":200}': ([25, 25], [175, 175]),
    '{"prompt_tokens":25,"completion_tokens":0,"total_tokens":200}': ([25, 25], [175, 175]),
    '{"prompt_tokens":25,"total_tokens":200}': ([25, 25], [175, 175]),
    '{"prompt_tokens":25,"completion_tokens":89,"total_tokens":99}': ([25, 25], [89, 89]),
    # Portkey-AI/gateway#1754: what was read from a cache is prompt
    '{"prompt_tokens":25,"completion_tokens":9,"total_tokens":134,"cache_read_input_tokens":100}': (
        [125, 125],
        [9, 9],
    ),
}


@pytest.mark.parametrize("usage", PARTLY)
@pytest.mark.parametrize("streamed", [True, False])
async def test_what_is_told_in_part_is_counted_whole(
    tmp_path: Path, usage: str, streamed: bool
) -> None:
    """A tenant's prompts, or a model's thoughts, were free, and no limit saw them."""
    whole = answer(" word" * 200)
    body = json.loads(await whole.chunk(0))
    body["usage"] = json.loads(usage)

    def script(host: str, number: int) -> Reply:
        if streamed:
            return stream(*WORDS, FINISH, told(usage), DONE)
        return Reply(200, whole.headers, [json.dumps(body).encode()])

    async with scripted(tmp_path, script) as world:
        await world.ask("eu", stream=streamed)
    (outcome,) = outcomes(tmp_path)
    prompt, output = PARTLY[usage]
    tokens = outcome["tokens"]
    assert isinstance(tokens, list)
    assert prompt[0] <= tokens[0] <= prompt[1] + 2
    assert output[0] <= tokens[1] <= output[1]
    assert outcome.get("estimated", False) is (prompt[0] == 22 or output[0] < output[1])


async def test_an_answer_of_nothing_has_no_tokens(tmp_path: Path) -> None:
    nothing = told('{"prompt_tokens":25,"completion_tokens":0,"total_tokens":25}')
    async with scripted(tmp_path, lambda h, n: stream(FINISH, nothing, DONE)) as world:
        await world.ask("eu", stream=True)
    (outcome,) = outcomes(tmp_path)
    assert (outcome["tokens"], outcome.get("estimated", False)) == ([25, 0], False)


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
@pytest.mark.parametrize("choices", [b'"choices":[],', b'"choices":null,', b""])
async def test_usage_is_asked_for_and_kept_from_who_did_not_ask(
    tmp_path: Path, options: object, choices: bytes
) -> None:
    """Many clients look for a choice in each event."""
    last = told('{"prompt_tokens":7,"completion_tokens":9}').replace(b'"choices":[],', choices)
    sent = [*WORDS[:2], FINISH, last, DONE]
    async with scripted(tmp_path, lambda h, n: stream(*sent)) as world:
        done = await world.ask("eu", stream=True, stream_options=options)
        asked = json.loads(world.transport.sent[0].body)
        assert asked["stream_options"] == {"include_usage": True}
        assert b"usage" not in done.written
    assert [one["tokens"] for one in outcomes(tmp_path)] == [[7, 9]]


async def test_what_was_tried_before_counts_nothing_of_a_limit(tmp_path: Path) -> None:
    """Of two endpoints that break off and one that answers, the answer's tokens count alone."""

    def script(host: str, number: int) -> Reply | Exception:
        return lost() if host == "fra1" else answer()

    async with limited(tmp_path, script) as world:
        first = await world.ask("eu", max_tokens=50_000)
        again = await world.ask("eu", max_tokens=99_900)
        assert (first.sent["x-domicile-attempts"], again.status) == ("2", 200)
