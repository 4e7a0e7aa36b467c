"""Choosing a replica and counting it are one step; engines correct what this router knows."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from regions.fleet import Reading
from regions.health import Sign, Standing
from tests.router.crowd import crowd, hosts, settle_for
from tests.router.scripted import Reply, Scripted, answer, event, failure, scripted, stream


def well(host: str, number: int) -> Reply:
    return answer()


async def test_requests_that_choose_at_once_choose_differently(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        crowd(world, "fra1", 4)
        crowd(world, "par1", 4)
        done = await asyncio.gather(*(world.ask(content=str(n)) for n in range(8)))
        assert {one.status for one in done} == {200}
        assert len(hosts(world)) == 8
        assert set(hosts(world).values()) == {1}


async def test_a_burst_spreads_evenly(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        crowd(world, "fra1", 5)
        for _ in range(3):
            before = hosts(world)
            await asyncio.gather(*(world.ask() for _ in range(60)))
            seen = hosts(world)
            seen.subtract(before)
            fleet = [count for host, count in seen.items() if host != "par1"]
            assert max(fleet) <= 1.3 * sum(fleet) / 5


async def test_nothing_leaks_whatever_ends_a_request(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        status = (200, 500, 400, 429)[number % 4]
        return answer() if status == 200 else failure(status)

    async with scripted(tmp_path, script) as world:
        crowd(world, "fra1", 3)
        leaving = [world.exchange() for _ in range(10)]
        tasks = [asyncio.create_task(world.run(one)) for one in leaving]
        await asyncio.sleep(0)
        for one in leaving[::2]:
            one.leave()
        await asyncio.gather(*tasks)
        await asyncio.gather(*(world.ask(stream=bool(n % 2)) for n in range(40)))
        assert world.router.live.inflight.keys == ()


async def test_a_place_is_kept_from_rank_to_dispatch_only_once(tmp_path: Path) -> None:
    held: list[int] = []

    async with scripted(tmp_path, well) as world:
        live = world.router.live

        def script(host: str, number: int) -> Reply:
            held.append(live.inflight.requests("fra1"))
            return answer()

        world.transport._script = script
        await world.ask()
        assert held == [1]


async def test_of_a_rack_that_fails_the_next_attempts_go_anywhere(tmp_path: Path) -> None:
    """Not to whoever stands first in the files: of a third that is down it may be another."""
    async with scripted(tmp_path, well) as world:
        keys = crowd(world, "fra1", 90)
        balance = world.router.live.balance
        found = Counter[str]()
        for _ in range(400):
            asked = balance.in_turn(world.router.live.snapshot, "fra1", "fra1/0")
            assert next(asked) == "fra1/0"
            found[next(asked)] += 1
        assert len(found) > 60
        assert sum(found[key] for key in keys[:30]) < 200


async def test_what_others_sent_counts(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        keys = crowd(world, "fra1", 2)
        live = world.router.live
        live.readings.report(keys[0], Reading(live.loop_time(), 10, 0))
        for _ in range(5):
            await world.ask()
        assert hosts(world)["fra1-0"] == 0
        assert live.balance.condition("fra1").load == 0


async def test_saturation_is_seen_where_requests_really_are(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        settle_for(world, fra1={"capacity_requests": "32"})
        live = world.router.live
        held = [live.inflight.enter("fra1", 10) for _ in range(64)]
        assert live.balance.saturation("fra1", "fra1") == 2.0
        assert live.balance.condition("fra1").full
        for one in held[:33]:
            one.close()
        assert not live.balance.condition("fra1").full


@pytest.mark.parametrize(
    ("reading", "full"),
    [
        (Reading(0, 8, 8), True),
        (Reading(0, 8, 1), False),
        (Reading(0, 8, 0, kv=0.99), False),
        (Reading(0, None, 50), False),
        (Reading(0, 8, None), False),
    ],
)
async def test_an_engine_that_queues_is_full(tmp_path: Path, reading: Reading, full: bool) -> None:
    async with scripted(tmp_path, well) as world:
        live = world.router.live
        numbers = (reading.running, reading.waiting, reading.kv)
        live.readings.report("fra1", Reading(live.loop_time(), *numbers))
        assert live.balance.condition("fra1").full is full
        live.readings.report("fra1", Reading(live.loop_time() - 100, *numbers))
        assert not live.balance.condition("fra1").full


async def test_a_marked_replica_comes_last_and_a_full_one_before_it(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        keys = crowd(world, "fra1", 3)
        settle_for(world, fra1={"capacity_requests": "1"})
        live = world.router.live
        live.health.observe(keys[0], Sign.DEAD, live.loop_time())
        held = live.inflight.enter(keys[1], 5)
        assert live.balance.condition("fra1")[:4] == (Standing.GOOD, 0, 0, False)
        taken = live.balance.reserve("fra1", 5)
        assert taken is not None
        assert taken.key == keys[2]
        assert live.balance.condition("fra1").full
        for one in (held, taken):
            one.close()


async def test_a_replica_that_comes_back_is_given_more_as_it_proves_itself(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        keys = crowd(world, "fra1", 2)
        live = world.router.live
        past = live.loop_time() - 60
        for key in keys:
            live.health.observe(key, Sign.DEAD, past)
            live.readings.report(key, Reading(past))
        room = []
        for _ in range(3):
            entered = []
            while not live.balance.condition("fra1").full:
                held = live.balance.reserve("fra1", 100, prompt=50)
                assert held is not None
                entered.append(held)
            room.append(len(entered))
            for one in entered:
                live.health.observe(one.key, Sign.OK, live.loop_time())
                one.opened(live.loop_time())
        assert room == [2, 4, 8]
        live.readings.forget(frozenset())
        assert not live.balance.condition("fra1").full  # what tells nothing has no such bound


async def test_an_endpoint_without_replicas_can_not_be_asked(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        crowd(world, "fra1", 0)
        assert world.router.live.balance.condition("fra1").standing is Standing.MARKED
        assert world.router.live.balance.reserve("fra1", 1) is None
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par1"


async def talk(world: Scripted, name: str, turns: int, **headers: str) -> str:
    said = [{"role": "user", "content": f"{name} " * 200}]
    said += [{"role": "user", "content": f"turn {n} " * 100} for n in range(turns)]
    head = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    await world.ask(headers=tuple(head), messages=said)
    return world.transport.sent[-1].origin.host


async def test_a_conversation_stays_at_its_replica(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        crowd(world, "fra1", 6)
        for name in ("ann", "bob", "cleo", "dan"):
            assert len({await talk(world, name, turns) for turns in range(4)}) == 1
        names = [f"n{n}" for n in range(6)]
        assert len({await talk(world, n, 0, x_domicile_session="one") for n in names}) == 1
        assert len({await talk(world, f"other {n}", 0) for n in names}) > 1


def teach(world: Scripted, name: str, floor: float, rate: float) -> None:
    for tokens in (100, 4000) * 10:
        world.router.live.balance.paces.learn(name, tokens, floor + tokens / rate)


async def test_the_near_is_asked_until_its_queue_grows_too_long(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        teach(world, "fra1", 0.01, 4000)
        teach(world, "par1", 0.21, 4000)
        live = world.router.live

        async def asked() -> str | None:
            return (await world.ask()).sent["x-domicile-endpoint"]

        assert [await asked() for _ in range(4)] == ["fra1"] * 4
        now = live.loop_time()
        held = live.inflight.enter("fra1", 40_000, 40_000, now, 4000)
        assert live.balance.condition("fra1").late
        assert [await asked() for _ in range(4)] == ["par1"] * 4
        held.close()
        assert [await asked() for _ in range(4)] == ["fra1"] * 4


async def test_where_all_are_late_the_soonest_is_asked(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        teach(world, "fra1", 0.01, 1000)
        teach(world, "par1", 0.2, 1000)
        live = world.router.live
        now = live.loop_time()
        held = [live.inflight.enter("fra1", 90_000, 90_000, now, 1000)]
        held.append(live.inflight.enter("par1", 40_000, 40_000, now, 1000))
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par1"
        for one in held:
            one.close()


async def test_first_tokens_teach_the_pace(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return stream(event(content="hi"), event(finish_reason="stop"), b"data: [DONE]\n\n")

    async with scripted(tmp_path, script) as world:
        for _ in range(30):
            await world.ask(stream=True, content="word " * 400)
        live = world.router.live
        known = [live.balance.paces.expect(name, 500) for name in ("fra1", "par1")]
        assert max(known) > 0
        assert live.inflight.keys == ()
