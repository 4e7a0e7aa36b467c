"""Pools: batch stays out of what is kept for people; people spill into what is batch's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import Priority
from regions.health import Sign, Standing
from router.audit.layout import Folder
from router.capacity.load import Held
from router.capacity.pools import NONE, Pools, behind, pooled
from router.capacity.priority import PrioritiesSection
from router.config import Limits
from router.decisions.replay import Replayer
from router.selection import Condition, order
from router.types import Candidacy
from tests.cases.built import BASELINE, MAIN, Files, built, entries
from tests.router.crowd import settle_for
from tests.router.house import Plan
from tests.router.made import candidacy
from tests.router.scripted import Reply, Scripted, answer, scripted

BATCH = ((b"x-domicile-priority", b"batch"),)
LIMITS = Limits.model_validate({"queue": "100ms", "deadline": "5s", "answer": "4s"})


def of(name: str, pool: str | None = None) -> Candidacy:
    found = candidacy(name, "self:fra1")
    settings = {} if pool is None else {"pool": pool}
    return replace(found, endpoint=replace(found.endpoint, settings=settings))


THREE = (of("people", "interactive"), of("both"), of("bulk", "throughput"))


@pytest.mark.parametrize("priority", [Priority.INTERACTIVE, Priority.STANDARD])
def test_the_urgent_go_to_the_throughput_pool_last(priority: Priority) -> None:
    eligible, spare = pooled(THREE, priority)
    assert (eligible, spare) == (THREE, frozenset({"bulk"}))
    good = Condition(Standing.GOOD, 0.0)
    loaded = Condition(Standing.GOOD, 9e9, cost=50.0, near=40)
    states = {"people": loaded, "both": loaded, "bulk": behind(good)}
    assert [c.endpoint.name for c in order(eligible, states.__getitem__)][-1] == "bulk"
    full = {name: one._replace(full=name != "bulk") for name, one in states.items()}
    assert order(eligible, full.__getitem__)[0].endpoint.name == "bulk"
    ill = {n: one._replace(standing=Standing.MARKED) for n, one in states.items() if n != "bulk"}
    assert order(eligible, {**states, **ill}.__getitem__)[0].endpoint.name == "bulk"


def test_batch_stays_out_of_the_interactive_pool() -> None:
    eligible, spare = pooled(THREE, Priority.BATCH)
    assert ([c.endpoint.name for c in eligible], spare) == (["both", "bulk"], NONE)


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("pool", ["interactive", "throughput", None])
def test_one_pool_alone_serves_everybody(priority: Priority, pool: str | None) -> None:
    only = (of("a", pool), of("b", pool))
    assert pooled(only, priority) == (only, NONE)


def test_without_classes_there_are_no_pools() -> None:
    pools = Pools()
    assert pools.of(THREE, None) == (THREE, NONE)
    once = pools.of(THREE, Priority.BATCH)
    assert pools.of(THREE, Priority.BATCH)[0] is once[0]


def classed(world: Scripted) -> None:
    live = world.router.live
    router = live.snapshot.config.router.model_copy(update={"priorities": PrioritiesSection()})
    config = live.snapshot.config.model_copy(update={"router": router})
    live.snapshot = replace(live.snapshot, config=config)


async def test_through_the_router(tmp_path: Path) -> None:
    def well(host: str, number: int) -> Reply:
        return answer()

    def fill(key: str) -> Held:
        return world.router.live.inflight.enter(key, 10)

    async with scripted(tmp_path, well, Plan(limits=LIMITS)) as world:
        settle_for(
            world,
            fra1={"pool": "interactive", "capacity_requests": "1"},
            par1={"pool": "throughput", "capacity_requests": "1"},
        )
        classed(world)
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra1"
        assert (await world.ask(headers=BATCH)).sent["x-domicile-endpoint"] == "par1"
        own, other = fill("fra1"), fill("par1")
        other.close()
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par1"  # spilled
        own.close()
        fill("par1")
        shed = await world.ask(headers=BATCH)  # rather than into the interactive pool
        assert (shed.status, shed.code) == (503, "overloaded")
        assert world.router.live.metrics.value("domicile_shed_total", ("batch",)) == 1
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra1"


async def test_a_batch_request_never_fails_over_into_the_interactive_pool(tmp_path: Path) -> None:
    def ill(host: str, number: int) -> Reply:
        return Reply(500) if host == "par1" else answer()

    async with scripted(tmp_path, ill, Plan(limits=LIMITS)) as world:
        settle_for(world, fra1={"pool": "interactive"}, par1={"pool": "throughput"})
        classed(world)
        assert (await world.ask(headers=BATCH)).status >= 500
        assert world.transport.at("fra1") == 0
        health, now = world.router.live.health, asyncio.get_running_loop().time()
        for _ in range(5):
            health.observe("fra1", Sign.ILL, now)
        assert (await world.ask()).status >= 500 or world.transport.at("par1") > 1


async def test_the_log_shows_who_was_kept_out_and_why(tmp_path: Path) -> None:
    main = MAIN.replace("  region: self:fra1\n", "  region: self:fra1\n  priorities: {}\n")
    baseline = BASELINE.replace("fra: {kind: vllm,", "fra: {kind: vllm, pool: interactive,")
    files = Files(main=main, baseline=baseline)
    async with built(tmp_path, lambda host, number: answer(), files) as world:
        assert (await world.ask("eu", headers=BATCH)).sent["x-domicile-endpoint"] == "par"
        assert (await world.ask("eu")).code == "ok"
    batch, other = (one for one in entries(tmp_path) if one.kind == "decision")
    replayer = Replayer(Folder(tmp_path / "log"))
    assert [replayer.replay(one).differences for one in (batch, other)] == [(), ()]
    who = batch.body["who"]
    assert isinstance(who, dict)
    wrong = {**batch.body, "who": {**who, "priority": "standard"}}
    assert replayer.replay(replace(batch, body=wrong)).differences == ("plan: fra is missing",)
    wrong = {**batch.body, "plan": ["par", "fra"]}
    (told,) = replayer.replay(replace(batch, body=wrong)).differences
    assert told == "plan: `fra` is kept for more urgent requests"
