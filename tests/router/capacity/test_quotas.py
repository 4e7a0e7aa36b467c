"""A tenant's own limits, through the whole router: reserved, settled, given back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import Limits, Rate, Tenant
from router.auth import Principal
from router.capacity.quotas import Quotas, demand, estimate, exactness, holders, refused
from router.config import StateSection
from router.errors import RequestError
from router.state.ledger import Bucket, Full
from router.state.memory import MemoryLedger
from tests.router.folders import sound
from tests.router.scripted import Scripted, answer, failure, scripted

LIMITS = Limits(requests=Rate(3, 3600), tokens=Rate(10_000, 3600), concurrency=2)


def limit(world: Scripted, limits: Limits) -> None:
    """Give the tenant `eu` limits."""
    policy = world.router.live.snapshot.policy
    tenants = dict(policy.tenants)
    tenants["eu"] = replace(tenants["eu"], limits=limits)
    changed = replace(policy, tenants=tenants)
    world.router.live.snapshot = replace(world.router.live.snapshot, policy=changed)


async def test_limits_of_a_new_policy_count_from_the_next_request_on(tmp_path: Path) -> None:
    """What a key's requests take is worked out once a policy, and no longer than that is it."""
    hour = [Limits(), Limits(requests=Rate(1, 3600)), Limits(), Limits(requests=Rate(2, 3600))]
    told = []
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        for limits in hour:
            limit(world, limits)
            told.append([(await world.ask()).code for _ in range(2)])
    assert told == [["ok"] * 2, ["ok", "rate_limit"], ["ok"] * 2, ["rate_limit"] * 2]


async def test_requests_are_counted_and_told(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, LIMITS)
        answers = [await world.ask() for _ in range(4)]
        assert [done.code for done in answers] == ["ok", "ok", "ok", "rate_limit"]
        assert answers[0].sent["x-ratelimit-remaining-requests"] == "2"
        assert answers[0].sent["x-ratelimit-limit-tokens"] == "10000"
        last = answers[3]
        assert (last.status, last.sent["x-ratelimit-remaining-requests"]) == (429, "0")
        assert 1100 < int(last.sent["retry-after"]) <= 1200
        assert (await world.ask("world")).code == "ok"


async def test_what_ends_before_it_ran_gives_everything_back(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, LIMITS)
        for _ in range(10):
            await world.ask(model="other")
            await world.ask(messages="bad")
        assert (await world.ask()).sent["x-ratelimit-remaining-requests"] == "2"


async def test_tokens_are_settled_by_what_was_used(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, Limits(tokens=Rate(1000, 3600)))
        for _ in range(20):
            # Reserved: some 800 each; used: 5.
            assert (await world.ask(max_tokens=800)).code == "ok"
        done = await world.ask(max_tokens=800)
        assert int(done.sent["x-ratelimit-remaining-tokens"]) > 50


async def test_a_failed_request_costs_no_tokens(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: failure(503)) as world:
        limit(world, Limits(tokens=Rate(1000, 3600)))
        for _ in range(5):
            assert (await world.ask(max_tokens=900)).status == 503


async def test_an_oversized_estimate_waits_for_a_full_bucket(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, Limits(tokens=Rate(100, 3600)))
        first = await world.ask(max_tokens=5000)
        second = await world.ask(max_tokens=5000)
        assert (first.code, second.code) == ("ok", "rate_limit")
        assert json.loads(second.written)["error"]["type"] == "rate_limit_error"


async def test_seats_come_back(tmp_path: Path) -> None:
    ledger = MemoryLedger(lambda: 0.0)
    quotas = Quotas(ledger)
    tenant = Tenant("t", limits=Limits(concurrency=1))
    held = await quotas.enter(demand(holders(tenant)), "a")
    with pytest.raises(RequestError) as caught:
        await quotas.enter(demand(holders(tenant)), "b")
    assert caught.value.code == "concurrency_limit"
    held.close()
    held.close()
    await quotas.enter(demand(holders(tenant)), "b")


def test_a_tenant_without_limits_holds_nothing() -> None:
    assert holders(Tenant("t")) == ()
    assert holders(None) == ()


def test_the_error_and_the_estimate() -> None:
    error = refused(Full(Bucket("tokens", "t/tokens", 100, 60), 12.3), 12.3)
    assert (error.code, error.headers["x-ratelimit-reset-tokens"]) == ("rate_limit", "13s")
    expected = estimate(b"x" * 400, {}, 50)
    assert (expected.input, expected.output) == (100, 50)


async def test_a_keys_own_limit_is_counted_where_everybody_counts() -> None:
    ledger = MemoryLedger(lambda: 0.0)
    one, other = Quotas(ledger), Quotas(ledger)
    own, others = (
        holders(Tenant("t"), None, Principal(name, "t", limits=Limits(concurrency=2)))
        for name in ("k", "other")
    )
    held = await one.enter(demand(own), "a")
    await other.enter(demand(own), "b")
    with pytest.raises(RequestError, match="the limit of 2 concurrency"):
        await one.enter(demand(own), "c")
    await one.enter(demand(others), "d")
    held.close()
    await other.enter(demand(own), "c")


@pytest.mark.parametrize(
    ("workers", "redis", "said"),
    [
        (1, False, "exact, counted in this process"),
        (1, True, "exact, counted in Redis, over all routers"),
        (4, False, "each of 4 workers allows 1/4"),
        (4, True, "limits are exact, counted in Redis"),
    ],
)
def test_how_exact_limits_are(tmp_path: Path, workers: int, redis: bool, said: str) -> None:
    config = sound(tmp_path).snapshot().config
    state = StateSection(redis="env:REDIS", region="self:fra1") if redis else None
    assert said in exactness(config.model_copy(update={"state": state}), workers)
