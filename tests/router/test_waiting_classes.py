"""Classes in the waiting room: urgent first, nobody starves, the lowest gives way first."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from policies.model import Priority
from router.capacity.priority import PrioritiesSection
from router.simulator.virtual import run
from router.waiting import NoRoom, Ticket, WaitingRoom
from tests.router.test_waiting import Seat, Seats, later, made

SECTION = PrioritiesSection()
HIGH, MIDDLE, LOW = Priority


def ticket(
    priority: Priority, tenant: str = "t", cost: int = 10, pool: str = "p", weight: int = 1
) -> Ticket:
    least = SECTION.least(priority)
    return Ticket(tenant, weight, cost, frozenset(pool.split()), priority, least)


async def queue(
    room: WaitingRoom[Seat], seats: Seats, tickets: list[Ticket], order: list[Ticket]
) -> list[asyncio.Task[Seat]]:
    async def one(which: Ticket) -> Seat:
        seat = await room.wait(which, seats.take, later(1000))
        order.append(which)
        return seat

    tasks = [asyncio.create_task(one(which)) for which in tickets]
    await asyncio.sleep(0)
    return tasks


async def end(tasks: list[asyncio.Task[Seat]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def serve(room: WaitingRoom[Seat], seats: Seats, grants: int) -> None:
    for _ in range(grants):
        seats.free += 1
        room.wake()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_the_most_urgent_goes_first_whenever_it_came() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    tickets = [ticket(LOW), ticket(MIDDLE), ticket(HIGH), ticket(HIGH, "other")]
    tasks = await queue(room, seats, tickets, order)
    await serve(room, seats, 4)
    assert [one.priority for one in order] == [HIGH, HIGH, MIDDLE, LOW]
    assert len(room) == 0
    await end(tasks)


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_nobody_starves_and_the_urgent_get_the_rest(
    high: int, middle: int, low: int, only_two: bool
) -> None:
    """With all classes waiting, each lower one gets its least share in tokens, and little more."""

    async def main() -> None:
        room, seats, order = made(10_000), Seats(0), list[Ticket]()
        costs = {HIGH: high, LOW: low} if only_two else {HIGH: high, MIDDLE: middle, LOW: low}
        tickets = [ticket(one, cost=cost) for one, cost in costs.items() for _ in range(150)]
        tasks = await queue(room, seats, tickets, order)
        await serve(room, seats, 150)  # so that nobody runs out
        got = Counter[Priority]()
        for one in order:
            got[one.priority] += one.cost
        total, most = got.total(), max(costs.values())
        for priority in costs:
            if least := SECTION.least(priority):
                # What is owed is owed of the others' tokens, one turn at most beyond it.
                owed = least * sum(got[one] for one in costs if one < priority)
                assert owed - 2 * most <= got[priority] <= owed + 2 * most
        assert got[HIGH] >= 0.7 * total - 3 * most
        await end(tasks)

    asyncio.run(main())


async def test_tenants_share_by_weight_within_their_class() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    heavy = [ticket(MIDDLE, "heavy", weight=3) for _ in range(100)]
    light = [ticket(MIDDLE, "light") for _ in range(100)]
    tasks = await queue(room, seats, [*light, *heavy, *[ticket(LOW, "bulk")] * 100], order)
    await serve(room, seats, 84)
    got = Counter(one.tenant for one in order)
    assert (got["heavy"], got["light"]) == (60, 20)
    assert got["bulk"] == 4  # 5 % of what they got
    await end(tasks)


async def test_a_lower_class_takes_no_room_from_another_pool() -> None:
    """Batch that is served elsewhere has not had its share here; nor the other way round."""
    room, here, there, order = made(), Seats(0), Seats(0), list[Ticket]()
    near = [*[ticket(HIGH, pool="a")] * 100, *[ticket(LOW, pool="a")] * 20]
    tasks = await queue(room, here, near, order)
    tasks += await queue(room, there, [ticket(LOW, pool="b")] * 100, order)
    await serve(room, there, 80)
    await serve(room, here, 60)
    got = Counter((one.priority, *one.pool) for one in order)
    assert got[LOW, "b"] == 80
    assert got[LOW, "a"] == 2
    assert got[HIGH, "a"] == 58
    await end(tasks)


async def test_pools_that_overlap_share_what_they_both_could_use() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    tickets = [*[ticket(HIGH, pool="a b")] * 200, *[ticket(LOW, pool="a")] * 50]
    tasks = await queue(room, seats, tickets, order)
    await serve(room, seats, 105)
    got = Counter(one.priority for one in order)
    assert got[LOW] == 5
    await end(tasks)


async def test_a_class_has_one_least_share_however_many_pools_it_waits_for() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    pools = [f"a {number}" for number in range(20)]
    tickets = [*[ticket(HIGH, pool="a")] * 200, *[ticket(LOW, pool=one) for one in pools * 10]]
    tasks = await queue(room, seats, tickets, order)
    await serve(room, seats, 210)
    got = Counter(one.priority for one in order)
    assert 0 < got[LOW] <= 10  # 5 % of 200, not 5 % for each of 20 boundaries
    await end(tasks)


async def test_every_pool_of_a_class_has_its_turn_in_the_end() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    tickets = [*[ticket(HIGH, pool="a")] * 450, *[ticket(LOW, pool=f"a {n}") for n in range(20)]]
    tasks = await queue(room, seats, tickets, order)
    await serve(room, seats, 430)
    assert {one.pool for one in order if one.priority is LOW} == {
        frozenset(("a", str(number))) for number in range(20)
    }
    await end(tasks)


async def test_what_a_full_pool_could_not_give_is_not_made_up_at_once() -> None:
    room, near, far, order = made(), Seats(0), Seats(0), list[Ticket]()
    tasks = await queue(room, near, [ticket(LOW, pool="a")] * 50, order)
    tasks += await queue(room, far, [ticket(HIGH, pool="a b")] * 300, order)
    await serve(room, far, 200)  # all at b: a is full
    before = len(order)
    tasks += await queue(room, near, [ticket(HIGH, "x", pool="a")] * 50, order)
    await serve(room, near, 20)
    got = Counter(one.priority for one in order[before:])
    assert got[LOW] <= 2
    await end(tasks)


async def test_a_full_room_gives_up_its_lowest_class_first() -> None:
    room, seats, order = made(4), Seats(0), list[Ticket]()
    bulk = await queue(room, seats, [ticket(LOW, "a"), ticket(LOW, "b"), ticket(LOW, "b")], order)
    tasks = await queue(room, seats, [ticket(MIDDLE, "flood")], order)
    tasks += await queue(room, seats, [ticket(HIGH)], order)
    await asyncio.sleep(0)
    gone = [task.done() for task in bulk]
    assert gone == [False, False, True]  # the newest of who has most waiting
    with pytest.raises(NoRoom):
        await room.wait(ticket(LOW, "b"), seats.take, later())
    more = await queue(room, seats, [ticket(MIDDLE, "flood"), ticket(MIDDLE, "flood")], order)
    await asyncio.sleep(0)
    assert all(task.done() for task in bulk)
    with pytest.raises(NoRoom):
        await room.wait(ticket(LOW, "new"), seats.take, later())
    assert len(room) == 4
    for task in bulk:
        assert isinstance(task.exception(), NoRoom)
    await end([*tasks, *more])


async def test_a_class_that_is_gone_leaves_no_debt() -> None:
    room, seats, order = made(), Seats(0), list[Ticket]()
    low = await queue(room, seats, [ticket(LOW)], order)
    tasks = await queue(room, seats, [ticket(HIGH)] * 60, order)
    await serve(room, seats, 19)
    await end(low)
    again = await queue(room, seats, [ticket(LOW)], order)
    await serve(room, seats, 19)
    assert {one.priority for one in order} == {HIGH}
    await serve(room, seats, 2)
    assert LOW in {one.priority for one in order}
    await end([*tasks, *again])


# -- overload, in virtual time ---------------------------------------------------------------


@dataclass
class Crowd:
    """Clients of one class: when they came, how it went."""

    served: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    came_again: int = 0
    second: int = 0


def test_overload_costs_the_lowest_class_and_its_retry_after_works() -> None:
    """Ten a second are served; five urgent ones come, and for ten seconds twenty of batch."""
    crowds = {HIGH: Crowd(), LOW: Crowd()}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        room, seats, rng = WaitingRoom[Seat](loop.time, 80), Seats(0), random.Random(7)

        async def one(priority: Priority, again: bool = True) -> bool:
            crowd, came = crowds[priority], loop.time()
            try:
                await room.wait(ticket(priority), seats.take, came + 6)
            except NoRoom as error:
                crowd.refused.append(error.retry_after)
                if again:
                    await asyncio.sleep(error.retry_after)
                    crowd.came_again += 1
                    served = await one(priority, again=False)
                    crowd.second += served
                return False
            crowd.served.append(loop.time() - came)
            return True

        async def arrive(priority: Priority, rate: float, until: float) -> None:
            async with asyncio.TaskGroup() as group:
                while loop.time() < until:
                    group.create_task(one(priority))
                    await asyncio.sleep(rng.expovariate(rate))

        async def free() -> None:
            while loop.time() < 120:
                seats.free = min(3, seats.free + 1)
                room.wake()
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as group:
            group.create_task(free())
            group.create_task(arrive(HIGH, 5, 100))
            group.create_task(arrive(LOW, 5.5, 40))
            await asyncio.sleep(30)
            group.create_task(arrive(LOW, 14, 40))

    run(main())
    high, low = crowds[HIGH], crowds[LOW]
    assert not high.refused
    assert max(high.served) < 1.5
    assert min(low.refused) >= 1
    assert low.came_again > 50
    # What the urgent leave takes all of them, each at the moment it was told.
    assert low.second / low.came_again > 0.9
