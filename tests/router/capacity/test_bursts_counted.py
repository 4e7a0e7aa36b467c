"""What counts of a burst budget: whatever may have run at its endpoint, and nothing else."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from router.audit.errors import LogUnavailable
from router.capacity.bursts import budgets
from router.narrowing.vetoes import Vetoes
from router.state.spending import Claim
from router.transport.messages import Fate, GarbledAnswer
from tests.cases.built import Files, built, entries, outcomes
from tests.router.budgeted import (
    TOKENS,
    Gate,
    files,
    held,
    spent,
    well,
)
from tests.router.scripted import (
    DONE,
    Reply,
    answer,
    event,
    failure,
    lost,
    refused,
    stream,
)


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (answer, 5),
        (refused, 0),
        (lambda: failure(429), 0),
        (lambda: failure(404), 0),
        (lambda: failure(500), None),
        (lost, None),
        (lambda: GarbledAnswer("garbled", Fate.UNKNOWN), None),
        (lambda: Reply(200, chunks=[b'{"choices":[{"index":0,"message":{"content":"x"}}]}']), None),
    ],
)
async def test_what_may_have_run_counts_and_nothing_else(
    tmp_path: Path, made: object, counts: int | None
) -> None:
    script = lambda host, number: made() if host == "fra1" else answer()  # type: ignore[operator]  # noqa: E731
    async with built(tmp_path, script, files(fra=TOKENS)) as world:
        asked = world.exchange("eu", max_tokens=50)
        most = len(await asked.body(1 << 20)) + 50
        await world.run(asked)
        assert asked.status == 200
        assert spent(world, "fra") == (most if counts is None else counts)


async def test_a_client_that_leaves_in_the_middle_costs_all_that_was_taken(tmp_path: Path) -> None:
    def leaving(host: str, number: int) -> Reply:
        asyncio.get_running_loop().call_soon(asked.leave)
        return stream(event(content="a"), event(content="b"), DONE)

    async with built(tmp_path, leaving, files(fra=TOKENS)) as world:
        asked = world.exchange("eu", stream=True, max_tokens=50)
        most = len(await asked.body(1 << 20)) + 50
        await world.run(asked)
        assert spent(world, "fra") == most


async def test_a_clients_own_mistake_costs_nothing(tmp_path: Path) -> None:
    baseline = files(fra=TOKENS).baseline
    async with built(tmp_path, lambda h, n: failure(400), Files(baseline=baseline)) as world:
        assert (await world.ask()).status == 400
        assert spent(world, "fra") == 0


async def test_failover_counts_too_and_may_find_no_room(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply | Exception:
        return lost() if host == "fra1" else answer()

    async with built(tmp_path, script, files(par=TOKENS)) as world:
        done = await world.ask()
        assert (done.sent["x-domicile-attempts"], spent(world)) == ("2", 5)
        # Room for it when the plan is made, and none any more when its turn comes.
        gate = world.router.live.bursts.spending = Gate()
        asking = asyncio.create_task(world.ask())
        await gate.asked.wait()
        (budget,) = budgets(world.router.live.snapshot.policy.endpoints["par"])
        gate.book([Claim(budget, 1000)], [0])
        gate.opened.set()
        done = await asking
        assert (done.status, done.code) == (502, "bad_answer")
        assert json.loads(done.written)["error"]["reasons"][:2] == [
            {"endpoint": "fra", "result": "connection_lost", "status": None},
            {"endpoint": "par", "excluded": ["burst_spent"]},
        ]
        assert world.transport.at("par1") == 1


async def test_whoever_comes_second_at_once_is_sent_on_and_nothing_is_spent_twice(
    tmp_path: Path,
) -> None:
    async with built(tmp_path, well, files(fra="tokens: 500/h, output: 300")) as world:
        answers = await asyncio.gather(*(world.ask() for _ in range(4)))
        places = sorted(one.sent["x-domicile-endpoint"] for one in answers)
        assert places == ["fra", "par", "par", "par"]
        assert world.transport.at("fra1") == 1
    assert [one["status"] for one in outcomes(tmp_path)] == ["ok"] * 4
    for one in (one for one in entries(tmp_path) if one.kind == "attempt"):
        assert one.body["endpoint"] == "par"


async def test_whoever_comes_second_at_once_and_has_nobody_else_is_told_when(
    tmp_path: Path,
) -> None:
    germany = ((b"x-domicile-attr-data_class", b"health"),)
    async with built(tmp_path, well, files(fra="tokens: 500/h, output: 300")) as world:
        answers = await asyncio.gather(*(world.ask(headers=germany) for _ in range(3)))
        assert sorted(one.code for one in answers) == ["burst_spent", "burst_spent", "ok"]
        for one in (one for one in answers if one.status == 503):
            assert one.sent["retry-after"] == "5"  # the one under way will give most of it back
            assert b'{"endpoint":"fra","excluded":["burst_spent"]}' in one.written
        assert world.transport.at("fra1") == 1
    assert sorted(str(one["status"]) for one in outcomes(tmp_path)) == ["burst_spent"] * 2 + ["ok"]


async def test_a_veto_that_comes_while_it_is_taken_sends_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, well, files(fra=TOKENS)) as world:
        gate = world.router.live.bursts.spending = Gate()
        asking = asyncio.create_task(world.ask())
        await gate.asked.wait()
        world.router.live.vetoes.put("quarantine", Vetoes(endpoints={"fra": "quarantine: x"}))
        gate.opened.set()
        assert (await asking).sent["x-domicile-endpoint"] == "par"
        assert (world.transport.at("fra1"), spent(world, "fra")) == (0, 0)


async def test_where_one_is_vetoed_and_the_other_has_spent_it_both_are_told(tmp_path: Path) -> None:
    """It comes back with the budget: not everything is vetoed."""
    async with built(tmp_path, well, files(fra=TOKENS)) as world:
        gate = world.router.live.bursts.spending = Gate()
        asking = asyncio.create_task(world.ask())
        await gate.asked.wait()
        world.router.live.vetoes.put("quarantine", Vetoes(endpoints={"par": "quarantine: x"}))
        (budget,) = budgets(world.router.live.snapshot.policy.endpoints["fra"])
        gate.book([Claim(budget, 1000)], [0])
        gate.opened.set()
        done = await asking
        assert (done.status, done.code) == (503, "burst_spent")
        assert json.loads(done.written)["error"]["reasons"][:2] == [
            {"endpoint": "par", "vetoed": "quarantine"},
            {"endpoint": "fra", "excluded": ["burst_spent"]},
        ]


async def test_a_client_that_leaves_while_it_is_taken_costs_nothing(tmp_path: Path) -> None:
    async with built(tmp_path, well, files(fra=TOKENS)) as world:
        gate = world.router.live.bursts.spending = Gate()
        asked = world.exchange("eu")
        asking = asyncio.create_task(world.run(asked))
        await gate.asked.wait()
        asked.leave()
        await asking
        assert (world.transport.sent, spent(world, "fra")) == ([], 0)


async def test_a_log_that_fails_before_it_is_sent_costs_nothing(tmp_path: Path) -> None:
    script = lambda host, number: lost() if host == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script, files(par=TOKENS)) as world:

        async def full(*_: object) -> object:
            raise LogUnavailable("full")

        steps = world.router.pipeline._steps
        dispatcher = replace(steps.dispatcher, record=full)  # type: ignore[attr-defined]
        world.router.pipeline._steps = replace(steps, dispatcher=dispatcher)  # type: ignore[type-var]
        assert (await world.ask()).code == "log_unavailable"
        assert (world.transport.at("par1"), spent(world)) == (0, 0)


async def test_the_loser_of_two_side_by_side_counts(tmp_path: Path) -> None:
    baseline = files(fra=TOKENS, par=TOKENS).baseline.replace(
        "fra: {", "fra: {hedge: {after: 20ms, at_most: 0.5}, ", 1
    )
    gone = asyncio.Event()

    class Slow(Reply):
        async def chunk(self, until: float) -> bytes:
            await gone.wait()
            return b""

    def script(host: str, number: int) -> Reply:
        quick = stream(event(content="b"), DONE)
        return Slow(200, ((b"content-type", b"text/event-stream"),)) if host == "fra1" else quick

    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        asked = world.exchange("eu", stream=True, max_tokens=50)
        most = len(await asked.body(1 << 20)) + 50
        await world.run(asked)
        assert asked.sent["x-domicile-endpoint"] == "par"
        assert spent(world, "fra") == most
        # Without room it is not asked beside another one, which goes on alone.
        await held(world, 1 - spent(world) / 1000)
        asyncio.get_running_loop().call_later(0.1, gone.set)
        asked = await world.ask("eu", stream=True, max_tokens=50)
        assert world.transport.at("par1") == 1
