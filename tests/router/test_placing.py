"""A place at once where there is room, the wait for one where there is none."""

from __future__ import annotations

import asyncio
import random

import pytest

from regions.fleet import Readings
from regions.health import HealthBook
from router.balance import Balance
from router.load import InFlight
from router.placing import Placed, Placing, Wish
from router.simulator.scenario import Scenario, eligible, grounds
from router.simulator.timing import EngineSpec
from router.simulator.virtual import run
from router.waiting import NoRoom, WaitingRoom

SNAPSHOT = Scenario(
    grounds(["self:fra1=2"], EngineSpec()), settings={"capacity_requests": "1"}
).snapshot("self:fra1")


def placing() -> Placing:
    clock = asyncio.get_running_loop().time
    inflight = InFlight()
    balance = Balance(
        lambda: SNAPSHOT, HealthBook(), inflight, Readings(), clock, random.Random(1).random
    )
    room: WaitingRoom[Placed] = WaitingRoom(clock)
    inflight.on_leave = room.wake
    return Placing(balance, room)


def wish(until: float) -> Wish:
    return Wish(eligible(SNAPSHOT, "any"), 100, 80, None, "any", 1, until)


def test_room_is_taken_at_once_while_there_is_some() -> None:
    async def main() -> None:
        found = placing()
        one, other = found.at_once(wish(5)), found.at_once(wish(5))
        assert one is not None
        assert other is not None
        assert {p.held.key for p in (one, other) if p.held is not None} == {"fra1/0", "fra1/1"}
        assert found.at_once(wish(5)) is None
        asyncio.get_running_loop().call_later(2, one.close)
        third = await found.wait(wish(5))
        assert asyncio.get_running_loop().time() == pytest.approx(2)
        third.close()
        other.close()
        assert found.balance.inflight.keys == ()

    run(main())


def test_nobody_overtakes_who_waits() -> None:
    async def main() -> None:
        found = placing()
        held = [found.at_once(wish(5)) for _ in range(2)]
        waiting = asyncio.create_task(found.wait(wish(5)))
        await asyncio.sleep(1)
        assert found.at_once(wish(5)) is None
        for one in held:
            assert one is not None
            one.close()
        (await waiting).close()

    run(main())


def test_no_room_in_time_says_when_to_come_again() -> None:
    async def main() -> float:
        found = placing()
        for _ in range(2):
            found.at_once(wish(5))
        with pytest.raises(NoRoom) as caught:
            await found.wait(wish(3))
        assert asyncio.get_running_loop().time() == pytest.approx(3)
        return caught.value.retry_after

    assert run(main()) >= 1
