"""The shadow lane through the whole router: whose requests, where they go, what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.difficulty.audit import HOLD, Shadow
from classifiers.difficulty.dataset import features_row
from classifiers.difficulty.features import extract
from classifiers.view import PromptView
from router.audit.layout import Folder
from router.audit.reading import every
from router.audit.verify import verify
from router.config import ConfigError
from router.decisions.replay import Replayer
from router.inbound.exchange import Headers
from router.narrowing.operating import status
from router.settings.loading import load_snapshot
from router.tiers.outcome_store import Outcome, OutcomeStore
from router.tiers.references import hashed
from router.tiers.sandbox import Sandbox
from router.types import Purpose
from tests.cases.built import built, entries, now
from tests.cases.graded import EASY, HARD, files
from tests.router.scripted import Reply, Scripted, answer, failure

CONSENT = "  eu: {grant: {process: EU, retain: EU}, shadow: 0.05}\n"
GRADING = "{strong_share: 0.5, accept_prior: true, explore: 0.05}"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
LARGE = (b"x-domicile-tier", b"large")


def same(host: str, number: int) -> Reply:
    return answer("Paris.")


def worse(host: str, number: int) -> Reply:
    return answer("Paris" if host == "fra1" else "London")


def eager(world: Scripted) -> None:
    """Every request of those who consent is looked at."""
    world.router.lane.draw = lambda: 0.0


async def ask(world: Scripted, text: str = EASY, headers: Headers = (), **more: object) -> str:
    """The tier that answered; the lane has done its work afterwards."""
    messages = [{"role": "user", "content": text}]
    done = await world.ask("eu", headers, model="two", messages=messages, **more)
    assert done.status == 200, done.written
    await world.router.lane.idle()
    return done.sent["x-domicile-tier"]


def counted(world: Scripted, result: str) -> float:
    return world.router.live.metrics.value("domicile_shadow_total", ("two", result))


async def test_both_tiers_answer_inside_the_boundary_and_the_log_says_so(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        assert counted(world, "judged") == 1
        assert [world.transport.at(host) for host in ("par1", "fra1", "iad1")] == [2, 1, 0]
    decisions = [entry.body for entry in entries(tmp_path) if entry.kind == "decision"]
    who = [one["who"] for one in decisions]
    assert [one["purpose"] for one in who if isinstance(one, dict)] == [
        Purpose.INTERACTIVE, Purpose.SHADOW, Purpose.SHADOW,
    ]  # fmt: skip
    assert [one["tier"] for one in decisions] == ["small", "small", "large"]
    assert {one["key"] for one in who if isinstance(one, dict)} == {"key-eu"}
    outcomes = [entry for entry in entries(tmp_path) if entry.kind == "outcome"]
    assert len(outcomes) == 3


async def test_without_consent_nothing_is_asked_again(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING)) as world:
        eager(world)
        await ask(world)
        assert len(world.transport.sent) == 1


async def test_consent_that_was_withdrawn_counts_when_it_is_used(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        messages = [{"role": "user", "content": EASY}]
        await world.ask("eu", model="two", messages=messages)
        other = tmp_path / "other"
        other.mkdir()
        world.router.live.snapshot = files(grading=GRADING).load(other)
        await world.router.lane.idle()
        assert counted(world, "withdrawn") == 1
        assert len(world.transport.sent) == 1


async def test_what_a_tenant_sent_is_not_asked_again_as_another_s_whose_key_it_is_now(
    tmp_path: Path,
) -> None:
    wide = files(grading=GRADING, tenants=CONSENT + "  world2: {grant: {process: worldwide}}\n")
    async with built(tmp_path, same, wide) as world:
        eager(world)
        other = tmp_path / "other"
        other.mkdir()
        path = wide.write(other)
        keys = other / "keys.yaml"
        keys.write_text(keys.read_text().replace("tenant: eu,", "tenant: world2,"))
        later = load_snapshot(path, wide.environment, now())
        await later.keep(world.router.live.log)
        await world.ask("eu", model="two", messages=[{"role": "user", "content": EASY}])
        world.router.live.snapshot = later
        await world.router.lane.idle()
        assert counted(world, "unanswered") == 1
        assert len(world.transport.sent) == 1
    whose = [entry.body["who"] for entry in entries(tmp_path) if entry.kind == "decision"]
    assert [one["tenant"] for one in whose if isinstance(one, dict)] == ["eu"]


async def test_a_call_that_does_more_than_answer_is_not_repeated(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world, store=True)
        assert counted(world, "unfit") + counted(world, "judged") == 1
        assert counted(world, "judged") == 0
        assert len(world.transport.sent) == 1


async def test_an_answer_of_another_tier_is_no_answer(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return failure(503) if host == "par1" else answer()

    async with built(tmp_path, script, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        assert counted(world, "unanswered") == 1


@pytest.mark.parametrize(
    ("judge", "script", "more", "qualities"),
    [
        ("exact", same, {}, (1.0, 1.0)),
        ("exact", worse, {}, (0.0, 1.0)),
        ("json", worse, {"response_format": SCHEMA}, (0.0, 0.0)),
    ],
)
async def test_what_is_kept_is_hashes_and_qualities(
    tmp_path: Path,
    judge: str,
    script: Callable[[str, int], Reply],
    more: dict[str, object],
    qualities: tuple[float, float],
) -> None:
    grading = GRADING.replace("}", f", judge: {judge}}}")
    path = tmp_path / "outcomes" / "eu-1.jsonl"
    async with built(tmp_path, script, files(grading=grading, tenants=CONSENT)) as world:
        world.router.lane.restore(OutcomeStore(path))
        eager(world)
        await ask(world, "canary " + EASY, (), **more)
    [found] = OutcomeStore(path).read()
    assert (found.shadow.small, found.shadow.large) == qualities
    assert (found.model, found.weak, found.strong) == ("two", "tiny", "tiny")
    assert found.shadow.language == "latin"
    assert found.features["stem"]
    text = path.read_text().lower()
    assert not any(word in text for word in ("canary", "capital", "france", "paris", "london"))
    assert path.stat().st_mode & 0o077 == 0


async def test_a_judge_is_one_more_request_under_the_same_policy(tmp_path: Path) -> None:
    asked: list[str] = []

    def script(host: str, number: int) -> Reply:
        asked.append(host)
        return answer("B" if len(asked) == 4 else "some answer")

    grading = GRADING.replace("}", ', judge: "model:assistant"}')
    async with built(tmp_path, script, files(grading=grading, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        assert counted(world, "judged") == 1
        assert world.transport.at("iad1") == 0
        assert b"Two assistants" in world.transport.sent[-1].body
    last = [entry.body["who"] for entry in entries(tmp_path) if entry.kind == "decision"][-1]
    assert isinstance(last, dict)
    assert (last["model"], last["purpose"], last["key"]) == ("assistant", "shadow", "key-eu")


async def test_worse_answers_return_the_tenant_to_large_and_a_restart_remembers(
    tmp_path: Path,
) -> None:
    store = OutcomeStore(tmp_path / "outcomes" / "eu-1.jsonl")
    graded = files(grading=GRADING, tenants=CONSENT)
    async with built(tmp_path, worse, graded) as world:
        world.router.lane.restore(store)
        eager(world)
        tiers = [await ask(world, f"{number} {EASY}") for number in range(40)]
        assert tiers[0] == "small"
        assert "small" not in tiers[-5:]
        alarms = world.router.live.metrics.value("domicile_quality_changes_total", ("two", "alarm"))
        assert alarms >= 1
        assert any("two tenant=eu" in one for one in world.router.live.degraded())
    drift = [entry.body for entry in entries(tmp_path) if entry.kind == "drift"]
    assert drift[0]["event"] == "quality_alarm"
    assert drift[0]["model"] == "two"
    assert str(drift[0]["group"]).startswith("tenant=eu")
    again = tmp_path / "again"
    again.mkdir()
    async with built(again, worse, graded) as world:
        assert await ask(world) == "small"
        world.router.lane.restore(store)
        assert await ask(world) == "large"
    assert not [entry for entry in entries(again) if entry.kind == "drift"]


async def test_the_lane_measures_what_grading_would_have_chosen(tmp_path: Path) -> None:
    async with built(tmp_path, worse, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        for number in range(30):  # the fortieth begins another count
            await ask(world, f"{number} {EASY}")
        model = world.router.live.snapshot.policy.models["two"]
        estimates = dict(world.router.lane.graders.audit(model).estimates())
        await ask(world, HARD, headers=[LARGE])
    assert estimates["tenant=eu"].n > 0
    assert estimates["tenant=eu"].loss == 1.0


async def test_graded_and_shadow_decisions_can_be_made_again(tmp_path: Path) -> None:
    async with built(tmp_path, worse, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        await ask(world, HARD)
    folder = Folder(tmp_path / "log")
    found = [one for one in every(folder) if one.kind == "decision"]
    assert len(found) == 6
    replayer = Replayer(folder)
    assert [replayer.replay(one).differences for one in found] == [()] * 6
    assert verify(tmp_path / "log").ok


async def test_a_group_comes_back_by_time_and_evidence(tmp_path: Path) -> None:
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        graders, model = world.router.lane.graders, world.router.live.snapshot.policy.models["two"]
        bad = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
        for _ in range(40):
            graders.observe(model, bad, 0.0)
        assert await ask(world) == "large"
        for number in range(3000):
            graders.observe(model, replace(bad, small=1.0), HOLD + number)
        assert await ask(world) == "small"
        assert not [one for one in world.router.live.degraded() if "grading" in one]
    told = [entry.body["event"] for entry in entries(tmp_path) if entry.kind == "drift"]
    assert {"quality_alarm", "quality_recovered"} == set(told)


async def test_a_restart_amid_the_way_back_forgets_no_evidence(tmp_path: Path) -> None:
    """Two workers judged: small was bad, then good; what both saw counts after a restart."""
    bad = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    good, start = replace(bad, small=1.0), now() - 3 * HOLD
    stores = [OutcomeStore(tmp_path / "outcomes" / f"eu-1.w{worker}.jsonl") for worker in (1, 2)]
    for number in range(200):
        shadow, at = (bad, start) if number < 80 else (good, start + 2 * HOLD)
        features = features_row(extract(PromptView.of_text(EASY)))
        stores[number % 2].append(Outcome(at + number, "two", "w", "s", "exact", shadow, features))
    async with built(tmp_path, same, files(grading=GRADING, tenants=CONSENT)) as world:
        world.router.lane.restore(stores[0], stores[1:])
        graders, model = world.router.lane.graders, world.router.live.snapshot.policy.models["two"]
        assert await ask(world) == "large", "120 good ones are not enough yet"
        asked = 0
        while await ask(world) == "large":
            for _ in range(10):
                graders.observe(model, good, now())
            asked += 10
        assert 60 <= asked <= 120
    told = [entry.body for entry in entries(tmp_path) if entry.kind == "drift"]
    assert {one["event"] for one in told} == {"quality_recovered"}
    assert {one["why"] for one in told} == {"within the tolerance again"}


async def test_people_s_answers_judge_and_a_question_they_did_not_answer_stays_open(
    tmp_path: Path,
) -> None:
    line = {"question": hashed(EASY), "answers": ["London"]}
    (tmp_path / "labels.jsonl").write_text(json.dumps(line))
    grading = GRADING[:-1] + ', judge: labels, references: "file:labels.jsonl"}'
    async with built(tmp_path, worse, files(grading=grading, tenants=CONSENT)) as world:
        eager(world)
        world.router.lane.restore(OutcomeStore(tmp_path / "outcomes" / "eu-1.jsonl"))
        await ask(world)
        await ask(world, HARD)
        assert (counted(world, "judged"), counted(world, "unjudged")) == (1, 1)
        assert world.router.lane.store is not None
        [found] = world.router.lane.store.read()
    assert (found.judge, found.shadow.small, found.shadow.large) == ("labels", 1.0, 0.0)


async def test_code_that_can_not_be_run_apart_is_not_run_and_the_note_says_why(
    tmp_path: Path,
) -> None:
    line = {"question": hashed(EASY), "test": "assert f()"}
    (tmp_path / "tests.jsonl").write_text(json.dumps(line))
    more = ', judge: tests, references: "file:tests.jsonl", accept_code: true}'
    made = files(grading=GRADING[:-1] + more, tenants=CONSENT)
    async with built(tmp_path, worse, made) as world:
        eager(world)
        world.router.lane.sandbox = Sandbox(root=False)
        await ask(world)
        assert counted(world, "unjudged") == 1
        assert any("needs root and `unshare`" in one for one in world.router.live.degraded())
    told = [entry.body for entry in entries(tmp_path) if entry.kind == "administration"]
    assert {"event": "code_accepted", "model": "two", "judge": "tests"} in told


def test_references_that_are_not_there_stop_the_load(tmp_path: Path) -> None:
    more = GRADING[:-1] + ', judge: labels, references: "file:none.jsonl"}'
    with pytest.raises(
        ConfigError, match=r"baseline\.yaml:13:3: references `file:none\.jsonl`: No such"
    ):
        files(grading=more, tenants=CONSENT).load(tmp_path)


async def test_what_grading_costs_each_group_is_in_the_status(tmp_path: Path) -> None:
    async with built(tmp_path, worse, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        await ask(world)
        found = {one.group: one for one in status(world.router.live, None).grading}
    whole = found["tenant=eu"]
    assert (whole.model, whole.judged, whole.returned) == ("two", 2, False)
    assert (whole.small, whole.large, whole.loss) == (0.0, 1.0, 1.0)
    assert {name.partition(" ")[2].partition("=")[0] for name in found} == {"", "class", "language"}


async def test_what_is_asked_again_takes_no_place_of_the_client_s(tmp_path: Path) -> None:
    """A client that may have one request open would else be refused for what we ask."""
    seen = []

    def looking(host: str, number: int) -> Reply:
        seen.append(dict(world.router.live.concurrency._open))
        return answer("Paris.")

    async with built(tmp_path, looking, files(grading=GRADING, tenants=CONSENT)) as world:
        eager(world)
        await ask(world)
        assert world.router.live.concurrency.total == 0
    assert [one.get("key-eu", 0) for one in seen] == [1, 0, 0]
