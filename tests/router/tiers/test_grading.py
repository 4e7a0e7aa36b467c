"""Grading through the whole router: what it may do, what it may never do, what the log says."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from classifiers.difficulty.artifact import SHIPPED, load
from classifiers.difficulty.audit import Shadow, StandingAudit
from classifiers.difficulty.drift import DriftWatch
from classifiers.difficulty.grader import Grader
from classifiers.difficulty.scorer import Difficulty, Score
from classifiers.view import PromptView
from router.config import ConfigError
from router.tiers import grading
from router.tiers.grading import HANGS, LEASE, ROW, _Kept
from tests.cases.built import built, entries
from tests.cases.graded import EASY, HARD, files
from tests.router.scripted import FakeExchange, Reply, Scripted, answer


class Never:
    def score(self, view: PromptView) -> Score:
        raise AssertionError


ASK_LARGE = (b"x-domicile-tier", b"large")
ASK_SMALL = (b"x-domicile-tier", b"small")


def fine(host: str, number: int) -> Reply:
    return answer(model=host)


async def ask(world: Scripted, text: str, *headers: tuple[bytes, bytes]) -> FakeExchange:
    return await world.ask("eu", headers, model="two", messages=[{"role": "user", "content": text}])


def tiers(folder: Path) -> list[tuple[object, object, object]]:
    """Floor, and what the classifier said, of each decision."""
    found: list[tuple[object, object, object]] = []
    for entry in entries(folder):
        if entry.kind == "decision":
            said = entry.body["graded"]
            assert isinstance(said, dict)
            found.append((entry.body["tier"], said["tier"], said["used"]))
    return found


async def test_an_easy_request_goes_to_small_and_says_so(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files()) as world:
        easy, hard = await ask(world, EASY), await ask(world, HARD)
    assert easy.sent["x-domicile-tier"] == "small"
    assert easy.sent["x-domicile-endpoint"] == "par"
    assert json.loads(easy.written)["model"] == "two"
    assert hard.sent["x-domicile-tier"] == "large"
    [first, second] = [e.body["graded"] for e in entries(tmp_path) if e.kind == "decision"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["reason"], second["reason"]) == ("below", "above")
    scores = [one["score"] for one in (first, second)]
    assert all(type(score) is int for score in scores)
    assert int(str(scores[0])) < int(str(scores[1]))


async def test_observe_scores_and_counts_but_reroutes_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files("observe", "{}")) as world:
        easy = await ask(world, EASY)
        counted = world.router.live.metrics.value("domicile_grade_total", ("two", "small", "below"))
    assert easy.sent["x-domicile-tier"] == "large"
    assert counted == 1
    assert tiers(tmp_path) == [("large", "small", False)]


async def test_off_scores_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files("off", "{}")) as world:
        assert (await ask(world, EASY)).sent["x-domicile-tier"] == "large"
        assert not world.router.live.snapshot.difficulty
    [decision] = [entry for entry in entries(tmp_path) if entry.kind == "decision"]
    assert "graded" not in decision.body
    assert decision.body["grader"] == "highest"


async def test_a_request_may_ask_for_more_never_for_less(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files()) as world:
        assert (await ask(world, EASY, ASK_LARGE)).sent["x-domicile-tier"] == "large"
        assert (await ask(world, HARD, ASK_SMALL)).sent["x-domicile-tier"] == "large"


@pytest.mark.parametrize(("name", "text"), [("floor", EASY), ("ceiling", HARD)])
async def test_policy_stands_above_the_classifier(tmp_path: Path, name: str, text: str) -> None:
    tier = {"floor": "large", "ceiling": "small"}[name]
    rule = f"  - {{name: bound, obligations: [{{tier: {{{name}: {tier}}}}}], because: contract}}"
    async with built(tmp_path, fine, files(rules=rule)) as world:
        assert (await ask(world, text)).sent["x-domicile-tier"] == tier


async def test_words_that_claim_to_be_easy_buy_no_tier_below_the_policy(tmp_path: Path) -> None:
    rule = "  - {name: bound, obligations: [{tier: {floor: large}}], because: contract}"
    async with built(tmp_path, fine, files(rules=rule)) as world:
        for number in range(5):
            found = await ask(world, HARD + " this is easy, hello, thanks" * number)
            assert found.sent["x-domicile-tier"] == "large"


def test_a_prior_does_not_switch_grading_on_by_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"baseline.yaml:\d+:\d+: .*prior.*accept_prior"):
        files(grading="{strong_share: 0.5}").load(tmp_path)


async def test_an_accepted_prior_is_in_the_log(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files()):
        pass
    found = [entry.body for entry in entries(tmp_path) if entry.kind == "administration"]
    [said] = [body for body in found if body["event"] == "prior_accepted"]
    assert said["model"] == "two"
    assert str(said["grader"]).startswith("prior@")


def test_a_file_that_is_no_artifact_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"baseline.yaml:\d+:\d+: .*`file:m.bin`: not a diff"):
        files("observe", '{model: "file:m.bin"}').load(tmp_path)
    with pytest.raises(ConfigError, match="No such file"):
        files("observe", '{model: "file:gone.bin"}').load(tmp_path)


async def test_a_new_score_window_follows_the_target(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files(grading="{strong_share: 1.0, accept_prior: true}")) as w:
        assert (await ask(w, EASY)).sent["x-domicile-tier"] == "large"
    (tmp_path / "other").mkdir()
    cheap = files(grading="{strong_share: 0.0, accept_prior: true}")
    async with built(tmp_path / "other", fine, cheap) as world:
        assert (await ask(world, HARD)).sent["x-domicile-tier"] == "small"


def test_late_scores_in_a_row_leave_the_scorer_out_for_a_while() -> None:
    kept = _Kept(Grader(Never(), 0.5, ()))
    assert [kept.is_late(0.006, 1.0), kept.is_late(0.001, 2.0)] == [True, False]
    assert kept.benched == 0.0
    assert [kept.is_late(0.006, float(at)) for at in range(3, 3 + ROW)] == [True] * ROW
    assert kept.benched == 2 + ROW + LEASE
    other = _Kept(Grader(Never(), 0.5, ()))
    assert other.is_late(2 * HANGS, 1.0)
    assert other.benched == 1 + LEASE


async def test_words_that_the_model_does_not_know_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only lengths and scores were watched: a new topic that abstains changes neither."""
    monkeypatch.setattr(grading, "DriftWatch", partial(DriftWatch, window=20))
    async with built(tmp_path, fine, files()) as world:
        for text in (EASY, "zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg"):
            for _ in range(20):
                await ask(world, text)
        metrics = world.router.live.metrics
        assert metrics.value("domicile_grading_drift_total", ("two", "known")) == 1
        assert metrics.value("domicile_grading_drift_total", ("two", "output")) == 0


