"""What one worker of several judges, what a restart knows again, and a disk that takes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from classifiers.difficulty.audit import Shadow, StandingAudit
from router.errors import RequestError
from router.tiers import grading
from router.tiers.outcome_store import Alarm, OutcomeStore, of_router
from tests.cases.built import built, entries
from tests.cases.graded import EASY, files
from tests.router.scripted import Scripted
from tests.router.tiers.test_shadow import CONSENT, GRADING, ask, eager, same, worse


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason for the large tier here."""
    monkeypatch.setattr(grading, "DEADLINE", 60.0)
    monkeypatch.setattr(grading, "HANGS", 60.0)


class Sibling:
    """The other workers: what they are told."""

    logs = ("eu-1.w1", "eu-1.w2")

    def __init__(self) -> None:
        self.told: list[tuple[str, Shadow, float]] = []

    async def judged(self, model: str, shadow: Shadow, at: float) -> None:
        self.told.append((model, shadow, at))

    record = page = judged


COUNTED = "domicile_quality_changes_total"
BAD = Shadow("eu", "question", "latin", "small", 0.0, 1.0)


def under_alarm(world: Scripted) -> float:
    """How many groups of the model are, as a scrape would show it."""
    world.router.live.refresh_gauges()
    return world.router.live.metrics.value("domicile_quality_alarms", ("two",))


async def test_what_one_worker_judges_all_count(tmp_path: Path) -> None:
    """An alarm of one worker of two left half of the traffic with the small model."""
    graded = files(grading=GRADING, tenants=CONSENT)
    sibling = Sibling()
    async with built(tmp_path, worse, graded) as world:
        world.router.live.siblings = sibling  # type: ignore[assignment]
        eager(world)
        for number in range(40):
            await ask(world, f"{number} {EASY}")
        assert world.router.live.metrics.value(COUNTED, ("two", "alarm")) > 0
    again = tmp_path / "again"
    again.mkdir()
    store = OutcomeStore(again / "outcomes" / "eu-1.w2.jsonl")
    async with built(again, worse, graded) as world:
        world.router.lane.restore(store)
        world.router.lane.draw = lambda: 1.0
        assert await ask(world) == "small"
        assert under_alarm(world) == 0
        for told in sibling.told:
            await world.router.lane.heard(*told)
        assert await ask(world) == "large"
        assert under_alarm(world) > 0, "whoever counted it, each tells that it is in force"
        changes = world.router.live.metrics.value(COUNTED, ("two", "alarm"))
        assert changes == 0, "merged metrics told of one alarm as of many: who judged it counts it"
        assert not store.path.exists(), "it is kept by who judged it"
        assert {group for _, _, group, _ in store.read_alarms()} >= {"tenant=eu"}
    assert [one for one in entries(again) if one.kind == "drift"]


async def test_a_worker_that_begins_knows_what_its_siblings_found(tmp_path: Path) -> None:
    graded = files(grading=GRADING, tenants=CONSENT)
    audit = StandingAudit(0.05)
    for _ in range(40):
        audit.observe(BAD, 1.0)
    async with built(tmp_path, same, graded) as world:
        assert await ask(world) == "small"
        world.router.lane.graders.adopt({("two", 0.05): audit})
        assert await ask(world) == "large"
        assert any("two tenant=eu" in one for one in world.router.live.degraded())


