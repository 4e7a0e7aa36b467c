"""Loads in virtual time around the router's own selection, health and waiting."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import httpx
import pytest

from bench.lost import crest
from router.config import Limits
from router.simulator.play import Played, play
from router.simulator.scenario import Scenario, grounds, round_trip
from router.simulator.station import Conduct, Outage
from router.simulator.strategies import STRATEGIES
from router.simulator.tally import shares
from router.simulator.timing import Engine, EngineSpec, JobTimes, Progress
from router.simulator.traces import Ask, Days, Trace, days, ideal_hits
from tests.router.house import KEYS, house
from tests.router.house import Plan as Houses

ENGINE = EngineSpec(max_num_seqs=8, prefill_rate=4000.0, kv_blocks=512, block_size=64)
TALK = [(400, 30), (900, 60), (200, 15)]


def load(rate: float, seconds: float, *regions: str, bound: float = 0.0) -> Trace:
    phases = tuple((region, 8.0 * n) for n, region in enumerate(regions))
    return days(Days(phases, rate, seconds, day=seconds, bound=bound), TALK, seed=1)


def one(count: int, **more: object) -> Scenario:
    return Scenario(grounds([f"self:fra1={count}"], ENGINE), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_request_is_answered_and_equal_seeds_are_equal(strategy: str) -> None:
    def go() -> Played:
        return play(one(3), load(6, 60, "self:fra1"), Conduct(strategy))

    played = go()
    assert played.result == go().result
    assert played.result.answers == played.result.requests > 300
    assert (played.result.lost, played.result.refused, played.result.outside) == (0, 0, 0)
    assert 0 < played.result.ttft_p50 <= played.result.ttft_p99
    assert 0.1 < played.result.utilisation < 1


def test_an_idle_engine_s_time_is_the_model_s() -> None:
    trace = Trace((Ask(1.0, 800, 11, (), "self:fra1", "any"),))
    played = play(one(1), trace)
    assert played.result.ttft_p50 == pytest.approx(0.012 + 800 / 4000 + 0.001, rel=0.011)
    assert played.result.queueing_p99 < 0.003
    assert played.result.itl_p50 == pytest.approx(0.0124, rel=0.011)


def test_more_replicas_make_it_quicker() -> None:
    trace = load(12, 60, "self:fra1")
    few, many = (play(one(count), trace).result for count in (2, 6))
    assert many.ttft_p99 < few.ttft_p99
    assert many.utilisation < few.utilisation


def test_nobody_bound_leaves_and_the_others_may() -> None:
    regions = ("self:fra1", "self:iad1", "self:nrt1")
    scenario = Scenario(grounds([f"{region}=1" for region in regions], ENGINE))
    trace = load(4, 90, *regions, bound=0.4)
    at_home = play(scenario, trace, Conduct(spill=False))
    assert (at_home.result.spilled, at_home.result.outside) == (0, 0)
    played = play(scenario, trace)
    assert played.result.outside == 0
    assert 0 < played.result.spilled < 0.6


def test_a_lost_region_is_left_and_comes_back() -> None:
    scenario = Scenario(grounds(["self:fra1=3", "self:par1=3"], ENGINE))
    outage = Outage("self:fra1", 20.0, 40.0)
    trace = load(4, 80, "self:fra1", "self:par1")
    played = play(scenario, trace, Conduct(outages=(outage,), sample=1.0))
    tally = played.tally
    assert tally.lost == 0
    assert tally.retried > 0
    assert tally.answers + tally.broken == played.result.requests
    dark = [loads for at, loads, _ in played.samples if 21 < at < 40]
    assert all(loads[key] == 0 for loads in dark for key in loads if key.startswith("fra1"))
    after = [loads for at, loads, _ in played.samples if at > 60]
    assert any(loads[key] for loads in after for key in loads if key.startswith("fra1"))


@pytest.mark.parametrize("seed", [2, 6])
def test_a_region_that_returns_is_met_by_no_herd(seed: int) -> None:
    """Twelve replicas come back: from 0.4 s after all take part, and none has twice the mean.

    They are up at 20 s, but asked when a mark ends: marks of 1, 2, 4 and 8 s from the loss at 8 s
    on end at 23 s at the latest with the region's own router, which loses them first. Another
    router's may end before, by when it first went there: it is no part of what is held here.
    """
    scenario = Scenario(grounds(["self:fra1=12", "self:par1=12", "self:sto1=12"], ENGINE))
    regions = ("self:fra1", "self:par1", "self:sto1")
    outage = Outage("self:fra1", 8.0, 20.0)
    trace = days(Days(tuple((r, 0.0) for r in regions), 55, 32, swing=0.0), TALK, seed=seed)
    played = play(scenario, trace, Conduct(outages=(outage,), sample=0.5))
    assert (played.result.outside, played.tally.lost) == (0, 0)
    looks = [
        (at, [load for key, load in loads.items() if key.startswith("fra1")], loads)
        for at, loads, _ in played.samples
    ]
    tried = min(at for at, home, _ in looks if at > 20 and any(home))
    assert tried <= 23.5
    for _, home, loads in (look for look in looks if tried + 0.4 < look[0] < tried + 3.1):
        assert min(home) > 0
        assert max(home) <= 2 * fmean(loads.values())


@pytest.mark.parametrize(("each", "routers", "rate"), [(8, 2, 50.0), (16, 1, 125.0)])
def test_while_a_region_is_lost_and_when_it_returns_no_replica_drowns(
    each: int, routers: int, rate: float
) -> None:
    """Routers that share nothing, and see each other's load a second late, make no herd: averaged
    over any second, none has more than twice the mean of those that work."""
    regions = ("self:fra1", "self:par1", "self:sto1", "self:iad1")
    scenario = Scenario(grounds([f"{r}={each}" for r in regions], EngineSpec()), routers=routers)
    load = Days(tuple((r, 0.0) for r in regions), rate, 18, swing=0.0, bound=0.1)
    outage = Outage("self:fra1", 3.0, 10.0)
    trace = days(load, [(300, 40), (600, 60), (150, 20)], seed=1)
    played = play(scenario, trace, Conduct(outages=(outage,), sample=0.1))
    assert played.result.outside == 0
    home = [
        at for at, now, _ in played.samples if at > 10 and any(now[f"fra1/{n}"] for n in (0, 1))
    ]
    assert all(any(now.values()) for at, now, _ in played.samples if 5 <= at < 18)
    assert crest(played.samples, 5, 10) <= 2
    assert crest(played.samples, home[0], 18) <= 2


def test_too_much_is_refused_with_a_time_and_may_come_again() -> None:
    limits = Limits.model_validate({"queue": "2s", "waiting": 40})
    trace = load(40, 40, "self:fra1")
    scenario = one(1, limits=limits, settings={"capacity_requests": "8"})
    played = play(scenario, trace)
    assert played.result.refused > 0
    assert played.result.answers + played.result.refused == played.result.requests
    patient = play(scenario, trace, Conduct(again=3))
    assert patient.tally.told >= patient.tally.came_back > 0


def test_a_request_that_no_engine_can_hold_is_refused_before() -> None:
    with pytest.raises(ValueError, match="50010 tokens, where 32768"):
        play(one(1), Trace((Ask(0.0, 50_000, 10, (), "self:fra1", "any"),)))


def conversations(count: int, turns: int) -> Trace:
    """Talks that grow by each turn, all behind one system prompt; blocks of 64 tokens."""
    asks = []
    for talk in range(count):
        blocks: tuple[int, ...] = (0,)
        for turn in range(turns):
            blocks += tuple(1 + (talk * turns + turn) * 100 + n for n in range(6))
            at = talk * 0.5 + turn * (2.5 + talk % 7 * 0.2)
            asks.append(Ask(at, len(blocks) * 64 + 9, 12, blocks, "self:fra1", "any"))
    return Trace(tuple(sorted(asks, key=lambda ask: ask.at)), 64)


def test_caches_are_used_and_nobody_waits_for_them() -> None:
    trace = conversations(60, 6)
    found = {name: play(one(4), trace, Conduct(name)).result for name in ("ours", "round-robin")}
    ideal = ideal_hits(trace.asks, 64, 4 * ENGINE.kv_blocks)
    assert ideal > 0.4
    assert found["ours"].hit_rate >= 0.9 * ideal
    assert found["round-robin"].hit_rate < 0.75 * ideal
    assert found["ours"].queueing_p99 <= found["round-robin"].queueing_p99 / 1.5


def test_routers_that_share_nothing_find_what_others_sent() -> None:
    trace = conversations(40, 6)
    found = play(one(8, routers=4), trace).result
    assert found.hit_rate >= 0.83 * ideal_hits(trace.asks, 64, 8 * ENGINE.kv_blocks)


def test_three_times_too_much_keeps_the_goodput_and_the_weights() -> None:
    limits = Limits.model_validate({"queue": "1s", "waiting": 64})
    weights = {"gold": 2, "silver": 1, "bronze": 1}

    def at(rate: float) -> Played:
        names = tuple(weights)
        asks = load(rate, 60, "self:fra1").asks
        shared = (replace(ask, tenant=names[n % 3]) for n, ask in enumerate(asks))
        settings = {"capacity_requests": "8"}
        scenario = one(2, limits=limits, settings=settings, weights=weights)
        return play(scenario, Trace(tuple(shared)))

    peak = max(at(rate).result.goodput for rate in (8, 12, 16))
    flood = at(48)
    assert flood.result.refused > flood.result.answers
    assert flood.result.goodput >= 0.9 * peak
    assert flood.tally.good.total() >= 0.97 * flood.tally.ttft.count
    got = shares(flood.tally.tokens)
    for name, weight in weights.items():
        assert got[name] >= weight / 4 - 0.05


def test_who_comes_again_as_told_is_taken() -> None:
    limits = Limits.model_validate({"queue": "1s", "waiting": 32})
    storm, calm = load(40, 20, "self:fra1").asks, load(1, 100, "self:fra1").asks
    trace = Trace((*storm, *(replace(ask, at=ask.at + 20) for ask in calm)))
    scenario = one(2, limits=limits, settings={"capacity_requests": "8"})
    played = play(scenario, trace, Conduct(again=1))
    assert played.tally.told > 200
    assert played.tally.came_back >= 0.5 * played.tally.told


def test_regions_together_need_less_than_each_for_itself() -> None:
    regions = ("self:fra1", "self:iad1", "self:nrt1")
    trace = load(5, 90, *regions, bound=0.2)

    def good(size: int, spill: bool) -> float:
        scenario = Scenario(grounds([f"{region}={size}" for region in regions], ENGINE))
        found = play(scenario, trace, Conduct(spill=spill)).result
        assert found.outside == 0
        return found.good

    together, alone = good(1, spill=True), good(1, spill=False)
    assert together > alone + 0.02


async def asked(client: httpx.AsyncClient, at: float, number: int) -> None:
    """One streamed request at its time, read to its end."""
    await asyncio.sleep(at)
    body = {
        "model": "assistant", "stream": True, "max_tokens": 10 + number % 7,
        "messages": [{"role": "user", "content": f"{number} question " * (60 + number % 5 * 40)}],
    }  # fmt: skip
    answer = await client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200
    assert answer.text.rstrip().endswith("data: [DONE]")


async def test_it_agrees_with_the_router_over_a_fleet_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real thing, over HTTP: the same load in virtual time takes what its engine took.

    Both are told in the engine's own time, so that it doesn't matter how busy this machine is:
    whenever a request really reached the engine, there it is played.
    """
    took: list[JobTimes] = []
    advance = Engine.advance

    def watched(engine: Engine, now: float) -> list[Progress]:
        out = advance(engine, now)
        took.extend(one.times for one in out if one.times is not None)
        return out

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "advance", watched)
        async with house(tmp_path, Houses(regions=("self:fra1",))) as real:
            headers = {"authorization": f"Bearer {KEYS['eu']}"}
            async with httpx.AsyncClient(base_url=real.url, headers=headers, timeout=60) as client:
                await asyncio.gather(*(asked(client, n * 0.02, n) for n in range(24)))
    assert len(took) == 24
    link = round_trip("self:fra1", "self:fra1")
    began = min(times.submitted for times in took) - 1
    asks = [
        Ask(
            t.submitted - link / 2 - began, t.prompt_tokens, t.output_tokens, (), "self:fra1", "any"
        )
        for t in sorted(took, key=lambda times: times.submitted)
    ]
    scenario = Scenario(grounds(["self:fra1=1"], EngineSpec()))
    # Its own event loop: on a thread, for this one runs.
    played = await asyncio.to_thread(play, scenario, Trace(tuple(asks)))
    assert played.result.answers == len(took)
    firsts = sorted(times.first_token - times.submitted + link for times in took)
    wholes = sorted(times.finished - times.submitted + link for times in took)
    for found, truth in ((played.tally.ttft, firsts), (played.tally.lasted, wholes)):
        assert found.mean == pytest.approx(sum(truth) / len(truth), rel=0.02)
        for share in (0.25, 0.5, 0.75, 1.0):
            assert found.at(share) == pytest.approx(truth[round(share * len(truth)) - 1], rel=0.03)