async def test_prompts_that_change_are_told_and_move_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        for length in [*range(500), *range(5000, 5500)]:
            graders._watch("two", "eu", "length", float(length))
        metrics = world.router.live.metrics
        assert metrics.value("domicile_grading_drift_total", ("two", "length")) == 1
        assert (await ask(world, EASY)).sent["x-domicile-tier"] == "small"
    [told] = [entry.body for entry in entries(tmp_path) if entry.kind == "drift"]
    assert (told["event"], told["tenant"], told["series"]) == ("grading_drift", "eu", "length")
    assert int(str(told["ks"])) > int(str(told["ks_limit"]))


COMMON = """
the a of and to in is it you that he was for on are with as his they at be this have from or one
had by word but not what all were we when your can said there use an each which she do how their if
will up other about out many then them these so some her would make like him into time has look two
more write go see number no way could people my than first water been call who oil its now find long
down day did get come made may part easy simple trivial hello thanks city capital country france
color name please spell
""".split()  # noqa: SIM905 - a list of so many is hard to read


def easiest_suffix() -> str:
    """What someone who has the model itself would write behind a hard prompt, to make it cheap."""
    own = Difficulty(load(SHIPPED), "mixtral-8x7b-instruct-v0.1", "gpt-4-1106-preview")
    lowest = sorted(COMMON, key=lambda w: own.score(PromptView.of_text(f"{HARD} {w}")).value)
    suffix = " " + " ".join(lowest[:40])
    before, after = (own.score(PromptView.of_text(text)).value for text in (HARD, HARD + suffix))
    assert after < before - 0.02, "it does move the score"
    return suffix


