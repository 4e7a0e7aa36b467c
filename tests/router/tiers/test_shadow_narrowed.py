"""A reload narrows the policy while requests wait to be asked again, or are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from router.tiers import grading
from router.tiers.outcome_store import OutcomeStore
from tests.cases.built import built
from tests.cases.graded import files
from tests.router.scripted import Reply, Scripted, answer
from tests.router.tiers.test_shadow import CONSENT, GRADING, ask, counted, eager


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason for the large tier here."""
    monkeypatch.setattr(grading, "DEADLINE", 60.0)
    monkeypatch.setattr(grading, "HANGS", 60.0)


def observed(world: Scripted) -> int:
    """How many judged requests the audits have counted."""
    audits = world.router.live.audits.values()
    return sum(found.n for audit in audits for _, found in audit.estimates())


NARROWED = {
    "consent": {"tenants": "  eu: {grant: {process: EU, retain: EU}}\n"},
    "off": {"grade": "off"},
    "explore": {"grading": GRADING.replace("explore: 0.05", "explore: 0.0")},
}


@pytest.mark.parametrize("when", [0, 1, 2, 3])
@pytest.mark.parametrize("narrowed", sorted(NARROWED))
async def test_a_policy_that_wants_no_more_ends_what_waits_and_what_runs(
    tmp_path: Path, narrowed: str, when: int
) -> None:
    """Before it, while small or large answers, and while a judge does. What was asked by then is
    not asked further, not counted and not kept."""
    judged = GRADING.replace("}", ', judge: "model:assistant"}')
    before = {"grading": judged, "tenants": CONSENT}
    changed = {**before, **NARROWED[narrowed]}
    if narrowed == "explore":
        changed["grading"] = judged.replace("explore: 0.05", "explore: 0.0")
    other = tmp_path / "other"
    other.mkdir()
    later = files(**changed).load(other)
    asked = []

    def script(host: str, number: int) -> Reply:
        asked.append(host)
        if len(asked) == when + 1:
            world.router.live.snapshot = later
        return answer("TIE")

    async with built(tmp_path, script, files(**before)) as world:
        store = OutcomeStore(tmp_path / "outcomes" / "eu-1.jsonl")
        world.router.lane.restore(store)
        await later.keep(world.router.live.log)
        eager(world)
        await ask(world)
        assert len(asked) == when + 1
        assert counted(world, "judged") == 0
        assert counted(world, "withdrawn") + counted(world, "unanswered") == 1
        assert not store.path.exists()
        assert observed(world) == 0


async def test_what_other_models_answered_is_not_told_of_those_in_force(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = files(grading=GRADING, tenants=CONSENT)
    par = 'url: "http://par1", model: tiny'
    assert par in before.baseline
    baseline = before.baseline.replace(par, par.replace("tiny", "smol"))
    later = replace(before, baseline=baseline).load(other)

    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            world.router.live.snapshot = later
        return answer("Paris")

    async with built(tmp_path, script, before) as world:
        await later.keep(world.router.live.log)
        eager(world)
        await ask(world)
        assert counted(world, "withdrawn") == 1
        assert observed(world) == 0


async def test_a_graded_judge_is_asked_at_its_highest_tier(tmp_path: Path) -> None:
    """Else an easy looking comparison is judged by the small model."""
    hosts: list[str] = []

    def script(host: str, number: int) -> Reply:
        hosts.append(host)
        return answer("TIE")

    made = files(grading=GRADING.replace("}", ', judge: "model:arbiter"}'), tenants=CONSENT)
    arbiter = (
        'models:\n  arbiter: {grade: "on", grading: {strong_share: 0.0, accept_prior: true}, '
        "tiers: {small: [par], large: [fra]}}\n"
    )
    made = replace(made, baseline=made.baseline.replace("models:\n", arbiter))
    async with built(tmp_path, script, made) as world:
        eager(world)
        await ask(world)
        assert counted(world, "judged") == 1
    assert hosts == ["par1", "par1", "fra1", "fra1"]
