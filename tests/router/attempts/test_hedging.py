"""A second attempt beside a slow one: who wins, who is cut off, and what is never hedged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from policies.model import Grant, Hedge, Prefer, Rule, Tenant
from policies.timed import ending
from router.attempts.hedging import race
from router.attempts.retrying import Retries
from router.audit.errors import LogUnavailable
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.audit.verify import verify
from router.narrowing.vetoes import Vetoes
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from tests.cases.built import until
from tests.router.scripted import (
    DONE,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    scripted,
    silent,
    stream,
)

SOON = Hedge(0.03, 0.5)


def streamed(host: str, number: int) -> Reply:
    return stream(event(content=host), DONE)


def hedge(world: Scripted, how: Hedge | None = SOON) -> None:
    """Let the model hedge."""
    live = world.router.live
    policy = live.snapshot.policy
    models = {name: replace(one, hedge=how) for name, one in policy.models.items()}
    live.snapshot = replace(live.snapshot, policy=replace(policy, models=models))


def slow(world: Scripted, *hosts: str, then: Exception | None = None) -> asyncio.Event:
    """Let hosts answer requests only once the event is set, or fail then."""
    gate, send = asyncio.Event(), world.transport.send

    async def held(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        if request.method != "POST" or request.origin.host not in hosts:
            return await send(request, timeouts)
        world.transport.sent.append(request)
        await gate.wait()
        if then is not None:
            raise then
        world.transport.sent.remove(request)
        return await send(request, timeouts)

    world.transport.send = held  # type: ignore[method-assign]
    return gate


async def asked(world: Scripted) -> FakeExchange:
    async with asyncio.timeout(10):
        return await world.ask(stream=True)


async def both_sent(world: Scripted) -> None:
    while len(world.transport.sent) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def entries(folder: Path, kind: str) -> list[Shown]:
    found = LogReader(Folder(folder / "log").log("eu-1")).entries()
    return [one for one in found if one.kind == kind]


def tried(folder: Path, number: int = 0) -> list[tuple[str, str]]:
    attempts = entries(folder, "outcome")[number].body["attempts"]
    assert isinstance(attempts, list)
    return [(str(one["endpoint"]), str(one["result"])) for one in attempts if isinstance(one, dict)]


async def test_who_has_content_first_is_relayed_and_the_other_is_cut_off(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        slow(world, "fra1")
        done = await asked(world)
        assert (done.code, done.sent["x-domicile-endpoint"]) == ("ok", "par1")
        assert done.sent["x-domicile-attempts"] == "2"
        assert b"par1" in done.written
        live = world.router.live
        assert live.inflight.keys == ()
        assert live.metrics.value("domicile_hedges_total", ("fra1",)) == 1
        assert live.metrics.value("domicile_failovers_total") == 0
        assert live.health.marked(live.loop_time()) == ()
    assert tried(tmp_path) == [("fra1", "hedged"), ("par1", "ok")]
    [attempt] = entries(tmp_path, "attempt")
    assert (attempt.body["endpoint"], attempt.body["number"]) == ("par1", 1)
    assert verify(tmp_path / "log").ok


async def test_the_first_may_win_all_the_same(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        gate = slow(world, "fra1", "par1")
        asking = asyncio.create_task(asked(world))
        await both_sent(world)
        gate.set()
        done = await asking
        winner = done.sent["x-domicile-endpoint"]
        assert winner.encode() in done.written
        assert world.router.live.inflight.keys == ()
    [lost, won] = tried(tmp_path)
    assert (lost[1], won) == ("hedged", (winner, "ok"))


async def test_a_quick_answer_is_hedged_by_nobody(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world, Hedge(5.0, 0.5))
        done = await asked(world)
        assert (done.sent["x-domicile-attempts"], len(world.transport.sent)) == ("1", 1)
    assert entries(tmp_path, "attempt") == []


async def never_hedged(world: Scripted, ask: Callable[[], Awaitable[FakeExchange]]) -> None:
    gate = slow(world, "fra1", "par1")
    asking = asyncio.ensure_future(ask())
    await until(lambda: world.transport.sent)  # on a busy machine that may take its time
    await asyncio.sleep(0.15)
    assert len(world.transport.sent) == 1
    gate.set()
    assert (await asking).code == "ok"


async def test_whole_answers_are_not_hedged(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        hedge(world)
        await never_hedged(world, world.ask)


async def test_what_stores_something_is_not_hedged(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        await never_hedged(world, lambda: world.ask(stream=True, store=True))


@pytest.mark.parametrize("managed", ["fra1", "par1"])
async def test_a_managed_endpoint_is_not_hedged_without_its_word(
    tmp_path: Path, managed: str
) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        live = world.router.live
        policy = live.snapshot.policy
        theirs = replace(policy.endpoints[managed], self_operated=False)
        changed = replace(policy, endpoints={**policy.endpoints, managed: theirs})
        live.snapshot = replace(live.snapshot, policy=changed)
        await never_hedged(world, lambda: world.ask(stream=True))


async def test_a_veto_of_the_same_turn_stops_the_first_attempt_too(tmp_path: Path) -> None:
    """Raced, it begins a turn after it was looked at: law 8 holds where it is sent."""
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        live = world.router.live
        dispatcher = world.router.pipeline._steps.dispatcher  # type: ignore[attr-defined]

        def wait(*given: object) -> float:
            vetoes = Vetoes(endpoints=dict.fromkeys(live.snapshot.policy.endpoints, "x"))
            asyncio.get_running_loop().call_soon(live.vetoes.put, "quarantine", vetoes)
            return 5.0

        object.__setattr__(dispatcher, "hedges", SimpleNamespace(wait=wait))
        assert (await asked(world)).status == 503
        assert world.transport.sent == []


async def test_a_vetoed_endpoint_is_no_second_choice(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        world.router.live.vetoes.put("quarantine", Vetoes(endpoints={"par1": "quarantine: x"}))
        await never_hedged(world, lambda: world.ask(stream=True))


def preferring(world: Scripted, first: str, spill: bool = False) -> None:
    """One country first, and the rest when it gives nothing."""
    live = world.router.live
    policy = live.snapshot.policy
    sets = (policy.atlas.country(first), policy.atlas.worldwide())
    rules = (Rule("home-first", prefer=Prefer(sets, spill)),)
    live.snapshot = replace(live.snapshot, policy=replace(policy, rules=rules, digest="r" * 64))


@pytest.mark.parametrize("spill", [False, True])
async def test_being_slow_opens_no_later_preference(tmp_path: Path, spill: bool) -> None:
    async with scripted(tmp_path, streamed) as world:
        preferring(world, "DE", spill)
        hedge(world)
        await never_hedged(world, lambda: world.ask(stream=True))
    assert entries(tmp_path, "attempt") == []


async def test_what_preferences_open_is_hedged(tmp_path: Path) -> None:
    """France is out: both of the others are asked in turn."""
    async with scripted(tmp_path, streamed) as world:
        preferring(world, "FR")
        live = world.router.live
        hedge(world)
        live.health.mark("par1", live.loop_time(), 60.0)
        gate = slow(world, "fra1", "iad1")
        done = asyncio.create_task(world.ask("world", stream=True))
        await both_sent(world)
        gate.set()
        assert (await done).code == "ok"


async def test_a_decision_that_ends_meanwhile_ends_no_attempt_made_in_time(tmp_path: Path) -> None:
    """Nothing is sent beside it any more; the first may answer."""
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        live = world.router.live
        policy = live.snapshot.policy
        end = time.time() + 3600
        within = ending(policy.atlas.jurisdiction("EU"), end, policy.atlas.country("DE"))
        tenants = {**policy.tenants, "eu": Tenant("eu", Grant.within(within))}
        policy = replace(policy, tenants=tenants, digest="t" * 64)
        live.snapshot = replace(live.snapshot, policy=policy)
        gate = slow(world, "fra1", "par1")
        asking = asyncio.create_task(asked(world))
        while not world.transport.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        dispatcher = world.router.pipeline._steps.dispatcher  # type: ignore[attr-defined]
        object.__setattr__(dispatcher, "stamp", lambda: end + 1)
        await asyncio.sleep(0.1)
        assert len(world.transport.sent) == 1
        gate.set()
        assert (await asking).code == "ok"
    assert [how for _, how in tried(tmp_path)] == ["ok"]


async def test_the_retry_budget_is_everybodys(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        budget: Retries = world.router.pipeline._steps.dispatcher.budget  # type: ignore[attr-defined]
        while budget.spend("eu"):
            pass
        await never_hedged(world, lambda: world.ask(stream=True))


async def test_a_share_of_requests_is_hedged_at_most(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world, Hedge(0.0, 0.1))
        gate = slow(world, "fra1", "par1")
        asking = [asyncio.create_task(asked(world)) for _ in range(30)]
        await asyncio.sleep(0.3)
        beside = len(world.transport.sent) - 30
        assert 1 <= beside <= 0.1 * 20 + 0.1 * 30
        gate.set()
        assert {(await one).code for one in asking} == {"ok"}
        assert world.router.live.inflight.keys == ()
    assert len(entries(tmp_path, "attempt")) == beside


async def test_a_first_attempt_that_fails_meanwhile_failed(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        second = slow(world, "par1")
        first = slow(world, "fra1", then=silent())
        asking = asyncio.create_task(asked(world))
        await both_sent(world)
        first.set()
        await asyncio.sleep(0.02)
        second.set()
        assert (await asking).sent["x-domicile-endpoint"] == "par1"
    assert tried(tmp_path) == [("fra1", "timeout"), ("par1", "ok")]


async def test_both_fail_and_each_was_asked_once(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: failure(500)) as world:
        hedge(world)
        gate = slow(world, "fra1", "par1")
        asking = asyncio.create_task(asked(world))
        await both_sent(world)
        gate.set()
        assert (await asking).status == 502
        assert sorted(one.origin.host for one in world.transport.sent) == ["fra1", "par1"]
    assert sorted(tried(tmp_path)) == [("fra1", "ill"), ("par1", "ill")]


async def test_a_client_that_leaves_ends_both(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        slow(world, "fra1", "par1")
        exchange = world.exchange(stream=True)
        running = asyncio.create_task(world.run(exchange))
        await both_sent(world)
        exchange.leave()
        await asyncio.wait_for(running, 5)
        assert world.router.live.inflight.keys == ()
    assert sorted(tried(tmp_path)) == [("fra1", "given_up"), ("par1", "given_up")]


async def test_nothing_second_is_sent_without_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world)
        log = world.router.live.log
        record = log.record

        def refuse(entry: object) -> object:
            if getattr(entry, "kind", "") == "attempt":
                raise LogUnavailable("disk full")
            return record(entry)  # type: ignore[arg-type]

        monkeypatch.setattr(log, "record", refuse)
        await never_hedged(world, lambda: world.ask(stream=True))


async def test_p95_waits_until_it_is_known(tmp_path: Path) -> None:
    async with scripted(tmp_path, streamed) as world:
        hedge(world, Hedge(None, 0.5))
        gate = slow(world, "fra1")
        asking = asyncio.create_task(asked(world))
        await asyncio.sleep(0.15)
        assert len(world.transport.sent) == 1  # nothing is known of this replica
        gate.set()
        await asking
        for _ in range(5):
            await asked(world)
        gate.clear()
        assert (await asked(world)).sent["x-domicile-endpoint"] == "par1"


async def gives(value: str | None, after: float = 0.0) -> str | None:
    await asyncio.sleep(after)
    return value


async def dies_slowly(value: str | None) -> str | None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
    return value


async def test_a_winner_is_lost_when_nobody_takes_it() -> None:
    """Who asked is cancelled while the loser ends: the answer's connection must not stay open."""
    lost: list[str] = []
    both = race(dies_slowly(None), 0.0, lambda: gives("b"), lost.append)
    racing = asyncio.create_task(both)
    await asyncio.sleep(0.03)
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert lost == ["b"]


