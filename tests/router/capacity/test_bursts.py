"""Burst budgets: what a request may cost, who is passed over for it, and what is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest

from regions.model import Burst
from router.answers.outcomes import SPENT
from router.audit.layout import Folder
from router.capacity.bursts import REFUSED, Bursts, Paid, budgets, claims
from router.decisions.replay import Replayer
from router.metrics import Metrics
from router.state.spending import Budget, Claim, LocalSpending
from tests.cases.built import RULES, built, entries
from tests.router.budgeted import (
    BOTH,
    HOUR,
    MONEY,
    TOKENS,
    WIDE,
    Time,
    files,
    held,
    limited,
    spent,
    timed,
    well,
)
from tests.router.made import candidacy, endpoint


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ({}, 400),
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 10, "max_tokens": None}, 10),
        ({"max_completion_tokens": 10, "max_tokens": 30}, 30),
        ({"max_tokens": 9000}, 9000),
        ({"max_tokens": 10, "n": 3}, 30),
        ({"n": 3}, 1200),
    ],
)
def test_the_most_that_a_request_may_cost(body: dict[str, object], output: int) -> None:
    money, tokens = claims(limited(BOTH), body, 1000)
    assert (tokens.budget.name, tokens.amount) == ("tokens", 1000 + output)
    assert (money.budget.name, money.amount) == ("dollars", 3 * 1000 + 15 * output)


@pytest.mark.parametrize("count", [0, -1, "2", 2.0, True])
def test_what_nothing_bounds_costs_more_than_any_budget(count: object) -> None:
    assert {one.amount for one in claims(limited(BOTH), {"n": count}, 10)} == {inf}
    unbound = replace(BOTH, output=None)
    assert {one.amount for one in claims(limited(unbound), {}, 10)} == {inf}


def test_a_context_bounds_prompt_and_answer() -> None:
    (tokens,) = claims(limited(Burst(None, (5, HOUR)), context_tokens=4096), {}, 100_000)
    assert tokens.amount == 2 * 4096
    both = limited(Burst(None, (5, HOUR), output=100), context_tokens=4096)
    for body, output in (({}, 100), ({"max_tokens": 3000}, 3000), ({"max_tokens": 9000}, 4096)):
        assert claims(both, body, 1000)[0].amount == 1000 + output


def test_an_endpoint_without_a_budget_has_none() -> None:
    assert budgets(endpoint("near")) == ()
    assert claims(endpoint("near"), {}, 10) == ()


# -- who is asked --------------------------------------------------------------------------


async def test_who_has_spent_it_is_passed_over_until_there_is_room(tmp_path: Path) -> None:
    async with built(tmp_path, well, files(fra=TOKENS)) as world:
        clock = timed(world)
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra"
        assert spent(world, "fra") == 5  # what it told of its usage
        await held(world, 0.95, "fra")
        for _ in range(3):
            done = await world.ask()
            assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par")
            assert done.sent["x-domicile-attempts"] == "1"
        assert world.router.live.metrics.value(REFUSED, ("fra",)) == 3
        clock.now += HOUR + 60
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra"
    plans = [(one.body["plan"], one.body.get("passed")) for one in entries(tmp_path)
             if one.kind == "decision"]  # fmt: skip
    assert plans == [(["fra", "par"], None), *[(["par"], {"fra": SPENT})] * 3,
                     (["fra", "par"], None)]  # fmt: skip


async def test_replay_knows_who_may_be_passed_over(tmp_path: Path) -> None:
    async with built(tmp_path, well, files(fra=TOKENS)) as world:
        await held(world, 1, "fra")
        await world.ask()
    (one,) = (one for one in entries(tmp_path) if one.kind == "decision")
    replayer = Replayer(Folder(tmp_path / "log"))
    assert replayer.replay(one).differences == ()

    def told(**more: object) -> Sequence[str]:
        body = {**one.body, **more}
        return replayer.replay(replace(one, body=body)).differences  # type: ignore[arg-type]

    assert told(passed={}) == ("plan: fra is missing",)
    assert told(plan=["par", "fra"]) == ("plan: `fra` was passed over, and stands in it",)
    (first,) = told(passed={"par": SPENT, "fra": SPENT}, plan=["par"])
    assert first == "plan: `par` was passed over for a burst budget that it doesn't have"


@pytest.mark.parametrize("budget", [TOKENS, MONEY])
async def test_where_nobody_else_may_serve_the_client_is_told_when(
    tmp_path: Path, budget: str
) -> None:
    germany = ((b"x-domicile-attr-data_class", b"health"),)
    async with built(tmp_path, well, files(fra=budget)) as world:
        clock = timed(world)
        clock.now = 30.0
        await held(world, 1, "fra")
        clock.now += 600
        done = await world.ask(headers=germany)
        assert (done.status, done.code) == (503, "burst_spent")
        assert done.sent["retry-after"] == str(3660 - 630)
        assert done.sent["x-should-retry"] == "false"  # not by itself, so late
        error = json.loads(done.written)["error"]
        assert error["reasons"] == [{"endpoint": "fra", "excluded": ["burst_spent"]}]
        assert world.transport.sent == []
        clock.now += int(done.sent["retry-after"])
        assert (await world.ask(headers=germany)).status == 200
    codes = [one.body["code"] for one in entries(tmp_path) if one.kind == "refusal"]
    assert codes == ["burst_spent"]


async def test_what_is_dearer_than_the_whole_budget_is_not_told_to_wait(tmp_path: Path) -> None:
    async with built(tmp_path, well, files(WIDE, WIDE)) as world:
        done = await world.ask(max_tokens=2000)
        assert (done.status, done.code) == (400, "burst_exceeded")
        assert (done.sent["x-should-retry"], done.sent.get("retry-after")) == ("false", None)
        assert world.transport.sent == []
        assert (await world.ask(max_tokens=20)).status == 200


async def test_a_preference_for_who_has_spent_it_opens_the_next(tmp_path: Path) -> None:
    rules = RULES + "  - {name: germany-first, prefer: [DE, EU]}\n"
    async with built(tmp_path, well, files(fra=TOKENS, rules=rules)) as world:
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra"
        await held(world, 0.99, "fra")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par"
        assert world.transport.at("iad1") == 0


# -- what is shown, and what it costs ------------------------------------------------------


async def test_it_is_shown(tmp_path: Path) -> None:
    from router.narrowing.operating import status

    async with built(tmp_path, well, files(fra=MONEY, par=TOKENS)) as world:
        live = world.router.live
        await world.ask()
        live.refresh_gauges()
        assert live.metrics.value("domicile_burst_spent", ("fra", "dollars")) == 7e-6
        assert live.metrics.value("domicile_burst_left", ("fra", "dollars")) == 993e-6
        assert live.metrics.value("domicile_burst_left", ("par", "tokens")) == 1000
        shown = [one.model_dump() for one in status(live, None).bursts]
        assert {"endpoint": "fra", "of": "dollars", "limit": 0.001, "spent": 7e-6,
                "seconds": 3600.0} in shown  # fmt: skip
        live.bursts.spending = SimpleNamespace(degraded="redis: gone")
        assert "redis: gone" in live.degraded()
        live.bursts.spending = LocalSpending(Time())


async def test_who_has_no_budget_pays_nothing_for_those_who_have(tmp_path: Path) -> None:
    seen: set[str] = set()

    def profile(frame: FrameType, what: str, _: object) -> None:
        seen.add(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    async with built(tmp_path, well) as world:
        for _ in range(3):
            await world.ask()
        sys.setprofile(profile)
        try:
            await world.ask()
        finally:
            sys.setprofile(None)
    assert "ranking.py:run" in seen
    assert [one for one in seen if one.startswith(("bursts.py", "spending.py"))] == []


async def test_what_is_left_is_the_same_object_for_requests_alike() -> None:
    def one(name: str, burst: Burst | None) -> object:
        made = candidacy(name)
        return replace(made, endpoint=replace(made.endpoint, burst=burst))

    small = Burst(None, (10, HOUR), 5)
    eligible = (one("a", None), one("b", small), one("c", None), one("d", small))
    admitted = SimpleNamespace(body={}, raw=b"x" * 6)
    bursts = Bursts(LocalSpending(Time()), Metrics())
    kept, passed = bursts.within(eligible, admitted)  # type: ignore[arg-type]
    assert ([c.endpoint.name for c in kept], passed) == (["a", "c"], ("b", "d"))
    assert bursts.within(eligible, admitted)[0] is kept  # type: ignore[arg-type]
    admitted.raw = b"x"
    assert bursts.within(eligible, admitted) == (eligible, ())  # type: ignore[arg-type]
    bursts.forget()
    admitted.raw = b"x" * 6
    assert bursts.within(eligible, admitted)[0] is not kept  # type: ignore[arg-type]


def test_whatever_comes_first_settles_it() -> None:
    spending, budget = LocalSpending(Time()), Budget("far", "tokens", 100, HOUR)
    for closed, told, left in ((True, None, 60), (False, None, 0), (True, (3, 4), 7)):
        taken = spending.book([Claim(budget, 60)], [0])
        paid = Paid(spending, limited(BOTH), taken)
        if told is not None:
            paid.book(told)
        paid.close(ran=closed)
        paid.close(ran=not closed)
        assert spending.spent(budget) == left
        spending = LocalSpending(Time())
