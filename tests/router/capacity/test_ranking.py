"""Rank through the whole router: full endpoints, waiting, leaving, and honest refusals."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from policies.model import Rule, Tenant
from policies.timed import always
from regions.catalog import Catalog
from regions.prefix import Trail, trail
from router.capacity import ranking
from router.capacity.load import Held
from router.config import Limits
from tests.router.crowd import crowd, settle_for
from tests.router.house import OWN, Plan
from tests.router.scripted import Reply, Scripted, answer, scripted

LIMITS = Limits.model_validate(
    {"queue": "300ms", "deadline": "5s", "first_token": "4s", "answer": "4s"}
)
ONE = {"capacity_requests": "1"}


def well(host: str, number: int) -> Reply:
    return answer()


def fill(world: Scripted, *keys: str) -> list[Held]:
    return [world.router.live.inflight.enter(key, 10) for key in keys]


@pytest.mark.parametrize("apart", [False, True])
async def test_tenants_whose_caches_are_apart_have_no_beginning_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    found: list[Trail] = []

    def kept(*args: Any) -> Trail:
        found.append(trail(*args))
        return found[-1]

    monkeypatch.setattr(ranking, "trail", kept)
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, par1={"cache": "tenant"} if apart else {})
        crowd(world, "fra1", 3)
        for tenant, own in product(("eu", "world"), ("ann", "bob")):
            messages = [{"role": "user", "content": "the secret of the bank " * 60}]
            await world.ask(tenant, (), messages=messages, cache_salt=own)
            await world.ask(tenant, (), messages=messages, cache_salt=own)
    assert len(found) == 8
    assert found[::2] == found[1::2]
    assert [one.owner for one in found[::2]] == ["eu", "eu", "world", "world"]
    assert len({one.blocks for one in found}) == len({one.anchor for one in found})
    assert len({one.blocks for one in found}) == (4 if apart else 1)


async def test_a_full_endpoint_is_passed_by(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE, par1=ONE)
        fill(world, "fra1")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par1"


async def test_full_inside_waits_and_never_goes_outside(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE, par1=ONE)
        held = fill(world, "fra1", "par1")
        asking = asyncio.create_task(world.ask())
        await asyncio.sleep(0.05)
        assert not asking.done()
        held[1].close()
        done = await asking
        assert done.sent["x-domicile-endpoint"] == "par1"
        assert world.transport.at("iad1") == 0


async def test_no_room_in_time_is_503_with_a_time_and_recorded(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE, par1=ONE)
        fill(world, "fra1", "par1")
        done = await world.ask()
        assert (done.status, done.code) == (503, "overloaded")
        assert int(done.sent["retry-after"]) >= 1
        assert "record" in json.loads(done.written)["error"]
        assert world.transport.sent == []


async def test_nobody_waits_behind_another_boundary(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE, par1=ONE, iad1=ONE)
        fill(world, "fra1", "par1")
        waiting = [asyncio.create_task(world.ask("eu")) for _ in range(5)]
        await asyncio.sleep(0.02)
        for _ in range(3):
            done = await asyncio.wait_for(world.ask("world"), 0.2)
            assert done.sent["x-domicile-endpoint"] == "iad1"
        await asyncio.gather(*waiting)


async def test_a_client_that_leaves_the_queue_leaves_nothing(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE, par1=ONE)
        held = fill(world, "fra1", "par1")
        exchange = world.exchange()
        task = asyncio.create_task(world.run(exchange))
        await asyncio.sleep(0.02)
        exchange.leave()
        await asyncio.wait_for(task, 0.1)
        for one in held:
            one.close()
        assert world.router.live.inflight.keys == ()
        assert world.router.live.concurrency.total == 0
        assert (exchange.status, world.transport.sent) == (0, [])


async def test_a_policy_that_comes_while_a_request_waits_is_its_policy(tmp_path: Path) -> None:
    """All that wait at once: where there is room by the new one, and not at all if it says so."""
    in_germany = Rule("in-germany", process=always(Catalog.load(OWN).atlas.country("DE")))
    limits = LIMITS.model_copy(update={"queue": 60.0, "deadline": 60.0})
    async with scripted(tmp_path, well, Plan(limits=limits, rules=(in_germany,))) as world:
        settle_for(world, fra1=ONE)
        fill(world, "fra1")
        live, room = world.router.live, world.router.live.balance
        waiting = [asyncio.create_task(world.ask("eu")) for _ in range(20)]
        gone = asyncio.create_task(world.ask("world"))
        await asyncio.sleep(0.05)
        assert room.inflight.keys == ("fra1",)
        tenants = {**live.snapshot.policy.tenants, "world": Tenant("world")}
        policy = replace(live.snapshot.policy, digest="q" * 64, rules=(), tenants=tenants)
        live.snapshot = replace(live.snapshot, policy=policy)
        done = await asyncio.wait_for(asyncio.gather(*waiting), 10)
        assert {one.sent["x-domicile-endpoint"] for one in done} == {"par1"}
        assert (await asyncio.wait_for(gone, 10)).status == 403
        assert room.inflight.keys == ("fra1",)


async def test_goodput_under_overload_stays(tmp_path: Path) -> None:
    """Three times what fits: everything is answered or refused with a time, and nothing leaks."""
    # Who waits is refused for want of room here, never for the pace of this machine.
    patient = {"waiting": 20, "queue": 10.0, "deadline": 30.0}
    plan = Plan(limits=LIMITS.model_copy(update=patient))
    async with scripted(tmp_path, well, plan) as world:
        settle_for(world, fra1={"capacity_requests": "4"}, par1={"capacity_requests": "4"})
        done = await asyncio.gather(*(world.ask() for _ in range(100)))
        good = [one for one in done if one.status == 200]
        assert len(good) >= 28  # those in place, and those who waited
        for one in done:
            assert one.status == 200 or one.code == "overloaded"
            assert one.status == 200 or int(one.sent["retry-after"]) >= 1
        assert world.router.live.inflight.keys == ()


async def test_expected_output_is_learned(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        lengths = world.router.live.balance.lengths
        assert lengths.expect("assistant", "eu", 9000) == 9000
        await world.ask(max_tokens=9000)
        assert lengths.expect("assistant", "eu", 9000) == 2
        assert lengths.expect("assistant", "us", 9000) == 9000


async def test_all_marked_is_tried_and_does_not_wait(tmp_path: Path) -> None:
    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1=ONE)
        live = world.router.live
        for key in ("fra1", "par1"):
            live.health.mark(key, live.loop_time(), 30)
        fill(world, "fra1", "par1")
        assert (await world.ask()).status == 200


async def test_a_session_of_another_tenant_is_another_session(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        crowd(world, "fra1", 64)
        session = ((b"x-domicile-session", b"mine"),)
        seen = []
        for tenant in ("eu", "world", "eu", "world"):
            await world.ask(tenant, session)
            seen.append(world.transport.sent[-1].origin.host)
        assert (seen[0], seen[1]) == (seen[2], seen[3])
        assert seen[0] != seen[1]


async def test_nobody_waits_by_a_policy_that_was_replaced(tmp_path: Path) -> None:
    """Not until the next look either, when one of the new policy may stand first in line."""
    limits = LIMITS.model_copy(update={"queue": 60.0, "deadline": 60.0})
    async with scripted(tmp_path, well, Plan(limits=limits)) as world:
        settle_for(world, fra1=ONE, par1=ONE)
        held, live = fill(world, "fra1", "par1"), world.router.live
        room = world.router.pipeline._steps.ranking.placing.room  # type: ignore[attr-defined]
        waiting = [asyncio.create_task(world.ask("eu")) for _ in range(5)]
        await asyncio.sleep(0.05)
        assert len(room) == 5
        policy = replace(live.snapshot.policy, digest="q" * 64)
        live.snapshot = replace(live.snapshot, policy=policy)
        for forget in live.replaced:
            forget()
        assert len(room) == 0
        for one in held:
            one.close()
        assert {one.code for one in await asyncio.gather(*waiting)} == {"ok"}
