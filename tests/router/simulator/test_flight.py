"""Requests with classes, in pools, and at endpoints in halves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.model import Priority
from router.capacity.priority import PrioritiesSection
from router.config import Limits
from router.simulator.layout import Layout
from router.simulator.play import Played, play
from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Outage
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask, Days, Trace, classed, days

ENGINE = EngineSpec(max_num_seqs=8, prefill_rate=4000.0, kv_blocks=512, block_size=64)
HOME = "self:fra1"
LIMITS = Limits.model_validate({"queue": "3s", "waiting": 64})
ALIKE = dict.fromkeys(Priority, 1 / 3)


def load(rate: float, seconds: float, *regions: str) -> Trace:
    phases = tuple((region, 0.0) for region in regions or (HOME,))
    made = Days(phases, rate, seconds, swing=0.0)
    return days(made, [(400, 30), (900, 60), (200, 15)], seed=1)


def scenario(layout: str, *regions: str, **more: object) -> Scenario:
    places = grounds(regions or (f"{HOME}=4",), ENGINE, Layout.read(layout))
    classes = PrioritiesSection()
    return Scenario(places, limits=LIMITS, classes=classes, **more)  # type: ignore[arg-type]


def everything_is_counted(played: Played) -> None:
    found = played.result
    ends = found.answers + found.refused + found.lost + played.tally.broken
    assert (found.outside, ends) == (0, found.requests)


def test_the_urgent_go_first_and_the_least_urgent_are_shed() -> None:
    full = {"capacity_requests": "6"}
    played = play(scenario("one", settings=full), classed(load(50, 40), ALIKE, 3))
    everything_is_counted(played)
    most, middle, least = (played.tally.strands[f"class:{one.label}"] for one in Priority)
    assert most.shed / most.asked < 0.1 < least.shed / least.asked
    assert most.shed < middle.shed < least.shed
    assert most.ttft.at(0.5) < middle.ttft.at(0.5)
    assert most.waited.mean < middle.waited.mean
    assert least.answers > 0  # by its least share
    classes = played.result.classes
    assert list(classes) == ["interactive", "standard", "batch"]
    assert sum(float(str(one["tokens"])) for one in classes.values()) == pytest.approx(1)


def test_without_classes_nobody_is_counted_apart() -> None:
    assert play(scenario("one"), load(4, 20)).result.classes == {}


def test_batch_stays_out_of_the_interactive_pool_and_the_urgent_spill() -> None:
    pools, full = "pools=1:1", {"capacity_requests": "6"}
    batch = play(scenario(pools, settings=full), classed(load(20, 20), {Priority.BATCH: 1.0}))
    assert [one["jobs"] for one in batch.result.parts.values()] == [0, batch.result.answers]
    few = classed(load(3, 20), {Priority.INTERACTIVE: 1.0})
    calm = play(scenario(pools, settings=full), few).result.parts
    assert calm["throughput"]["jobs"] == 0
    many = classed(load(30, 20), {Priority.INTERACTIVE: 1.0})
    crowd = play(scenario(pools, settings=full), many).result.parts
    assert int(str(crowd["throughput"]["jobs"])) > 50


def test_a_split_prompt_is_computed_moved_and_answered() -> None:
    """Two ways within the region to either half, one between them."""
    engine = replace(ENGINE, transfer_rate=1000.0)
    split = Scenario(grounds([f"{HOME}=2"], engine, Layout.read("split=1:1")))
    played = play(split, Trace((Ask(1.0, 800, 11, (), HOME, "any"),)))
    prefill, move, step = 0.012 + 800 / 4000, 800 / 1000, 0.012 + 1 / 4000
    assert played.tally.ttft.mean == pytest.approx(prefill + move + step + 3 * 0.001)
    assert played.result.moved == 1
    assert played.result.transfer_p50 == pytest.approx(0.8, rel=0.02)
    assert {k: one["jobs"] for k, one in played.result.parts.items()} == {"prefill": 1, "decode": 1}
    short = play(split, Trace((Ask(1.0, 200, 11, (), HOME, "any"),)))
    assert short.result.moved == 0
    assert {k: one["jobs"] for k, one in short.result.parts.items()} == {"prefill": 0, "decode": 1}
    assert short.tally.ttft.mean == pytest.approx(0.012 + 200 / 4000 + 0.001)


def test_a_cache_that_is_there_is_not_moved_again() -> None:
    """The second prompt begins as the first: seven blocks of eight are known at both halves."""
    engine = replace(ENGINE, transfer_rate=1000.0)
    split = Scenario(grounds([f"{HOME}=2"], engine, Layout.read("split=1:1")), least=16)
    blocks = tuple(range(7))
    asks = tuple(Ask(at, 8 * 64, 5, (*blocks, int(at)), HOME, "any") for at in (10.0, 30.0))
    played = play(split, Trace(asks, 64))
    assert played.result.moved == 2
    assert played.tally.moved.total == pytest.approx((512 + 64) / 1000 + 2 * 0.001)
    assert played.result.hit_rate == pytest.approx(7 / 16)


def test_links_carry_one_cache_after_the_other() -> None:
    engine = replace(ENGINE, transfer_rate=1000.0)
    split = Scenario(grounds([f"{HOME}=2"], engine, Layout.read("split=1:1")))
    asks = tuple(Ask(1.0, 800, 5, (), HOME, "any") for _ in range(4))
    moved = play(split, Trace(asks)).tally.moved
    assert moved.count == 4
    assert moved.most > 4 * 0.8 - 3 * 0.25 - 0.1  # each prompt takes 0.21 s to compute


def test_split_against_as_many_in_one() -> None:
    """No prompt is between two tokens of an answer any more: that is what halves are for."""
    trace = load(16, 60)
    found = {name: play(scenario(name), trace).result for name in ("one", "split=1:1")}
    for one in found.values():
        assert (one.answers, one.replicas) == (one.requests, 4)
    assert found["split=1:1"].itl_p99 < 0.5 * found["one"].itl_p99


@pytest.mark.parametrize("layout", ["one", "pools=1:1", "split=1:1"])
def test_a_lost_region_is_left_and_comes_back(layout: str) -> None:
    regions = (HOME, "self:par1")
    trace = classed(load(4, 60, *regions), ALIKE, 2)
    outage = Outage(HOME, 15.0, 30.0)
    conduct = Conduct(outages=(outage,), sample=1.0)
    found = scenario(layout, *(f"{region}=4" for region in regions))
    played = play(found, trace, conduct)
    everything_is_counted(played)
    assert played.tally.lost == 0
    assert played.tally.retried > 0
    home = [
        (at, sum(one for key, one in loads.items() if key.startswith("fra1")))
        for at, loads, _ in played.samples
    ]
    assert not any(one for at, one in home if 16 < at < 30)
    assert any(one for at, one in home if at > 45)
