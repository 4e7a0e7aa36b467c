"""Failover reports of `reports-d.yaml`, through the whole router."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from regions.fleet import Reading
from regions.health import HealthBook, Sign, Standing
from router.config import Limits, WatchSection
from router.live import Live
from router.narrowing.vetoes import Vetoes
from router.providers.base import Target
from tests.cases.built import BASELINE, Files, built, outcomes
from tests.router.crowd import crowd, hosts, settle_for
from tests.router.house import Plan
from tests.router.scripted import (
    Reply,
    answer,
    failure,
    lost,
    refused,
    scripted,
    silent,
)

Made = Callable[[], Reply | Exception]
SHORT = Limits.model_validate({"queue": "200ms", "deadline": "5s", "first_token": "2s"})


@pytest.mark.parametrize(
    "made", [lambda: failure(500), lambda: failure(503), refused, lost, lambda: failure(429)]
)
async def test_failover_02_the_last_one_is_asked_again(tmp_path: Path, made: Made) -> None:
    async with built(tmp_path, lambda h, n: made() if n < 1 else answer()) as world:
        assert (await world.ask("de")).status >= 500
        for _ in range(3):
            assert (await world.ask("de")).status == 200


@pytest.mark.parametrize("why", ["full", "vetoed"])
async def test_failover_03_our_own_refusal_is_nobodys_failure(tmp_path: Path, why: str) -> None:
    async with scripted(tmp_path, lambda h, n: answer(), Plan(limits=SHORT)) as world:
        live = world.router.live
        one = {"capacity_requests": "1"}
        settle_for(world, fra1=one, par1=one)
        held = []
        if why == "full":
            held = [live.inflight.enter(key, 1) for key in ("fra1", "par1")]
        else:
            live.vetoes.put("quarantine", Vetoes(endpoints={"fra1": "a test", "par1": "a test"}))
        for _ in range(4):
            done = await world.ask()
            assert done.status == 503
            assert int(done.sent["retry-after"]) >= 1
        assert live.health.marked(live.loop_time()) == ()
        for place in held:
            place.close()
        live.vetoes.put("quarantine", Vetoes())
        assert (await world.ask()).status == 200


async def test_failover_03_a_limited_endpoint_is_not_ill(tmp_path: Path) -> None:
    limited: Callable[[str, int], Reply] = lambda h, n: (  # noqa: E731
        answer() if n == 0 else failure(429, retry_after="30")
    )
    async with built(tmp_path, limited) as world:
        assert (await world.ask("de")).status == 200
        for _ in range(2):
            done = await world.ask("de")
            assert (done.status, done.sent["retry-after"]) == (503, "30")
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert live.health.standing("fra", live.loop_time() + 31) is Standing.GOOD


async def test_failover_05_nothing_outlives_an_endpoint(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer()) as world:
        live, watches = world.router.live, world.router.watches
        assert watches is not None
        await world.ask("de")
        live.health.mark("fra", live.loop_time(), 60)
        live.readings.report("fra", Reading(live.loop_time(), 1))
        live.notes["probe:fra"] = "health says down"
        text = BASELINE.replace("  fra: {", "  new: {").replace("[fra, par", "[new, par")
        text = text.replace("[sonnet-eu, fra]", "[sonnet-eu, new]").replace(
            "http://fra1", "http://n"
        )
        await watches.swap.reload(Files(baseline=text).load(tmp_path))
        await watches._prober.look()  # the loops would, within a period
        await watches._prober.scraper.look()
        assert live.health.marked(live.loop_time()) == ()
        assert live.readings.fresh("fra", live.loop_time()) is None
        assert live.silence.heard("fra") == float("-inf")
        assert not [one for one in live.degraded() if "fra" in one]


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_failover_06_clients_mistakes_harm_nobody(tmp_path: Path, status: int) -> None:
    async with scripted(tmp_path, lambda h, n: failure(status) if n < 50 else answer()) as world:
        for _ in range(50):
            assert (await world.ask()).status == status
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert live.health.standing("fra1", live.loop_time()) is Standing.GOOD
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra1"


@pytest.mark.parametrize("status", [401, 404])
async def test_failover_06_what_is_ours_to_repair_marks_nobody(tmp_path: Path, status: int) -> None:
    async with scripted(tmp_path, lambda h, n: failure(status) if n < 50 else answer()) as world:
        for _ in range(50):
            await world.ask()
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()


def test_failover_13_staleness_is_at_least_two_scrapes() -> None:
    with pytest.raises(ValidationError, match=r"0\.2 s is below two scrapes of 1 s"):
        WatchSection.model_validate({"scrape": "1s", "stale": "200ms"})


def saturation(live: Live) -> float:
    """That of `fra1`, as it is scraped."""
    live.refresh_gauges()
    return live.metrics.value("domicile_saturation", ("fra1",))


async def test_failover_15_saturation_is_that_of_real_requests(tmp_path: Path) -> None:
    go = asyncio.Event()

    class Slow(Reply):
        async def chunk(self, until: float) -> bytes:
            await go.wait()
            return await super().chunk(until)

    def script(host: str, number: int) -> Reply:
        made = answer()
        return Slow(200, made.headers, made._chunks)

    limits = SHORT.model_copy(update={"queue": 4.0})
    async with scripted(tmp_path, script, Plan(limits=limits)) as world:
        settle_for(world, fra1={"capacity_requests": "4"}, par1={"capacity_requests": "4"})
        tasks = [asyncio.create_task(world.ask()) for _ in range(16)]
        await asyncio.sleep(0.2)
        live = world.router.live
        assert saturation(live) == 2.0  # four are under way, and half of the eight that wait
        extra = [live.inflight.enter("fra1", 1) for _ in range(4)]
        assert saturation(live) == 3.0
        assert len(world.transport.sent) == 8  # the other half waits
        for one in extra:
            one.close()
        go.set()
        assert {one.status for one in await asyncio.gather(*tasks)} == {200}


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_failover_16_refusals_end_by_themselves(tmp_path: Path, status: int) -> None:
    async with built(tmp_path, lambda h, n: failure(status) if n < 8 else answer()) as world:
        await asyncio.gather(*(world.ask("de") for _ in range(8)))
        live = world.router.live
        assert live.health.standing("fra", live.loop_time() + 2) in (Standing.GOOD, Standing.TRIAL)
        assert (await world.ask("de")).status == 200


@pytest.mark.parametrize(
    "then", [None, Reading(0, running=8), Reading(0, waiting=8), Reading(0), Reading(0, kv=0.9)]
)
async def test_failover_17_what_is_missing_is_unknown(tmp_path: Path, then: Reading | None) -> None:
    async with scripted(tmp_path, lambda h, n: answer(), Plan(limits=SHORT)) as world:
        live = world.router.live
        at = live.loop_time() if then is not None else live.loop_time() - live.readings.stale - 1
        live.readings.report("fra1", Reading(at, 8, 8))
        assert live.balance.condition("fra1").full is (then is not None)
        if then is not None:
            live.readings.report("fra1", then._replace(at=live.loop_time()))
        assert not live.balance.condition("fra1").full
        assert (await world.ask()).status == 200


async def test_failover_20_nothing_vanishes_while_replicas_come_and_go(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply | Exception:
        return refused() if host.endswith("9") else answer()

    async with scripted(tmp_path, script) as world:
        live, stop = world.router.live, asyncio.Event()

        async def churn() -> None:
            turn = 0
            while not stop.is_set():
                turn += 1
                found = {
                    f"fra1/{n}": Target(f"http://f{n}:80") for n in range(turn, turn + turn % 4)
                }
                live.snapshot = replace(
                    live.snapshot, targets={**live.snapshot.targets, "fra1": found}
                )
                live.health.forget(live.snapshot.replica_keys)
                await asyncio.sleep(0.002)

        churning = asyncio.create_task(churn())
        done = []
        for _ in range(15):
            done += await asyncio.gather(*(world.ask() for _ in range(10)))
        stop.set()
        await churning
        assert all(one.ended for one in done)
        assert {one.status for one in done} == {200}
        assert live.inflight.keys == ()
        assert live.concurrency.total == 0


def test_failover_22_a_recovered_replica_gets_load_in_steps() -> None:
    book = HealthBook()
    book.observe("a", Sign.DEAD, 0.0)
    book.observe("a", Sign.OK, 2.0)
    shares = [book.share("a", 2.0 + second) for second in range(7)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.1, 1.0)


async def test_failover_22_and_others_carry_the_rest(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda h, n: answer()) as world:
        keys = crowd(world, "fra1", 4)
        live = world.router.live
        live.health.observe(keys[0], Sign.DEAD, live.loop_time())
        live.health.observe(keys[0], Sign.OK, live.loop_time())
        held = [live.balance.reserve("fra1", 10) for _ in range(40)]
        counted = [live.inflight.requests(key) for key in keys]
        assert counted[0] <= 2
        assert min(counted[1:]) >= 12
        for one in held:
            assert one is not None
            one.close()


async def test_failover_24_too_small_a_window_is_never_asked(tmp_path: Path) -> None:
    text = BASELINE
    for name, window in (("fra", 100000), ("par", 2000), ("iad", 100000)):
        text = text.replace(
            f"  {name}: {{kind: vllm,", f"  {name}: {{kind: vllm, context: {window},"
        )
    prompt = [{"role": "user", "content": "word " * 10000}]
    fails: Callable[[str, int], Reply] = lambda h, n: (  # noqa: E731
        failure(503) if h == "fra1" else answer()
    )
    async with built(tmp_path, fails, Files(baseline=text)) as world:
        done = await world.ask("world", messages=prompt)
        assert done.sent["x-domicile-endpoint"] == "iad"
        alone = await world.ask("eu", messages=prompt)
        assert (alone.status, world.transport.at("par1")) == (503, 0)
        reasons = json.loads(alone.written)["error"]["reasons"]
        assert {"endpoint": "par", "excluded": ["context_too_short"]} in reasons


async def test_failover_26_a_429_is_for_its_own_time_only(tmp_path: Path) -> None:
    large = 0

    async with scripted(tmp_path, lambda h, n: answer()) as world:
        live = world.router.live

        def script(host: str, number: int) -> Reply:
            nonlocal large
            if host == "fra1" and len(world.transport.sent[-1].body) > 5000:
                large += 1
                return failure(429, retry_after="0.2")
            return answer()

        world.transport._script = script
        big = [{"role": "user", "content": "x" * 10000}]
        assert (await world.ask(messages=big)).sent["x-domicile-endpoint"] == "par1"
        assert live.health.marked(live.loop_time()) == ()
        await asyncio.sleep(1.05)
        for _ in range(20):
            assert (await world.ask()).sent["x-domicile-endpoint"] == "fra1"
        assert large == 1


@pytest.mark.parametrize("told", [{"retry_after": "20"}, {}])
async def test_failover_26_small_requests_go_on_while_a_large_one_has_no_room(
    tmp_path: Path, told: dict[str, str]
) -> None:
    async with scripted(tmp_path, lambda h, n: answer()) as world:

        def script(host: str, number: int) -> Reply:
            if host == "fra1" and len(world.transport.sent[-1].body) > 5000:
                return failure(429, **told)
            return answer()

        world.transport._script = script
        big = [{"role": "user", "content": "x" * 10000}]
        for _ in range(3):  # one of them learns it for as long as was told
            done = await world.ask(messages=big)
            assert done.sent["x-domicile-endpoint"] == "par1"
        assert hosts(world)["fra1"] == 1
        for _ in range(100):
            assert (await world.ask()).sent["x-domicile-endpoint"] == "fra1"


async def test_failover_26_what_refuses_small_ones_too_is_left_to_the_next(tmp_path: Path) -> None:
    script = lambda h, n: failure(429, retry_after="20") if h == "fra1" else answer()  # noqa: E731
    async with scripted(tmp_path, script) as world:
        for length in (10000, 5, 10000, 5, 2000, 5, 5, 5):
            asked = [{"role": "user", "content": "x" * length}]
            done = await world.ask(messages=asked)
            assert done.sent["x-domicile-endpoint"] == "par1"
        assert hosts(world)["fra1"] <= 3


async def test_failover_27_one_quick_attempt_elsewhere(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: failure(500) if h == "fra1" else answer()) as world:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(6):
            done = await world.ask("eu")
            assert done.sent["x-domicile-endpoint"] == "par"
        assert loop.time() - began < 1.0
        assert hosts(world)["fra1"] <= 4  # three make a mark; then a trial at most
    assert len(outcomes(tmp_path)[0]["attempts"]) == 2  # type: ignore[arg-type]


async def test_failover_27_silence_goes_elsewhere_too(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda h, n: silent() if h == "fra1" else answer()) as world:
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par1"
