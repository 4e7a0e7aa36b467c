"""Neighbours of the reports on disconnects and limits: what is asked for and not waited for.

An endpoint has the prompt, and charges for it, whoever is still there for the answer. Limits that
count answers alone are open to a client that leaves before each: BerriAI/litellm#30522, #33736,
QuantumNous/new-api#4184.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from policies.model import Limits, Rate
from regions.model import Price
from router.inbound.exchange import Headers
from router.state.ledger import Bucket, Seats, Take
from router.transport.messages import AnswerTimeout, Fate
from tests.cases.built import outcomes, until
from tests.router.scripted import (
    DONE,
    JSON,
    SSE,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    lost,
    refused,
    scripted,
    silent,
    stream,
)

PROMPT = "word " * 8000
TOKENS = 10_000


class Hung(Reply):
    """An engine that computes a prompt, for as long as it is let."""

    async def chunk(self, until: float) -> bytes:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, until - now()))
        raise AnswerTimeout("silent", Fate.UNKNOWN)


def hung(stream: bool) -> Callable[[str, int], Reply]:
    return lambda host, number: Hung(200, SSE if stream else JSON)


def limit(world: Scripted, limits: Limits) -> None:
    """Of tenant `eu`; its endpoints take a dollar for a thousand tokens of prompt."""
    live = world.router.live
    policy = live.snapshot.policy
    named = {name: replace(one, price=Price(1000.0, 1.0)) for name, one in policy.endpoints.items()}
    tenants = {**policy.tenants, "eu": replace(policy.tenants["eu"], limits=limits)}
    live.snapshot = replace(live.snapshot, policy=replace(policy, tenants=tenants, endpoints=named))


LIMITS = {
    "tokens": Limits(tokens=Rate(25_000, 86_400)),
    "dollars": Limits(dollars=Rate(25_000_000, 86_400)),
}


def asked(world: Scripted, stream: bool, headers: Headers = ()) -> FakeExchange:
    shown = [{"role": "user", "content": PROMPT}]
    return world.exchange("eu", headers, messages=shown, max_tokens=5, stream=stream)


@pytest.mark.parametrize("of", LIMITS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_has_asked_for_its_prompt(
    tmp_path: Path, stream: bool, of: str
) -> None:
    async with scripted(tmp_path, hung(stream)) as world:
        limit(world, LIMITS[of])
        for _ in range(2):
            exchange = asked(world, stream)
            sent = len(world.transport.sent)
            running = asyncio.create_task(world.run(exchange))
            await until(lambda: len(world.transport.sent) > sent)  # noqa: B023
            exchange.leave()
            await running
        third = await world.run(asked(world, stream))
        assert third.status == 429
        assert len(world.transport.sent) == 2
    first = outcomes(tmp_path)[0]
    assert (first["status"], first["estimated"]) == ("gone", True)
    tokens = first["tokens"]
    assert isinstance(tokens, list)
    assert TOKENS <= tokens[0] <= TOKENS + 100
    assert tokens[1] == 0
    assert first["cost"] == tokens[0] * 1000


@pytest.mark.parametrize("stream", [False, True])
async def test_so_has_one_that_gives_an_answer_no_time(tmp_path: Path, stream: bool) -> None:
    headers = ((b"x-domicile-deadline", b"100ms"),)
    async with scripted(tmp_path, hung(stream)) as world:
        limit(world, LIMITS["tokens"])
        for _ in range(2):
            exchange = asked(world, stream, headers)
            answered = world.router.route(b"/v1/chat/completions")
            assert answered is not None
            await answered(exchange, "POST")
            assert exchange.code == "deadline"
        assert (await world.run(asked(world, stream))).status == 429


FAILED: dict[str, Callable[[str, int], Reply | Exception]] = {
    "full": lambda host, number: failure(429),
    "ill": lambda host, number: failure(500),
    "silent in the router's own time": lambda host, number: silent(),
}


@pytest.mark.parametrize("name", FAILED)
async def test_what_endpoints_fail_by_costs_nobody(tmp_path: Path, name: str) -> None:
    async with scripted(tmp_path, FAILED[name]) as world:
        limit(world, LIMITS["tokens"])
        for _ in range(4):
            assert (await world.run(asked(world, stream=False))).status >= 500


async def test_nor_does_what_no_endpoint_was_asked(tmp_path: Path) -> None:
    """Who leaves before anything was sent."""
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, LIMITS["tokens"])
        for _ in range(4):
            exchange = asked(world, stream=False)
            exchange.leave()
            await world.run(exchange)
        assert not world.transport.sent
        assert (await world.run(asked(world, stream=False))).status == 200


WORDS = [event(content="word ")] * 8
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
TOLD = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}\n\n'
LIMITED = b'{"error":{"message":"rate limit","code":429}}'
ANSWERS: tuple[Callable[[], Reply | Exception], ...] = (
    answer,
    lambda: stream(*WORDS, STOP, TOLD, DONE),
    lambda: Slowly(200, SSE, [*WORDS, STOP, DONE]),
    lambda: Slowly(200, SSE, [*WORDS, lost()]),
    lambda: Slowly(200, JSON, answer()._chunks),
    lambda: Reply(200, JSON, [LIMITED]),
    lambda: failure(500),
    lambda: failure(429),
    lambda: failure(400),
    lost,
    silent,
    refused,
)


class Slowly(Reply):
    """Leaves a client time to go."""

    async def chunk(self, until: float) -> bytes:
        await asyncio.sleep(0.003)
        return await super().chunk(until)


@pytest.mark.parametrize("seed", range(3))
async def test_limits_count_what_the_log_says(tmp_path: Path, seed: int) -> None:
    """Whatever answers, and whenever clients leave or run out of time."""
    chance, much = Random(seed), 10**9
    never = Rate(much, 10**13)  # as good as never refilled
    async with scripted(tmp_path, lambda host, number: chance.choice(ANSWERS)()) as world:
        limit(world, Limits(tokens=never, dollars=never, concurrency=100))
        answered = world.router.route(b"/v1/chat/completions")
        assert answered is not None

        async def one() -> None:
            headers = []
            if chance.random() < 0.3:
                headers.append((b"idempotency-key", b"key-%d" % chance.randrange(5)))
            if chance.random() < 0.2:
                headers.append((b"x-domicile-deadline", b"%dms" % chance.randrange(1, 15)))
            exchange = asked(world, chance.random() < 0.5, headers)
            running = asyncio.ensure_future(answered(exchange, "POST"))
            if chance.random() < 0.4:
                await asyncio.sleep(chance.random() * 0.02)
                exchange.leave()
            await running

        for _ in range(5):
            await asyncio.gather(*(one() for _ in range(20)))
        ledger = world.router.live.ledger
        asks = Take(Bucket("tokens", "eu/tokens", much, 1e13), 0)
        asks_too = Take(Bucket("dollars", "eu/dollars", much, 1e13), 0)
        seats = Seats("concurrency", "eu/open", 1)
        tokens, dollars = await ledger.take((asks, asks_too), (seats,), "last")  # all have left
    found = outcomes(tmp_path)
    counted = [each.get("tokens") for each in found]
    used = sum(sum(pair) for pair in counted if isinstance(pair, list))
    paid = sum(cost for each in found if isinstance(cost := each.get("cost"), int))
    assert {each["status"] for each in found} >= {"ok", "gone"}
    assert abs(much - tokens.remaining - used) <= 1
    assert abs(much - dollars.remaining - paid) <= 1
