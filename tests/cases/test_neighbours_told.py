"""Neighbours of the reports on metrics: what is documented is counted, each at its time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import router
from regions.fleet import Reading
from router.config import Limits
from router.exposition import rendered
from router.metrics import ALL, SECONDS
from tests.cases.built import BASELINE, Files, built
from tests.router.scripted import DONE, Reply, Scripted, answer, event, failure, scripted, stream

FIRST, OWN = "domicile_first_content_seconds", "domicile_own_seconds"


class Late(Reply):
    """First content after a while."""

    async def chunk(self, until: float) -> bytes:
        """The next piece."""
        await asyncio.sleep(0.03)
        return await super().chunk(until)


def counted(world: Scripted, name: str) -> dict[str, float]:
    """A histogram's count and sum by its endpoint."""
    text = rendered(world.router.live.metrics.read(), ALL).decode()
    return {
        sample.labels.get("endpoint", "") + sample.name.removeprefix(name): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name == name and not sample.name.endswith("_bucket")
    }


async def test_the_time_to_the_first_token_is_that_of_who_answered(tmp_path: Path) -> None:
    """higress-group/higress#2595: a documented time that nobody ever recorded."""

    def script(host: str, number: int) -> Reply:
        return failure(500) if host == "fra1" else Late(200, stream().headers, pieces)

    pieces = [event(content="hi"), event(content=" you"), DONE]
    async with scripted(tmp_path, script) as world:
        assert (await world.ask(stream=True)).sent["x-domicile-endpoint"] == "par1"
        found = counted(world, FIRST)
        assert found["par1_count"] == 1
        assert 0.02 <= found["par1_sum"] < 2
        assert "fra1_count" not in found
        own = counted(world, OWN)
        assert own["_count"] == 1
        assert own["_sum"] < found["par1_sum"] + 2


async def test_a_whole_answer_has_no_first_token(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        await world.ask()
        assert counted(world, FIRST) == {}
        assert counted(world, OWN)["_count"] == 1


def test_every_metric_that_is_described_is_recorded_somewhere() -> None:
    root = Path(str(router.__file__)).parent
    text = "".join(path.read_text() for path in root.rglob("*.py"))
    assert [one.name for one in ALL if text.count(f'"{one.name}"') < 2] == []


def test_a_long_answer_is_told_from_a_very_long_one() -> None:
    """maximhq/bifrost#3828: above the last bucket all are as long as the shortest of them. A router
    may let its requests take longer than the default."""
    assert len([one for one in SECONDS if one > Limits().deadline]) >= 2


async def test_no_gauge_tells_of_what_a_reload_took_away(tmp_path: Path) -> None:
    """It would stay as it was last, for ever: an alarm of a fleet that nobody has any more. See
    vllm-project/production-stack#680, BerriAI/litellm#5933."""
    text = BASELINE.replace("  fra: {kind", "  fra: {burst: {tokens: 5M/d, output: 100}, kind")
    async with built(tmp_path, lambda h, n: answer(), Files(baseline=text)) as world:
        live, watches = world.router.live, world.router.watches
        assert watches is not None
        await world.ask("de")
        live.readings.report("fra", Reading(live.loop_time(), 40, kv=0.99))

        def told() -> set[str]:
            live.refresh_gauges()
            names = {one.name for one in ALL if one.kind == "gauge" and "endpoint" in one.labels}
            gauges = live.metrics.read().gauges
            assert {name for name, _ in gauges} >= names
            return {labels[0] for name, labels in gauges if name in names}

        assert told() == set(live.snapshot.policy.endpoints)
        moved = text.replace("  fra: {", "  new: {").replace("[fra, par", "[new, par")
        moved = moved.replace("[sonnet-eu, fra]", "[sonnet-eu, new]").replace(
            "http://fra1", "http://n"
        )
        await watches.swap.reload(Files(baseline=moved).load(tmp_path))
        assert "fra" not in live.snapshot.policy.endpoints
        assert told() == set(live.snapshot.policy.endpoints)
