"""Reports on limits, retries, probes, balancing and queues of `reports-d.yaml`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from router.config import Limits
from router.exposition import rendered
from router.metrics import ALL
from router.state.ledger import Bucket, Full, Seats, Take
from router.state.memory import MemoryLedger
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from router.watch.probe import Prober, takes_canary
from router.watch.scrape import Scraper, own_replicas
from tests.cases.built import BASELINE, Files, built, outcomes
from tests.router.crowd import crowd, hosts, settle_for
from tests.router.house import Plan
from tests.router.scripted import (
    Reply,
    Scripted,
    ScriptedTransport,
    answer,
    failure,
    lost,
    scripted,
    silent,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


LIMITED = BASELINE.replace(
    "  eu: {grant: {process: EU, retain: EU}}",
    "  eu: {grant: {process: EU, retain: EU}, limits: {LIMITS}}",
)


async def test_limits_01_parallel_requests_are_counted_first(tmp_path: Path) -> None:
    files = Files(baseline=LIMITED.replace("{LIMITS}", "{tokens: 100/min}"))
    async with built(tmp_path, lambda h, n: answer(), files) as world:
        done = await asyncio.gather(*(world.ask("eu", max_tokens=175) for _ in range(5)))
        assert sorted(one.status for one in done) == [200, 429, 429, 429, 429]
        assert len(world.transport.sent) == 1


async def test_limits_02_what_is_refused_takes_nothing() -> None:
    ledger = MemoryLedger(Clock())
    requests, seat = Bucket("requests", "t/r", 1, 60), Seats("concurrency", "t/o", 1)
    await ledger.take([Take(requests, 1)], [seat], "a")
    with pytest.raises(Full):
        await ledger.take([Take(requests, 1)], [seat], "b")
    # The first ends without having run: what it took is given back, what the second wanted isn't.
    ledger.leave([seat], "a")
    ledger.settle([Take(requests, -1)])
    await ledger.take([Take(requests, 1)], [seat], "c")


async def test_limits_02_through_the_router(tmp_path: Path) -> None:
    files = Files(baseline=LIMITED.replace("{LIMITS}", "{requests: 2/min, concurrency: 1}"))
    async with built(tmp_path, lambda h, n: answer(), files) as world:
        first = asyncio.create_task(world.ask("eu"))
        await asyncio.sleep(0)
        second = await world.ask("eu")
        assert (await first).status == 200
        assert second.code == "concurrency_limit"
        assert (await world.ask("eu")).status == 200


async def test_limits_03_each_limit_has_its_own_clock() -> None:
    clock = Clock()
    ledger = MemoryLedger(clock)
    both = (Bucket("requests", "t/r", 60, 60), Bucket("tokens", "t/t", 1000, 60))
    for _ in range(5 * 60):  # five minutes, one request a second at nine tenths of the tokens
        await ledger.take([Take(both[0], 1), Take(both[1], 15)], [], "a")
        clock.now += 1.0


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("{large: [fra, par, iad]}", "{large: [fra, nowhere, iad]}", "nowhere"),
        ("{grant: {process: DE}}", "{grant: {process: atlantis}}", "atlantis"),
        ("{process: EU, retain: EU}}", "{process: EU, retain: EU}, models: [ghost]}", "ghost"),
    ],
)
def test_limits_08_a_reference_that_leads_nowhere(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    assert old in BASELINE
    with pytest.raises(Exception, match=named):
        Files(baseline=BASELINE.replace(old, new)).load(tmp_path)


# --- probes -----------------------------------------------------------------------------------


class Asked(ScriptedTransport):
    """Keeps every request, of whatever kind."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        self.sent.append(request)
        made = self._script(request.origin.host, 0)
        if isinstance(made, Exception):
            raise made
        return made


def prober(
    world: Scripted, script: Callable[[str, int], Reply | Exception]
) -> tuple[Prober, Asked]:
    live, transport = world.router.live, Asked(script)
    one = Prober(live, transport, Scraper(live, transport), 1.0)
    one._born = live.loop_time() - 3600  # nothing was heard of anybody for an hour
    return one, transport


async def round_of(one: Prober) -> None:
    await one.look()
    await one.scraper.look()
    await one.listen()
    await asyncio.gather(*one._running.values())


async def test_probes_01_a_managed_endpoint_is_asked_for_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer()) as world:
        one, transport = prober(world, lambda h, n: answer())
        for _ in range(3):
            await round_of(one)
        assert {r.origin.host for r in transport.sent} == {"fra1", "par1", "iad1"}


async def test_probes_01_a_canary_is_opt_in_bounded_and_counted(tmp_path: Path) -> None:
    text = BASELINE.replace("openai-eu: {kind: openai,", "openai-eu: {kind: openai, probe: canary,")
    async with built(tmp_path, lambda h, n: answer(), Files(baseline=text)) as world:
        endpoints = world.router.live.snapshot.policy.endpoints
        assert takes_canary(endpoints["openai-eu"])
        assert not takes_canary(endpoints["openai-world"])
        one, transport = prober(world, lambda h, n: answer())
        for _ in range(5):
            await round_of(one)
        paid = [r for r in transport.sent if r.origin.host == "eu.api.openai.com"]
        assert len(paid) == 1  # one a minute at most
        shown = rendered(world.router.live.metrics.read(), ALL).decode()
        assert (
            'domicile_probes_total{endpoint="openai-eu",probe="canary",result="alive"} 1' in shown
        )


