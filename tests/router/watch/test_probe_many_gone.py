"""Hundreds of replicas that are gone: what asking them may cost those who are served."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from regions.health import Sign, Standing
from router.attempts.silence import Patience
from router.config import WatchSection
from router.transport.messages import (
    ConnectFailed,
    NoRoomHere,
    OutboundRequest,
    OutboundResponse,
    Timeouts,
)
from router.watch.probe import AT_ONCE, HEALTH_TIME, IN_TURN, Prober
from router.watch.scrape import Scraper
from router.watch.start import fleet_loops
from tests.cases.built import built
from tests.router.crowd import crowd, settle_for
from tests.router.scripted import Reply, Scripted, ScriptedTransport, answer, refused

MANY = 300
OTHERS = {"iad", "par"}


class Dialled(ScriptedTransport):
    """Refuses for hosts of `fra` unless they are `back`, or `says` something else there; keeps how
    many were asked at once."""

    def __init__(self) -> None:
        super().__init__(lambda host, number: answer())
        self.back: set[str] = set()
        self.says: Reply | NoRoomHere | ConnectFailed | None = None
        self.under_way: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        path, host = request.target, request.origin.host
        self.asked[path] += 1
        self.hosts[host] += 1
        self.under_way[path] += 1
        self.most[path] = max(self.most[path], self.under_way[path])
        try:
            await asyncio.sleep(0.001)
        finally:
            self.under_way[path] -= 1
        if not host.startswith("fra-") or host in self.back:
            return answer() if path == "/v1/chat/completions" else Reply(200)
        if isinstance(self.says, Reply):
            return self.says
        raise self.says or refused()

    def taken(self, path: str) -> int:
        """How often a path was asked for since the last time."""
        return self.asked.pop(path, 0)


def many(world: Scripted, count: int = MANY) -> tuple[Prober, Dialled]:
    crowd(world, "fra", count)
    live, transport = world.router.live, Dialled()
    return Prober(live, transport, Scraper(live, transport), 1.0), transport


def standings(one: Prober, later: float = 0.0) -> Counter[Standing]:
    live, now = one.live, one.live.loop_time() + later
    keys = [key for key in live.snapshot.replica_keys if key.startswith("fra/")]
    return Counter(live.health.standing(key, now) for key in keys)


async def all_gone(one: Prober) -> None:
    """Look until every mark lasts until its replica is asked again."""
    await one.look()
    for key in one.live.snapshot.replica_keys:
        one.live.health.mark(key, one.live.loop_time(), 60.0 if key.startswith("fra/") else 0.0)


async def test_of_many_that_are_gone_few_are_asked_a_period(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await one.look()
        assert transport.taken("/health") == MANY + len(OTHERS)
        assert transport.most["/health"] <= AT_ONCE
        for _ in range(4):
            await one.look()
            assert transport.taken("/health") == IN_TURN + len(OTHERS)
        assert standings(one) == {Standing.MARKED: MANY}


async def test_each_gets_its_turn_and_its_mark_lasts_until_then(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await all_gone(one)
        transport.hosts.clear()
        periods = -(-MANY // IN_TURN)
        for _ in range(periods):
            await one.look()
        assert {transport.hosts[f"fra-{n}"] for n in range(MANY)} <= {1, 2}
        assert standings(one, later=float(periods)) == {Standing.MARKED: MANY}


async def test_no_canary_and_no_scrape_goes_to_who_is_gone(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await one.look()
        one._born = one.live.loop_time() - 100
        await one.listen()
        await asyncio.gather(*one._running.values())
        assert transport.taken("/v1/chat/completions") == len(OTHERS)
        transport.taken("/metrics")
        await one.scraper.look()
        assert transport.taken("/metrics") == len(OTHERS)


@pytest.mark.parametrize("count", [1, MANY])
async def test_a_mark_outlasts_looks_that_silent_replicas_make_long(
    tmp_path: Path, count: int
) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world, count)
        transport.says = ConnectFailed("no answer", "timeout")
        live, since = one.live, 0.0

        def silent() -> float:
            return loop.time() + since

        loop = asyncio.get_running_loop()
        live.loop_time = silent
        turns = -(-count // IN_TURN)
        for _ in range(3 + turns):
            looks = asyncio.create_task(one.look())
            await asyncio.sleep(0)
            since += HEALTH_TIME  # what asking those that say nothing takes
            await looks
            since += 1.1  # and a period until the next look, give or take a tenth
        later = HEALTH_TIME - 0.01  # then whoever is asked next has said nothing again
        assert standings(one, later) == {Standing.MARKED: count}


async def test_a_lost_region_is_asked_every_period(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world, IN_TURN)
        for _ in range(3):
            await one.look()
            assert transport.taken("/health") == IN_TURN + len(OTHERS)
            assert standings(one, later=1.9) == {Standing.MARKED: IN_TURN}
            assert standings(one, later=2.1) == {Standing.TRIAL: IN_TURN}


async def test_when_one_is_back_all_are_asked_at_once(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await all_gone(one)
        transport.back |= {f"fra-{n}" for n in range(MANY)}
        transport.taken("/health")
        await one.look()
        assert transport.taken("/health") == IN_TURN + len(OTHERS)
        await one.look()
        assert transport.taken("/health") == MANY + len(OTHERS)
        assert not one._gone


async def test_who_answers_a_client_waits_for_no_turn(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await all_gone(one)
        transport.taken("/health")
        now = one.live.loop_time()
        one.live.health.observe("fra/299", Sign.OK, now)  # and its siblings' marks end
        assert standings(one) == {Standing.GOOD: 1, Standing.TRIAL: MANY - 1}
        await one.look()
        assert transport.taken("/health") == MANY + len(OTHERS)


async def test_quiet_canaries_are_few_at_once_and_a_suspect_waits_for_none(
    tmp_path: Path,
) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        transport.back |= {f"fra-{n}" for n in range(MANY)}
        one._born = one.live.loop_time() - 100
        await one.listen()
        assert len(one._running) == IN_TURN
        suspect = f"fra/{MANY - 1}"
        assert suspect not in one._running
        one._silence.enter(Patience(one._silence, suspect, True, one.live.loop_time() - 1000))
        await one.listen()
        assert len(one._running) == IN_TURN + 1
        assert suspect in one._running
        for _ in range(-(-MANY // IN_TURN)):
            await asyncio.gather(*one._running.values())
            await one.listen()
        await asyncio.gather(*one._running.values())
        assert transport.taken("/v1/chat/completions") >= MANY
        assert transport.most["/v1/chat/completions"] <= IN_TURN + 1


@pytest.mark.parametrize("count", [IN_TURN + 1, MANY])
async def test_what_is_gone_from_the_files_is_forgotten(tmp_path: Path, count: int) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, _ = many(world, count)
        await one.look()
        assert len(one._gone) == count
        crowd(world, "fra", 1)
        await one.look()
        assert list(one._gone) == ["fra/0"]


async def test_who_gets_no_canary_is_tried_soon_after_it_answers(tmp_path: Path) -> None:
    """The mark of one of many lasts until all had their turn; that of one that is back does not."""
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        settle_for(world, fra={"probe": "health"})
        await all_gone(one)
        transport.back |= {f"fra-{n}" for n in range(MANY)}
        await one.look()
        await one.look()
        assert standings(one, later=2.1) == {Standing.TRIAL: MANY}


async def test_who_could_not_be_asked_is_not_back(tmp_path: Path) -> None:
    """Else a router without descriptors would ask all that are gone, each period."""
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await all_gone(one)
        transport.says = NoRoomHere("full")
        for _ in range(3):
            transport.taken("/health")
            await one.look()
            assert transport.taken("/health") == IN_TURN + len(OTHERS)
        assert len(one._gone) == MANY
        assert standings(one) == {Standing.MARKED: MANY}


async def test_a_server_that_wants_a_key_for_its_health_gets_canaries(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world, 1)
        transport.says = Reply(401)
        await one.look()
        assert standings(one) == {Standing.MARKED: 1}
        transport.back.add("fra-0")
        await one.listen()
        await asyncio.gather(*one._running.values())
        assert transport.taken("/v1/chat/completions") == 1
        assert standings(one) == {Standing.GOOD: 1}


async def test_thousands_that_say_nothing_are_known_after_two_looks(tmp_path: Path) -> None:
    """A look that takes too long is broken off, and whoever stands last would not be asked."""
    async with built(tmp_path, lambda host, number: answer()) as world:
        one, transport = many(world)
        await one.look()
        assert transport.most["/health"] == AT_ONCE
        limits = {loop.name: loop.limit for loop in fleet_loops(one, WatchSection())}
        assert limits["probe"] > 2000 / AT_ONCE * HEALTH_TIME
