"""Loads in virtual time around the router's own selection, health and waiting."""

from __future__ import annotations

import pytest

from router.config import Limits
from router.simulator.play import Played, play
from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Outage
from router.simulator.strategies import STRATEGIES
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask, Days, Trace, days

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
    dark = [loads for at, loads in played.samples if 21 < at < 40]
    assert all(loads[key] == 0 for loads in dark for key in loads if key.startswith("fra1"))
    after = [loads for at, loads in played.samples if at > 60]
    assert any(loads[key] for loads in after for key in loads if key.startswith("fra1"))


def test_too_much_is_refused_with_a_time_and_may_come_again() -> None:
    limits = Limits.model_validate({"queue": "2s", "waiting": 40})
    trace = load(40, 40, "self:fra1")
    scenario = one(1, limits=limits, settings={"capacity_requests": "8"})
    played = play(scenario, trace)
    assert played.result.refused > 0
    assert played.result.answers + played.result.refused == played.result.requests
    patient = play(scenario, trace, Conduct(again=3))
    assert patient.tally.told >= patient.tally.came_back > 0
