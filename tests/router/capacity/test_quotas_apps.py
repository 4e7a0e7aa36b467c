"""Limits of an app beside its tenant's, and budgets in dollars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import App, Limits, Rate, Tenant
from regions.model import Price
from router.capacity.quotas import Quotas, demand, holders
from router.errors import RequestError
from router.state.memory import MemoryLedger
from tests.router.scripted import Scripted, answer, failure, scripted

MICRO = 1_000_000


async def refused(quotas: Quotas, tenant: Tenant, app: App | None) -> str:
    """The code that a request is refused with; empty for one that may go on."""
    try:
        await quotas.enter(demand(holders(tenant, app)), "lease")
    except RequestError as error:
        return error.code
    return ""


async def test_an_apps_limit_counts_beside_its_tenants() -> None:
    quotas = Quotas(MemoryLedger(lambda: 0.0))
    tenant = Tenant("t", limits=Limits(requests=Rate(5, 60)))
    crm, free = App("crm", limits=Limits(requests=Rate(2, 60))), App("free")
    assert [await refused(quotas, tenant, crm) for _ in range(4)] == ["", "", *["rate_limit"] * 2]
    # What the app was refused took nothing of the tenant's.
    assert [await refused(quotas, tenant, free) for _ in range(4)] == ["", "", "", "rate_limit"]
    assert await refused(quotas, Tenant("other"), crm) == ""


async def test_an_app_of_a_tenant_without_limits_has_its_own() -> None:
    quotas = Quotas(MemoryLedger(lambda: 0.0))
    crm = App("crm", limits=Limits(concurrency=1))
    held = await quotas.enter(demand(holders(Tenant("t"), crm)), "a")
    assert await refused(quotas, Tenant("t"), crm) == "concurrency_limit"
    held.close()
    assert await refused(quotas, Tenant("t"), crm) == ""


@pytest.mark.parametrize(("own", "apps", "told"), [(100, 10, "9"), (10, 100, "9")])
async def test_headers_show_the_limit_with_less_left(own: int, apps: int, told: str) -> None:
    quotas = Quotas(MemoryLedger(lambda: 0.0))
    tenant = Tenant("t", limits=Limits(requests=Rate(own, 60)))
    app = App("a", limits=Limits(requests=Rate(apps, 60)))
    held = await quotas.enter(demand(holders(tenant, app)), "a")
    assert held.headers["x-ratelimit-remaining-requests"] == told


async def test_both_are_settled_and_given_back() -> None:
    ledger = MemoryLedger(lambda: 0.0)
    quotas = Quotas(ledger)
    both = Limits(tokens=Rate(1000, 60), dollars=Rate(10 * MICRO, 60))
    tenant, app = Tenant("t", limits=both), App("a", limits=both)
    for used in (None, (100, 2 * MICRO)):
        held = await quotas.enter(demand(holders(tenant, app)), "a")
        await held.tokens(800, 9 * MICRO)
        if used is not None:
            held.settle(*used)
            held.settle(*used)
        held.close()
        held.close()
    left = {key: round(level) for key, (level, *_) in ledger._levels.items()}
    assert left == {
        "t/tokens": 900,
        "t/app:a/tokens": 900,
        "t/dollars": 8 * MICRO,
        "t/app:a/dollars": 8 * MICRO,
    }


def budget(world: Scripted, micro: int, price: Price) -> None:
    """Give the tenant `eu` a budget an hour, and all endpoints a price."""
    policy = world.router.live.snapshot.policy
    tenants = dict(policy.tenants)
    tenants["eu"] = replace(tenants["eu"], limits=Limits(dollars=Rate(micro, 3600)))
    endpoints = {name: replace(one, price=price) for name, one in policy.endpoints.items()}
    changed = replace(policy, tenants=tenants, endpoints=endpoints)
    world.router.live.snapshot = replace(world.router.live.snapshot, policy=changed)


async def test_a_budget_is_spent_by_what_answers_cost(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        budget(world, 10_000, Price(100.0, 100.0))  # 5 tokens of each answer: 500 of them
        answers = [await world.ask(max_tokens=8) for _ in range(25)]
        good = [done for done in answers if done.code == "ok"]
        assert 8 <= len(good) <= 19
        assert "x-ratelimit-limit-dollars" not in good[0].sent
        last = answers[-1]
        assert (last.status, last.code) == (429, "budget_spent")
        assert b"budget of 0.01 dollars" in last.written
        assert 1 <= int(last.sent["retry-after"]) <= 3700
        assert (await world.ask("world")).code == "ok"


async def test_what_fails_or_has_no_price_spends_nothing(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: failure(503)) as world:
        budget(world, 10_000, Price(100.0, 100.0))
        assert {(await world.ask(max_tokens=50)).status for _ in range(6)} == {503}
    (tmp_path / "free").mkdir()
    async with scripted(tmp_path / "free", lambda host, number: answer()) as world:
        budget(world, 10, Price())
        assert {(await world.ask(max_tokens=50)).code for _ in range(6)} == {"ok"}