@pytest.mark.parametrize(("status", "marked"), [(400, False), (422, False)])
async def test_probes_02_a_refused_limit_is_an_answer(
    tmp_path: Path, status: int, marked: bool
) -> None:
    async with built(tmp_path, lambda h, n: answer()) as world:
        one, _ = prober(world, lambda h, n: failure(status))
        for _ in range(3):
            await round_of(one)
        live = world.router.live
        assert bool(live.health.marked(live.loop_time())) is marked


@pytest.mark.parametrize("status", [401, 403])
async def test_probes_03_a_refused_credential_is_told(tmp_path: Path, status: int) -> None:
    async with built(tmp_path, lambda h, n: answer()) as world:
        one, _ = prober(world, lambda h, n: failure(status))
        await round_of(one)
        live = world.router.live
        assert "fra" in live.health.marked(live.loop_time())
        assert any("fra" in note and "auth" in note for note in live.degraded())


async def test_probes_04_the_old_ones_are_asked_no_more(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer()) as world:
        assert world.router.watches is not None
        text = BASELINE
        for host in ("fra1", "par1", "iad1"):
            text = text.replace(f'"http://{host}"', f'"http://new-{host}"')
        await world.router.watches.swap.reload(Files(baseline=text).load(tmp_path))
        one, transport = prober(world, lambda h, n: answer())
        await round_of(one)
        await world.ask("eu")
        asked = {r.origin.host for r in [*transport.sent, world.transport.sent[-1]]}
        assert asked == {"new-fra1", "new-par1", "new-iad1"}
        assert len(list(own_replicas(world.router.live.snapshot))) == 3


# --- retries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [False, True])
async def test_retries_01_a_lost_answer_is_run_again_only_where_allowed(
    tmp_path: Path, allowed: bool
) -> None:
    text = BASELINE
    if allowed:
        text = text.replace(
            "project_residency: eu,", 'project_residency: eu, retry_unknown: "true",'
        )
    files = Files(baseline=text)
    async with built(
        tmp_path, lambda h, n: lost() if h == "eu.api.openai.com" else answer(), files
    ) as world:
        done = await world.ask("world", model="openai")
        runs = len(world.transport.sent)
    assert (done.status == 200, runs) == (allowed, 2 if allowed else 1)
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert len(attempts) == runs  # type: ignore[arg-type]


BEHIND = b'{"error": {"message": "upstream request failed"}}'


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(
    ("status", "body"), [(408, b"{}"), (424, b"{}"), (499, b"{}"), (400, BEHIND)]
)
async def test_retries_01_nor_is_a_4xx_of_a_model_that_may_have_worked(
    tmp_path: Path, status: int, body: bytes, allowed: bool
) -> None:
    """Bedrock's ModelTimeoutException is a 408, its ModelErrorException a 424."""
    text = BASELINE
    if allowed:
        text = text.replace(
            "project_residency: eu,", 'project_residency: eu, retry_unknown: "true",'
        )

    def script(host: str, number: int) -> Reply:
        return Reply(status, (), [body]) if host == "eu.api.openai.com" else answer()

    async with built(tmp_path, script, Files(baseline=text)) as world:
        done = await world.ask("world", model="openai")
        runs = len(world.transport.sent)
    assert (done.status, runs) == ((200, 2) if allowed else (502, 1))


async def test_retries_03_a_400_is_asked_for_once(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: failure(400)) as world:
        assert (await world.ask("world")).status == 400
        assert len(world.transport.sent) == 1


@pytest.mark.parametrize(("model", "runs"), [("assistant", 2), ("openai", 1)])
async def test_retries_03_silence_is_of_unknown_fate(tmp_path: Path, model: str, runs: int) -> None:
    first = {"fra1", "eu.api.openai.com"}
    async with built(tmp_path, lambda h, n: silent() if h in first else answer()) as world:
        await world.ask("world", model=model, stream=False)
        assert len(world.transport.sent) == runs


async def test_retries_05_a_long_wait_is_told_not_slept(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: failure(429, retry_after="3600")) as world:
        loop = asyncio.get_running_loop()
        began = loop.time()
        done = await world.ask("eu")
        assert loop.time() - began < 0.5
        assert (done.status, done.sent["retry-after"]) == (503, "3600")
        assert done.sent["x-should-retry"] == "false"  # clients would ask in a moment otherwise


# --- balancing and queues -----------------------------------------------------------------------


async def test_balancing_06_routers_that_share_nothing_spread_alike(tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        async with scripted(folder, lambda h, n: answer()) as world:
            crowd(world, "fra1", 8)
            crowd(world, "par1", 8)
            await asyncio.gather(*(world.ask() for _ in range(100)))
            counted += hosts(world)
    assert len(counted) == 16
    assert max(counted.values()) / (sum(counted.values()) / 16) < 1.3


async def test_disconnect_05_who_leaves_the_queue_is_gone(tmp_path: Path) -> None:
    limits = Limits.model_validate({"queue": "3s", "deadline": "5s"})
    async with scripted(tmp_path, lambda h, n: answer(), Plan(limits=limits)) as world:
        one = {"capacity_requests": "1"}
        settle_for(world, fra1=one, par1=one)
        live = world.router.live
        held = [live.inflight.enter(key, 1) for key in ("fra1", "par1")]
        leaving = [world.exchange() for _ in range(20)]
        tasks = [asyncio.create_task(world.run(one)) for one in leaving]
        staying = asyncio.create_task(world.ask())
        await asyncio.sleep(0.05)
        for exchange in leaving:
            exchange.leave()
        await asyncio.wait_for(asyncio.gather(*tasks), 0.5)
        assert live.concurrency.total == 1
        held[0].close()
        assert (await staying).status == 200
        assert len(world.transport.sent) == 1
        held[1].close()
        assert live.inflight.keys == ()
