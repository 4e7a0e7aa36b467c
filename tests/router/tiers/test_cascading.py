"""A small tier's answer that does not do is asked again of a larger one, inside the boundary."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.difficulty.scorer import Difficulty, Score
from classifiers.view import PromptView
from tests.cases.built import built, entries, outcomes
from tests.cases.graded import EASY, files
from tests.router.budgeted import spent
from tests.router.scripted import (
    DONE,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    stream,
)

GRADING = "{strong_share: 0.5, accept_prior: true, cascade: {}}"
SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "n", "schema": {"type": "object", "required": ["city"]}},
}


def easy(self: Difficulty, view: PromptView) -> Score:
    return Score(-9.0, 0.1, False, "", self.version, "*", False)


async def ask(world: Scripted, **more: object) -> FakeExchange:
    messages = [{"role": "user", "content": EASY}]
    return await world.ask("eu", (), model="two", messages=messages, **more)


def said(exchange: FakeExchange) -> object:
    return json.loads(exchange.written)["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("I'm sorry, but I can't help with that.", {}, "refusal"),
        ("It is Paris.", {"response_format": SCHEMA}, "invalid_json"),
        ('{"town": 1}', {"response_format": SCHEMA}, "schema"),
    ],
)
async def test_what_does_not_do_is_escalated(
    tmp_path: Path,
    text: str,
    more: dict[str, object],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The shipped prior abstains where a schema is asked for; a local model need not.
    monkeypatch.setattr(Difficulty, "score", easy)

    def script(host: str, number: int) -> Reply:
        return answer(text if host == "par1" else '{"city": "Paris"}')

    async with built(tmp_path, script, files(grading=GRADING)) as world:
        done = await ask(world, **more)
        assert done.sent["x-domicile-tier"] == "large"
        assert done.sent["x-domicile-attempts"] == "2"
        assert said(done) == '{"city": "Paris"}'
        assert [world.transport.at(h) for h in ("par1", "fra1", "iad1")] == [1, 1, 0]
        metrics = world.router.live.metrics
        assert metrics.value("domicile_cascade_total", ("two", reason)) == 1
        assert metrics.value("domicile_cascade_wasted_tokens_total", ("two",)) == 5
        assert world.router.live.inflight.keys == ()
    kinds = [entry.kind for entry in entries(tmp_path) if entry.id]
    assert kinds == ["decision", "attempt", "outcome"]
    [outcome] = outcomes(tmp_path)
    attempts = outcome["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == ["escalated", "ok"]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("larger", [200, 503])
async def test_a_doubted_answer_costs_of_a_burst_budget_what_it_told(
    tmp_path: Path, told: bool, larger: int
) -> None:
    """All that was taken for it was kept: a small tier that is often doubted was soon shut out."""
    reply = b'{"choices":[{"index":0,"message":{"content":"I cannot say."}}]%b}'
    usage = b',"usage":{"prompt_tokens":30,"completion_tokens":4}'

    def script(host: str, number: int) -> Reply:
        if host == "par1":
            return Reply(200, chunks=[reply % (usage if told else b"")])
        return answer("Paris.") if larger == 200 else failure(larger)

    base = files(grading=GRADING)
    burst = "par: {burst: {tokens: 100k/h, output: 1000}, kind: vllm,"
    base = replace(base, baseline=base.baseline.replace("par: {kind: vllm,", burst))
    async with built(tmp_path, script, base) as world:
        done = await ask(world)
        assert said(done) == ("Paris." if larger == 200 else "I cannot say.")
        assert (spent(world) == 34) is told
        assert told or spent(world) > 1000


async def test_what_does_is_kept(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer("Paris."), files(grading=GRADING)) as world:
        done = await ask(world)
        assert done.sent["x-domicile-tier"] == "small"
        assert world.router.live.metrics.value("domicile_cascade_total", ("two", "kept")) == 1


async def test_when_no_larger_tier_answers_the_small_answer_is_better_than_none(
    tmp_path: Path,
) -> None:
    def script(host: str, number: int) -> Reply:
        return answer("I cannot say.") if host == "par1" else failure(503)

    async with built(tmp_path, script, files(grading=GRADING)) as world:
        done = await ask(world)
        assert said(done) == "I cannot say."
        assert done.sent["x-domicile-tier"] == "small"
        assert done.sent["x-domicile-attempts"] == "2"
        assert world.transport.at("iad1") == 0
        assert world.router.live.inflight.keys == ()


@pytest.mark.parametrize("marked", [False, True])
async def test_a_doubted_answer_opens_no_later_preference(tmp_path: Path, marked: bool) -> None:
    """France answered: it did not fail, so that Germany is not asked."""
    rule = "  - {name: home, prefer: [FR, EU], because: contract}"
    graded = files(grading=GRADING, rules=rule)
    async with built(tmp_path, lambda h, n: answer("I cannot say."), graded) as world:
        live = world.router.live
        if marked:
            live.health.mark("fra1", live.loop_time(), 60.0)
        done = await ask(world)
        assert done.sent["x-domicile-tier"] == "small"
        assert done.sent["x-domicile-attempts"] == "1"
        assert world.transport.at("fra1") == 0


async def test_policy_that_ends_at_small_is_no_cascade(tmp_path: Path) -> None:
    rule = "  - {name: bound, obligations: [{tier: {ceiling: small}}], because: contract}"
    graded = files(grading=GRADING, rules=rule)
    async with built(tmp_path, lambda h, n: answer("I cannot say."), graded) as world:
        done = await ask(world)
        assert done.sent["x-domicile-tier"] == "small"
        assert world.transport.at("fra1") == 0


async def test_without_the_option_and_in_a_stream_nothing_is_looked_at(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return answer("I cannot say.")

    async with built(tmp_path, script, files()) as world:
        assert (await ask(world)).sent["x-domicile-tier"] == "small"
    (tmp_path / "streamed").mkdir()

    def streamed(host: str, number: int) -> Reply:
        return stream(event(content="I cannot say."), DONE)

    async with built(tmp_path / "streamed", streamed, files(grading=GRADING)) as world:
        assert (await ask(world, stream=True)).sent["x-domicile-tier"] == "small"


def chosen(*choices: dict[str, object], spent: int | None = None) -> Reply:
    """A whole answer of several choices."""
    body: dict[str, object] = {
        "choices": [{"index": index, **one} for index, one in enumerate(choices)]
    }
    if spent is not None:
        body["usage"] = {"prompt_tokens": 9, "completion_tokens": spent}
    return Reply(200, chunks=[json.dumps(body).encode()])


def text(words: str, finish: str = "stop") -> dict[str, object]:
    return {"message": {"role": "assistant", "content": words}, "finish_reason": finish}


@pytest.mark.parametrize(
    ("limit", "spent", "tier"),
    [
        ({"max_tokens": 5}, 5, "small"), ({"max_completion_tokens": 5}, 5, "small"),
        ({"max_tokens": 5}, None, "small"), ({"max_tokens": 500}, 5, "large"), ({}, 5, "large"),
    ],
)  # fmt: skip
async def test_a_cut_by_the_client_s_own_limit_is_what_it_asked_for(
    tmp_path: Path, limit: dict[str, object], spent: int | None, tier: str
) -> None:
    """Large was asked too, was cut at the same place, and cost more for nothing."""

    def script(host: str, number: int) -> Reply:
        return chosen(text("Paris is a", "length"), spent=spent)

    async with built(tmp_path, script, files(grading=GRADING)) as world:
        assert (await ask(world, **limit)).sent["x-domicile-tier"] == tier


async def test_every_choice_is_looked_at(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return chosen(text("Paris."), text("I cannot say." if host == "par1" else "Paris."))

    async with built(tmp_path, script, files(grading=GRADING)) as world:
        assert (await ask(world, n=2)).sent["x-domicile-tier"] == "large"
        assert world.router.live.metrics.value("domicile_cascade_total", ("two", "refusal")) == 1
