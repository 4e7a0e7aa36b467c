"""Difficulty reports of `reports.yaml`, through a router built from real files."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from classifiers.difficulty.scorer import Difficulty, Score
from classifiers.view import PromptView
from regions.document import DocumentErrors
from tests.cases.built import built, entries
from tests.cases.graded import CHINESE, EASY, HARD, files
from tests.router.scripted import Reply, Scripted, answer


def fine(host: str, number: int) -> Reply:
    return answer()


async def ask(world: Scripted, text: str) -> dict[str, str]:
    """The headers of an answer about one text."""
    done = await world.ask("eu", model="two", messages=[{"role": "user", "content": text}])
    assert done.status == 200, done.written
    return done.sent


def graded(folder: Path) -> list[object]:
    """What each decision entry says of grading."""
    return [entry.body.get("graded") for entry in entries(folder) if entry.kind == "decision"]


async def test_difficulty_01_what_was_not_read_is_in_the_record(tmp_path: Path) -> None:
    easy_at_first = " ".join(["Please say hello to my friend today ."] * 300)
    async with built(tmp_path, fine, files()) as world:
        short = await ask(world, EASY)
        cut = await ask(world, " ".join(f"{word}{n}" for n in range(30) for word in EASY.split()))
        long = await ask(world, easy_at_first * 4 + HARD)
    assert short["x-domicile-tier"] == "small"
    assert long["x-domicile-tier"] == "large"
    first, second, third = graded(tmp_path)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(third, dict)
    assert "cut" not in first
    assert second["cut"] is True
    assert (third["cut"], third["reason"]) == (True, "too_long")
    assert cut["x-domicile-tier"] in ("small", "large")


@pytest.mark.parametrize("how", ["raises", "slow", "nan"])
async def test_difficulty_02_a_classifier_that_fails_costs_the_small_tier_not_the_request(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Difficulty, view: PromptView) -> Score:
        if how == "raises":
            raise RuntimeError("the prompt could be in here")
        if how == "slow":
            time.sleep(0.15)
        value = float("nan") if how == "nan" else -1.0
        return Score(value, 0.5, False, "", self.version, "*", False)

    monkeypatch.setattr(Difficulty, "score", broken)
    async with built(tmp_path, fine, files()) as world:
        tiers = [(await ask(world, EASY))["x-domicile-tier"] for _ in range(3)]
        metrics = world.router.live.metrics
        reason = {"raises": "failed", "slow": "late", "nan": "failed"}[how]
        counted = metrics.value("domicile_grade_total", ("two", "large", reason))
        benched = metrics.value("domicile_grade_total", ("two", "large", "benched"))
    assert tiers == ["large"] * 3
    assert counted + benched == 3
    # One that hangs blocks the process: it is asked once, then left out for a while.
    assert (counted, benched) == ((1, 2) if how == "slow" else (3, 0))
    assert not any("prompt" in str(one) for one in graded(tmp_path))


async def test_difficulty_03_grading_never_leaves_the_process(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors, match="file:"):
        files(grading='{model: "https://judge.us.example.com/v1"}').load(tmp_path)
    async with built(tmp_path, fine, files()) as world:
        await ask(world, EASY)
        assert len(world.transport.sent) == 1
    decision = next(entry for entry in entries(tmp_path) if entry.kind == "decision")
    who = decision.body["who"]
    assert isinstance(who, dict)
    assert who["router"] == {"id": "eu-1", "region": "self:fra1"}
    assert str(decision.body["grader"]).startswith("prior@")


async def test_difficulty_04_what_training_never_saw_goes_to_the_large_tier(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files()) as world:
        for text in (CHINESE, "", "word " * 400, "x" * 1_000_000):
            found = await ask(world, text)
            assert found["x-domicile-tier"] == "large", text[:20]
        await asyncio.sleep(0)
    assert all(isinstance(one, dict) and one["tier"] == "large" for one in graded(tmp_path))