@pytest.mark.parametrize(
    ("rule", "grade", "headers"),
    [
        ("  - {name: b, obligations: [{tier: {floor: large}}], because: c}", "on", ()),
        ("  - {name: b, obligations: [{tier: {floor: large}}], because: c}", "on", (ASK_SMALL,)),
        ("", "observe", (ASK_SMALL,)),
        ("", "on", (ASK_LARGE,)),
    ],
)
async def test_no_suffix_buys_a_smaller_tier_than_policy_allows(
    tmp_path: Path, rule: str, grade: str, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    cheap = "{strong_share: 0.0, accept_prior: true}" if grade == "on" else "{}"
    suffix = easiest_suffix()
    async with built(tmp_path, fine, files(grade, cheap, rules=rule)) as world:
        for text in (EASY + suffix, HARD + suffix, suffix * 20, "this is easy. " * 300):
            assert (await ask(world, text, *headers)).sent["x-domicile-tier"] == "large"
    assert {floor for floor, _, _ in tiers(tmp_path)} == {"large"}


async def test_a_smaller_tolerance_ends_no_alarm_and_a_larger_one_starts_afresh(
    tmp_path: Path,
) -> None:
    bad = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        model = world.router.live.snapshot.policy.models["two"]
        for _ in range(60):
            graders.observe(model, bad, 5.0)
        assert graders.audit(model).returned("tenant=eu")
        for tolerance, returned in ((0.01, True), (0.2, False)):
            changed = replace(model, grading=replace(model.grading, tolerance=tolerance))
            assert graders.audit(changed).returned("tenant=eu") is returned
            noted = any("two tenant=eu" in one for one in world.router.live.degraded())
            assert noted is returned
            assert any(graders.alarms()) is returned


async def test_back_at_an_earlier_tolerance_alarms_are_of_what_is_in_force(tmp_path: Path) -> None:
    """The audit of the tolerance between was taken for the newest: an alarm was not written down,
    and one raised there ended."""
    bad = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        model = world.router.live.snapshot.policy.models["two"]
        wider = replace(model, grading=replace(model.grading, tolerance=0.2))
        graders.observe(model, replace(bad, tenant="de"), 5.0)
        for _ in range(90):
            graders.observe(wider, bad, 5.0)
        graders.observe(model, replace(bad, tenant="de"), 6.0)
        assert graders.audit(model).returned("tenant=eu")
        assert dict(graders.audit(model).estimates())["tenant=de"].n == 1
        found = {(tolerance, group) for _, tolerance, group, _ in graders.alarms()}
        assert (model.grading.tolerance, "tenant=eu") in found


async def test_of_what_another_process_found_the_newest_stays_the_newest(tmp_path: Path) -> None:
    bad = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        model = world.router.live.snapshot.policy.models["two"]
        graders.observe(model, bad, 5.0)
        newest = StandingAudit(model.grading.tolerance)
        for _ in range(60):
            newest.observe(bad, 5.0)
        key = ("two", model.grading.tolerance)
        graders.adopt({("two", 0.2): StandingAudit(0.2), key: newest})
        assert any(group == "tenant=eu" for _, _, group, _ in graders.alarms())


async def test_as_many_graders_are_kept_as_there_are_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One left out for each other: none ever followed its traffic."""
    monkeypatch.setattr(grading, "GRADERS", 1)
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        rated = world.router.live.snapshot.difficulty["two"]
        first = {name: graders._of(name, rated, 3) for name in "abcd"}
        assert {name: graders._of(name, rated, 3) for name in "abcd"} == first
        graders._of("a", rated, 3)
        graders._of("e", rated, 3)
        assert graders._of("a", rated, 3) is first["a"], "the one used longest ago goes"
        assert graders._of("b", rated, 3) is not first["b"]


async def test_who_is_not_watched_is_told_and_takes_nobody_s_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "WATCHED", 2)
    async with built(tmp_path, fine, files()) as world:
        graders = world.router.lane.graders
        for length in [*range(500), *range(5000, 5500)]:
            for tenant in ("eu", "us", "de", "world"):
                graders._watch("two", tenant, "length", float(length))
        metrics = world.router.live.metrics
        assert metrics.value("domicile_grading_drift_total", ("two", "length")) == 2
        assert any(one.startswith("grading drift: only") for one in world.router.live.degraded())
