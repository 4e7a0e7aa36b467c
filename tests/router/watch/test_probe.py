"""Probes: what each answer means, who is asked, and the frozen engine behind a healthy server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from regions.health import Standing
from router.config import Limits
from router.narrowing.vetoes import Vetoes
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from router.watch.probe import Prober, question, takes_canary
from router.watch.scrape import Scraper
from tests.cases.built import BASELINE, Files, built, entries, until
from tests.router.crowd import settle_for
from tests.router.house import KEYS, House, Plan, house
from tests.router.made import endpoint
from tests.router.scripted import (
    Reply,
    Scripted,
    ScriptedTransport,
    answer,
    failure,
    refused,
    scripted,
    silent,
)

Made = Callable[[], Reply | Exception]


class Probed(ScriptedTransport):
    """Answers by path; keeps what was asked."""

    def __init__(self, health: Made, canary: Made, metrics: Made = refused) -> None:
        super().__init__(lambda host, number: answer())
        self.made = {"/health": health, "/v1/chat/completions": canary, "/metrics": metrics}

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        self.sent.append(request)
        await asyncio.sleep(0)
        made = self.made[request.target]()
        if isinstance(made, Exception):
            raise made
        return made

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(1 for request in self.sent if request.target == path)


def prober(world: Scripted, transport: Probed) -> Prober:
    live = world.router.live
    return Prober(live, transport, Scraper(live, transport), 1.0)


async def ended(one: Prober) -> None:
    await asyncio.gather(*one._running.values())


def well() -> Reply:
    return Reply(200)


def test_the_question_holds_nothing_of_anybody() -> None:
    asked = question(endpoint("fra"), 5.0)
    assert json.loads(asked.raw) == {
        "model": "tiny", "messages": [{"role": "user", "content": "."}], "max_tokens": 1,
    }  # fmt: skip


def test_who_is_asked_for_tokens() -> None:
    own = endpoint("fra")
    assert takes_canary(own)
    assert not takes_canary(endpoint("fra", settings={"probe": "health"}))
    assert not takes_canary(endpoint("fra", surfaces=frozenset({"embeddings"})))


async def test_a_server_that_is_gone_is_marked_and_stays_marked(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(refused, well)
        one = prober(world, transport)
        for _ in range(3):
            await one.look()
            assert live.health.standing("fra1", live.loop_time() + 1.9) is Standing.MARKED
            assert live.health.standing("fra1", live.loop_time() + 2.1) is Standing.TRIAL
        assert "health says gone" in live.notes["probe:fra1"]
        transport.made["/health"] = well
        await one.look()
        assert "probe:fra1" in live.notes  # its engine has not been heard yet
        transport.made["/v1/chat/completions"] = answer
        await one.listen()
        await ended(one)
        assert "probe:fra1" not in live.notes
        assert live.health.standing("fra1", live.loop_time()) is Standing.GOOD


async def test_where_no_engine_can_be_asked_the_server_s_word_counts(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        settle_for(world, fra1={"probe": "health"})
        live, transport = world.router.live, Probed(refused, well)
        one = prober(world, transport)
        await one.look()
        transport.made["/health"] = well
        await one.look()
        assert "probe:fra1" not in live.notes
        assert live.health.standing("fra1", live.loop_time() + 3) is Standing.TRIAL


@pytest.mark.parametrize("made", [silent, lambda: failure(500)])
async def test_one_bad_answer_may_be_chance(tmp_path: Path, made: Made) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(made, well)
        one = prober(world, transport)
        await one.look()
        assert live.health.marked(live.loop_time()) == ()
        await one.look()
        assert "fra1" in live.health.marked(live.loop_time())


async def test_a_healthy_server_heals_nothing(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        live.health.mark("fra1", live.loop_time(), 30)
        await prober(world, Probed(well, well)).look()
        assert live.health.standing("fra1", live.loop_time()) is Standing.MARKED


@pytest.mark.parametrize("made", [lambda: failure(404), lambda: failure(429), lambda: failure(400)])
async def test_what_says_nothing_marks_nothing(tmp_path: Path, made: Made) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        one = prober(world, Probed(made, made))
        for _ in range(5):
            await one.look()
        assert world.router.live.health.marked(world.router.live.loop_time()) == ()


async def quiet(one: Prober, transport: Probed) -> None:
    """As if nothing had been heard for long."""
    await one.listen()
    assert transport.asked("/v1/chat/completions") == 0
    one._born = one.live.loop_time() - 100
    await one.listen()
    await ended(one)


async def test_a_canary_that_is_silent_marks_and_one_that_answers_heals(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, silent)
        one = prober(world, transport)
        await quiet(one, transport)
        assert live.health.marked(live.loop_time()) == ("fra1", "iad1", "par1")
        transport.made["/v1/chat/completions"] = answer
        one._asked.clear()
        await one.listen()
        await ended(one)
        assert live.health.marked(live.loop_time()) == ()
        assert live.health.share("fra1", live.loop_time()) < 0.2  # and ramps up


async def test_a_canary_that_costs_is_in_the_log(tmp_path: Path) -> None:
    old, new = 'credentials: "env:OPENAI_EU"', 'credentials: "env:OPENAI_EU", probe: canary'
    assert old in BASELINE
    files = Files(baseline=BASELINE.replace(old, new))

    def told() -> Reply:
        made = answer()
        made.headers = (*made.headers, (b"x-request-id", b"0a1b2c3d-1111-2222-3333-444455556666"))
        return made

    async with built(tmp_path, lambda host, number: answer(), files) as world:
        transport = Probed(well, told)
        one = prober(world, transport)
        chosen = {r.endpoint.name: r for r in one._canaries()}
        await one._canary(chosen["fra"])
        await one._canary(chosen["openai-eu"])
        transport.made["/v1/chat/completions"] = silent
        await one._canary(chosen["openai-eu"])
        digest = world.router.live.snapshot.digest
    said = [found.body for found in entries(tmp_path) if found.body.get("event") == "canary"]
    assert [(body["endpoint"], body["result"]) for body in said] == [
        ("openai-eu", "ok"), ("openai-eu", "unknown"),
    ]  # fmt: skip
    assert (said[0]["call"], said[0]["snapshot"]) == (
        "0a1b2c3d-1111-2222-3333-444455556666",
        digest,
    )
    assert said[0]["process"]
    assert "call" not in said[1]


async def test_a_busy_engine_is_not_frozen(tmp_path: Path) -> None:
    progress = iter(range(1000))

    def metrics() -> Reply:
        page = f"vllm:generation_tokens_total {next(progress)}\n"
        return Reply(200, (), [page.encode()])

    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, silent, metrics)
        await quiet(prober(world, transport), transport)
        assert live.health.marked(live.loop_time()) == ()


@pytest.mark.parametrize(
    ("status", "marked"), [(400, False), (401, True), (403, True), (429, False)]
)
async def test_what_a_canarys_refusal_means(tmp_path: Path, status: int, marked: bool) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, lambda: failure(status))
        await quiet(prober(world, transport), transport)
        assert bool(live.health.marked(live.loop_time())) is marked
        if marked:
            assert live.notes["probe:fra1"] == "canary says auth"
            assert any("auth" in one for one in live.degraded())


async def test_probe_off_and_vetoes_are_obeyed(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        settle_for(world, fra1={"probe": "off"}, par1={"probe": "health"})
        world.router.live.vetoes.put("quarantine", Vetoes(endpoints={"iad1": "a test"}))
        transport = Probed(well, answer)
        one = prober(world, transport)
        await quiet(one, transport)
        await one.look()
        assert {(r.origin.host, r.target) for r in transport.sent} == {("par1", "/health")}


async def ask(client: httpx.AsyncClient, tokens: int = 2) -> httpx.Response:
    body = {
        "model": "assistant",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": tokens,
    }
    return await client.post("/v1/chat/completions", json=body)


@asynccontextmanager
async def asked_of(found: House, patience: float = 20) -> AsyncIterator[httpx.AsyncClient]:
    """A client that is made once: making one takes a good part of a second."""
    sent = {"authorization": f"Bearer {KEYS['eu']}"}
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(
        base_url=found.url, timeout=patience, trust_env=False, headers=sent, limits=limits
    ) as client:
        for _ in range(12):
            await ask(client)
        yield client


async def test_a_frozen_engine_is_out_in_time_and_nobody_fails(tmp_path: Path) -> None:
    async with house(tmp_path) as running, asked_of(running) as client:
        live, loop = running.router.live, asyncio.get_running_loop()
        usual = live.silence.usual("fra1", False)
        assert usual < 5
        running.fleet["fra1"].freeze()
        began = loop.time()
        asking = [asyncio.create_task(ask(client)) for _ in range(6)]
        await until(lambda: "fra1" in live.health.marked(loop.time()))
        assert loop.time() - began < 2 * usual + 1
        for done in await asyncio.gather(*asking):
            assert done.status_code == 200
            assert done.headers["x-domicile-endpoint"] == "par1"
        assert running.hits("self:iad1") == 0
        running.fleet["fra1"].thaw()
        await until(lambda: live.health.standing("fra1", loop.time()) is Standing.GOOD, 8)


async def test_a_crowded_engine_is_kept(tmp_path: Path) -> None:
    # Patient: a hundred connects at once on a busy machine take their time, and are no illness.
    times = {"connect": "10s", "first_token": "20s", "answer": "30s", "deadline": "60s"}
    plan = Plan(regions=("self:fra1",), limits=Limits.model_validate(times))
    async with house(tmp_path, plan) as running, asked_of(running, 60) as client:
        live = running.router.live
        done = await asyncio.gather(*(ask(client, 200) for _ in range(100)))
        assert {one.status_code for one in done} == {200}
        assert live.health.marked(live.loop_time()) == ()


async def test_a_killed_replica_is_asked_no_more_after_a_second(tmp_path: Path) -> None:
    async with house(tmp_path) as running, asked_of(running) as client:
        live = running.router.live
        running.fleet["fra1"].kill()
        assert (await ask(client)).headers["x-domicile-endpoint"] == "par1"
        await asyncio.sleep(1.0)
        attempts: list[str] = []
        for _ in range(15):
            attempts.append((await ask(client)).headers["x-domicile-attempts"])
            await asyncio.sleep(0.1)
        assert attempts == ["1"] * 15
        assert "fra1" in live.health.marked(live.loop_time())