async def test_what_both_had_is_lost_when_who_asked_is_cancelled_twice() -> None:
    lost: list[str] = []
    both = race(dies_slowly("a"), 0.0, lambda: dies_slowly("b"), lost.append)
    racing = asyncio.create_task(both)
    for _ in range(2):
        await asyncio.sleep(0.02)
        racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert sorted(lost) == ["a", "b"]


async def test_a_race_has_one_winner_and_the_other_is_lost() -> None:
    lost: list[str] = []
    assert await race(gives("a"), 1, lambda: gives("b"), lost.append) == "a"
    assert await race(gives("a", 5), 0.01, lambda: gives("b"), lost.append) == "b"
    assert await race(gives(None, 0.02), 0.01, lambda: gives("b", 0.03), lost.append) == "b"
    assert await race(gives(None, 0.02), 0.01, lambda: None, lost.append) is None
    assert lost == []
    with pytest.raises(TimeoutError):  # whatever it is: what nobody hears of is never mended
        await race(gives(None, 0.02), 0, lambda: asyncio.wait_for(gives("b"), 0), lost.append)
    gate = asyncio.Event()

    async def together(value: str) -> str | None:
        await gate.wait()
        return value

    asyncio.get_running_loop().call_later(0.05, gate.set)
    winner = await race(together("a"), 0.01, lambda: together("b"), lost.append)
    assert [winner, *lost] in (["a", "b"], ["b", "a"])
