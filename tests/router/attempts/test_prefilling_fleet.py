"""Prefill and decode over simulated servers that hand caches over."""

from __future__ import annotations

from pathlib import Path

from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from router.transport.client import HttpTransport
from tests.cases.built import Files, built
from tests.router.attempts.test_prefilling import TEXT, ask, baseline, script, sound, steps

SPEC = ReplicaSpec(
    transfers=True, keep_bodies=True, speed=20.0, engine=EngineSpec(prefill_rate=2000.0)
)


async def test_over_servers_that_hand_caches_over(tmp_path: Path) -> None:
    names = ("self:fra1/p", "self:fra1/d")
    async with SimulatedFleet(dict.fromkeys(names, SPEC)) as fleet:
        pre, dec = (fleet[name] for name in names)
        text = baseline(f'"{pre.url}"', decode=f'"{dec.url}"')
        async with built(tmp_path, script(), Files(baseline=text), HttpTransport()) as made:
            done = await ask(made, stream=True)
            again = await ask(made, f"again: {TEXT}")
            assert (done.code, again.code) == ("ok", "ok"), (done.written, dec.seen)
            assert len(fleet.bank) == 0
            pre.kill()
            alone = await ask(made, f"alone: {TEXT}")
            assert alone.code == "ok"
            await made.router.transport.close()  # type: ignore[attr-defined]
        generated = [hit for hit in pre.seen if hit.request_id != "probe"]
        assert [hit.transfer for hit in generated] == ["kept", "kept"]
        assert [hit.tokens for hit in generated] == [1, 1]
        answered = [hit for hit in dec.seen if hit.request_id != "probe"]
        assert [hit.transfer for hit in answered] == ["fetched", "fetched", ""]
    sound(tmp_path)


async def test_a_cache_that_is_lost_on_the_way_costs_an_attempt_and_no_answer(
    tmp_path: Path,
) -> None:
    names = ("self:fra1/p", "self:fra1/d")
    async with SimulatedFleet(dict.fromkeys(names, SPEC)) as fleet:
        pre, dec = (fleet[name] for name in names)
        text = baseline(f'"{pre.url}"', decode=f'"{dec.url}"')
        async with built(tmp_path, script(), Files(baseline=text), HttpTransport()) as made:
            keep = fleet.bank.keep
            fleet.bank.keep = lambda *what: None  # type: ignore[method-assign]
            assert (await ask(made)).code == "ok"
            fleet.bank.keep = keep  # type: ignore[method-assign]
            await made.router.transport.close()  # type: ignore[attr-defined]
        assert [hit.transfer for hit in dec.seen if hit.request_id != "probe"] == ["lost", ""]
    assert [result for _, result in steps(tmp_path)][::2] == ["prefilled", "ok"]