async def test_a_worker_that_nobody_has_told_yet_answers_by_large(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        live, lane = world.router.live, world.router.lane
        await lane.adopt(None)
        assert await ask(world) == "large"
        assert any(one.startswith("grading: ") for one in live.degraded())
        await lane.adopt({})
        assert await ask(world) == "small"
        assert not any(one.startswith("grading: ") for one in live.degraded())


async def test_an_alarm_outlives_what_it_came_from_and_another_number_of_workers(
    tmp_path: Path,
) -> None:
    """Outcomes of others had pushed it out of the files, or they were another process's."""
    folder = tmp_path / "outcomes"
    before = OutcomeStore(folder / "eu-1.jsonl")
    before.keep_alarms([("two", 0.05, "tenant=eu", 5.0), ("gone", 0.05, "tenant=eu", 5.0)])
    own = OutcomeStore(folder / "eu-1.w1.jsonl")
    graded = files(grading=GRADING, tenants=CONSENT)
    async with built(tmp_path, same, graded) as world:
        others, gone = of_router(folder, "eu-1", ("eu-1.w1", "eu-1.w2"))
        world.router.lane.restore(own, others, gone)
        assert await ask(world) == "large"
        assert under_alarm(world) == 1, "a counter begins at 0 after a restart"
        assert not before.alarms.exists()
        assert own.read_alarms() == (("two", 0.05, "tenant=eu", 5.0),)
        assert any("two tenant=eu" in one for one in world.router.live.degraded())


async def test_a_disk_that_is_full_keeps_no_alarm_from_being_raised(tmp_path: Path) -> None:
    """What could not be written was not counted either: the audit was blind until there was room.
    Clients never hear of it."""
    place = tmp_path / "outcomes"
    place.write_text("no folder")
    store = OutcomeStore(place / "eu-1.jsonl")
    async with built(tmp_path, worse, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.lane.store = store
        eager(world)
        tiers = [await ask(world, f"{number} {EASY}") for number in range(40)]
        assert (tiers[0], tiers[-1]) == ("small", "large")
        live = world.router.live
        assert live.metrics.value("domicile_outcomes_lost_total", ()) == 40
        assert any(one.startswith("outcomes: not written") for one in live.degraded())
        place.unlink()
        await ask(world)
        assert not any(one.startswith("outcomes:") for one in live.degraded())
        assert store.read_alarms(), "what was not written in time is written now"


async def test_a_start_on_a_full_disk_knows_the_alarms_and_serves(tmp_path: Path) -> None:
    """It ended, and clients had no router, because of a file that grading alone reads."""
    folder = tmp_path / "outcomes"
    before, own = OutcomeStore(folder / "eu-1.jsonl"), OutcomeStore(folder / "eu-1.w1.jsonl")
    before.keep_alarms([("two", 0.05, "tenant=eu", 5.0)])
    blocked = own.alarms.with_suffix(".draft")
    blocked.mkdir()
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.lane.restore(own, (), (before,))
        live = world.router.live
        assert any(one.startswith("outcomes: not written") for one in live.degraded())
        assert live.metrics.value("domicile_outcomes_lost_total", ()) == 1
        assert before.alarms.exists(), "the alarm stands nowhere else"
        eager(world)
        assert await ask(world) == "large"
        blocked.rmdir()
        await ask(world)
        assert own.read_alarms() == (("two", 0.05, "tenant=eu", 5.0),)
        assert not any(one.startswith("outcomes:") for one in live.degraded())


class Deaf(Sibling):
    """The supervisor is gone."""

    async def judged(self, model: str, shadow: Shadow, at: float) -> None:
        raise RequestError("shutting_down", "the other workers: gone")


async def test_what_no_other_could_be_told_is_written_all_the_same(tmp_path: Path) -> None:
    """Who is left alone ends: the next start would know nothing of the alarm."""
    store = OutcomeStore(tmp_path / "outcomes" / "eu-1.w1.jsonl")
    async with built(tmp_path, worse, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.live.siblings = Deaf()  # type: ignore[assignment]
        world.router.lane.restore(store)
        eager(world)
        tiers = [await ask(world, f"{number} {EASY}") for number in range(40)]
        assert (tiers[0], tiers[-1]) == ("small", "large")
    assert len(list(store.read())) == 40
    assert {group for _, _, group, _ in store.read_alarms()} >= {"tenant=eu"}


async def test_an_alarm_that_ended_while_a_worker_was_away_is_over_for_it_too(
    tmp_path: Path,
) -> None:
    """Its own file still said so: the status kept it, and the next start raised it again."""
    store = OutcomeStore(tmp_path / "outcomes" / "eu-1.w1.jsonl")
    store.keep_alarms([("two", 0.05, "tenant=eu", 5.0)])
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.lane.restore(store)
        assert await ask(world) == "large"
        await world.router.lane.adopt({("two", 0.05): StandingAudit(0.05)})
        assert await ask(world) == "small"
        assert not any("two tenant=eu" in one for one in world.router.live.degraded())
        assert store.read_alarms() == ()


class Slow(OutcomeStore):
    """Whether two ever write alarms at the same time, and what came last."""

    inside, most = 0, 0

    def keep_alarms(self, alarms: Iterable[Alarm]) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.02)
        super().keep_alarms(alarms)
        self.inside -= 1


async def test_alarms_are_written_one_after_the_other(tmp_path: Path) -> None:
    """Two wrote one draft: half a file could be left, with which no router starts."""
    store = Slow(tmp_path / "outcomes" / "eu-1.w1.jsonl")
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.lane.restore(store)
        bad = [Shadow(name, "question", "latin", "small", 0.0, 1.0) for name in ("eu", "de")]
        for _ in range(40):
            await asyncio.gather(*(world.router.lane.heard("two", one, 5.0) for one in bad))
        groups = {group for _, _, group, _ in store.read_alarms()}
        assert groups >= {"tenant=eu", "tenant=de"}
        assert store.most == 1
        assert world.router.live.metrics.value("domicile_outcomes_lost_total", ()) == 0
