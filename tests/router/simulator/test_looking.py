"""Looks at the engines that stirred find what looks at every engine would have found."""

from __future__ import annotations

import pytest

from regions.fleet import Reading, Readings
from router.simulator.play import play
from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Fleet, Outage, Sample, Station
from router.simulator.tally import Result
from router.simulator.timing import EngineSpec
from router.simulator.traces import Days, days

ENGINE = EngineSpec(max_num_seqs=4, prefill_rate=4000.0, kv_blocks=512, block_size=64)
TALK = [(400, 30), (900, 60), (200, 15), (3000, 9)]
REGIONS = ("self:fra1", "self:par1")
OUTAGES = (Outage("self:fra1", 9.3, 11.1), Outage("self:par1", 20.2, 31.9))


def every(station: Station, fleet: Fleet, now: float) -> None:
    """Read every engine's metrics."""
    for key, one in fleet.engines.items():
        if one.up:
            load, spec = one.engine.load, fleet.specs[key]
            reading = Reading(
                now, load.running, load.waiting, load.kv_usage, one.engine.totals.generated,
                station.inflight.requests(key), spec.kv_blocks * spec.block_size,
            )  # fmt: skip
            station.readings.report(key, reading)
    station.room.wake()


@pytest.mark.parametrize("rate", [0.3, 2.5, 9.0])
@pytest.mark.parametrize("routers", [1, 3])
def test_few_looks_are_as_good_as_all(
    rate: float, routers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quiet or crowded, and through outages longer and shorter than readings hold."""
    load = Days(tuple((r, 8.0 * n) for n, r in enumerate(REGIONS)), rate, 60, day=60, bound=0.2)
    trace = days(load, TALK, seed=4)
    scenario = Scenario(grounds([f"{region}=4" for region in REGIONS], ENGINE), routers=routers)

    def go() -> tuple[Result, list[Sample]]:
        played = play(scenario, trace, Conduct(outages=OUTAGES, sample=0.5))
        return played.result, played.samples

    few = go()
    monkeypatch.setattr(Station, "scrape", every)
    assert go() == few
    assert few[0].answers > 0.8 * few[0].requests


def test_an_engine_that_does_nothing_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = days(Days((("self:fra1", 0.0),), 0.05, 200, swing=0.0), TALK, seed=1)
    read: list[str] = []

    def report(self: object, key: str, reading: Reading) -> None:
        read.append(key)
        real(self, key, reading)  # type: ignore[arg-type]

    real = Readings.report
    monkeypatch.setattr(Readings, "report", report)
    play(Scenario(grounds(["self:fra1=50"], ENGINE)), trace)
    assert 50 + len(trace.asks) < len(read) < 50 + 10 * len(trace.asks)
