"""What is counted of a run, and how it is shown."""

from __future__ import annotations

import pytest

from policies.model import Priority
from router.simulator.leaping import LeapingEngine
from router.simulator.tally import Tally, cold_prefill, result, shares
from router.simulator.timing import EngineSpec, Job
from router.simulator.traces import Ask

SPEC = EngineSpec(prefill_rate=1000.0, step_floor=0.01, batch_tokens=100)


def test_a_cold_prefill_is_what_an_idle_engine_takes() -> None:
    engine = LeapingEngine(SPEC)
    engine.submit(Job("a", 250, 1), 0.0)
    ended = 0.0
    while engine.next_at is not None:
        ended = engine.next_at
        engine.advance(ended)
    assert cold_prefill(SPEC, 250) == pytest.approx(ended)


def test_a_run_s_numbers() -> None:
    tally, engine = Tally(target=0.5), LeapingEngine(SPEC)
    for seconds in (0.3, 0.4, 2.0):
        ask = Ask(0.0, 100, 10, (), "self:fra1", "any")
        tally.asked[ask.tenant] += 1
        tally.first(ask, seconds, SPEC)
        tally.whole(ask, "self:par1", 9.0)
    found = result("ours", "one", tally, [("all", engine)], 10.0)
    assert (found.requests, found.answers, found.spilled) == (3, 3, 1.0)
    assert found.good == pytest.approx(2 / 3)
    assert found.goodput == pytest.approx(0.2)
    assert found.ttft_p50 == pytest.approx(0.4, rel=0.01)
    assert found.queueing_p50 == pytest.approx(0.4 - 0.11, rel=0.01)
    assert found.hours == pytest.approx(10 / 3600)
    assert found.row()["good"] == 0.6667
    assert found.row()["strategy"] == "ours"


def test_classes_and_tenants_are_counted_apart() -> None:
    tally, engine = Tally(target=0.5, tenants=True), LeapingEngine(SPEC)
    asks = [
        Ask(0.0, 100, 10, (), "self:fra1", tenant, priority)
        for tenant, priority in (
            ("gold", Priority.BATCH), ("silver", Priority.BATCH), ("gold", Priority.INTERACTIVE)
        )
    ]  # fmt: skip
    for ask in asks:
        tally.came(ask)
    tally.refuse(asks[0])
    tally.lose(asks[1])
    tally.waits(asks[2], 0.25)
    tally.first(asks[2], 0.4, SPEC)
    tally.whole(asks[2], "self:fra1", 3.0)
    engine.submit(Job("a", 100, 10, kinds=tally.kinds(asks[2])), 0.0)
    while engine.next_at is not None:
        engine.advance(engine.next_at)
    found = result("ours", "one", tally, [("all", engine)], 10.0).row()
    classes, tenants = found["classes"], found["tenants"]
    assert isinstance(classes, dict)
    assert isinstance(tenants, dict)
    assert list(classes) == ["interactive", "batch"]
    counts = ("requests", "answers", "shed", "lost", "good")
    assert [classes["interactive"][name] for name in counts] == [1, 1, 0, 0, 1.0]
    assert [classes["batch"][name] for name in counts] == [2, 0, 1, 1, 0.0]
    assert [tenants["gold"][name] for name in counts] == [2, 1, 1, 0, 0.5]
    assert classes["interactive"]["itl_p50"] == pytest.approx(0.0104, rel=0.02)
    assert classes["batch"]["itl_p50"] == 0
    assert classes["interactive"]["waited_p99"] == pytest.approx(0.25, rel=0.01)
    parts = found["parts"]
    assert isinstance(parts, dict)
    assert (parts["all"]["replicas"], parts["all"]["jobs"]) == (1, 1)


def test_shares_add_up() -> None:
    assert shares({"a": 3, "b": 1}) == {"a": 0.75, "b": 0.25}
    assert shares({}) == {}
