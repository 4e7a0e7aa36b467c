"""Whose turn it is: what leaves, or waits for something else, costs nobody a turn, and no room is
left while somebody waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.waiting import NoRoom, Ticket, WaitingRoom
from tests.router.test_waiting import Seat, Seats, later, made, queue, ticket


async def ended(tasks: Sequence[asyncio.Task[Seat]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def granted(room: WaitingRoom[Seat], seats: Seats, count: int) -> None:
    for _ in range(count):
        seats.free += 1
        room.wake()
    await asyncio.sleep(0.01)


async def test_a_queue_that_leaves_takes_no_turns_with_it() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    flood = await queue(room, seats, [ticket("a")] * 200, order)
    others = await queue(room, seats, [ticket("b")] * 50, order)
    for task in flood[:-1]:
        task.cancel()
    await asyncio.sleep(0.01)
    await granted(room, seats, 10)
    assert Counter(order) == {"a": 1, "b": 9}
    await ended(flood + others)


async def test_who_came_first_of_a_tenant_is_served_first_whoever_left_before() -> None:
    room, seats, order = made(), Seats(0), list[int]()

    async def one(number: int) -> Seat:
        seat = await room.wait(ticket("a"), seats.take, later())
        order.append(number)
        return seat

    tasks = [asyncio.create_task(one(number)) for number in range(10)]
    await asyncio.sleep(0)
    for task in tasks[:5]:
        task.cancel()
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(one(number)) for number in range(10, 15)]
    await asyncio.sleep(0)
    await granted(room, seats, 10)
    assert order == list(range(5, 15))
    await ended(tasks)


async def test_what_waits_for_a_pool_that_stands_still_costs_no_turn_in_another() -> None:
    room, still, free, order = made(4000), Seats(0), Seats(0), list[str]()
    tasks = await queue(room, still, [ticket("a", pool="eu")] * 500, [])
    tasks += await queue(room, free, [ticket(one, pool="us") for one in "ba" * 100], order)
    await granted(room, free, 100)
    assert Counter(order) == {"a": 50, "b": 50}
    await ended(tasks)


async def test_a_pool_that_serves_many_leaves_another_one_as_fair_as_it_was() -> None:
    """Ten are served elsewhere for each that comes here, where one tenant has all the queue."""
    room, fast, slow, order = made(4000), Seats(0), Seats(0), list[str]()
    tasks = await queue(room, fast, [ticket("e", pool="eu")] * 1000, [])
    for _ in range(50):
        await granted(room, fast, 10)
        tasks += await queue(room, slow, [ticket("heavy", pool="us")], order)
    tasks += await queue(room, slow, [ticket("light", pool="us")] * 5, order)
    await granted(room, slow, 10)
    assert Counter(order) == {"heavy": 5, "light": 5}
    await ended(tasks)


async def test_the_time_told_is_of_the_own_pool() -> None:
    """A long queue elsewhere, and a pool that gives room often, say nothing of this one."""
    room, still, free, order = made(4000), Seats(0), Seats(0), list[str]()
    tasks = await queue(room, still, [ticket("a", pool="eu")] * 2000, [])
    tasks += await queue(room, free, [ticket("b", pool="us")] * 20, order)
    await granted(room, free, 20)
    assert room.retry_after(ticket("b", pool="us")) < 2
    await queue(room, free, [ticket("b", pool="us")] * 5, order)
    with pytest.raises(NoRoom) as error:  # two a second, of which five are waited for
        await room.wait(ticket("c", pool="us"), free.take, later(0.05))
    assert 2 < error.value.retry_after < 4
    await granted(room, free, 5)
    await ended(tasks)


async def test_lines_that_nobody_waits_in_are_forgotten() -> None:
    room, seats = made(), Seats(0)
    for number in range(1000):
        with pytest.raises(NoRoom):
            await room.wait(ticket(pool=str(number)), seats.take, later(0))
    assert len(room._pools) <= 256
    assert (len(room), room._waiting) == (0, Counter())
    room.close()


class Parts:
    """Places of several endpoints: a request may use any of its pool."""

    def __init__(self, names: str) -> None:
        self.seats = {name: Seats(0) for name in names}

    def take(self, pool: frozenset[str]) -> Seat | None:
        return next(filter(None, (self.seats[one].take() for one in sorted(pool))), None)

    def free(self, pool: frozenset[str]) -> bool:
        return any(self.seats[one].free for one in pool)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_nobody_waits_for_what_is_free_and_nothing_is_lost(seed: int) -> None:
    """Whoever comes, leaves, is refused, is given room or gives it back, in any order."""

    async def run(chance: Random) -> None:
        room, parts = made(12), Parts("abc")
        pools = [frozenset(one) for one in ("a", "b", "ab", "bc", "abc")]
        tasks, held = dict[asyncio.Task[Seat], Ticket](), list[Seat]()
        made_of = 0

        def settle() -> None:
            for task in [one for one in tasks if one.done()]:
                del tasks[task]
                if not task.cancelled() and task.exception() is None:
                    held.append(task.result())

        for _ in range(120):
            what = chance.random()
            if what < 0.5:
                pool = chance.choice(pools)
                one = Ticket(chance.choice("xyz"), chance.randint(1, 3), chance.choice((0, 1, 50)),
                             pool, chance.choice((0, 1, 2)), chance.choice((0.0, 0.3)))  # type: ignore[arg-type]  # fmt: skip
                until = later(chance.choice((0.0, 0.0001, 5.0)))
                call = room.wait(one, lambda pool=pool: parts.take(pool), until)  # type: ignore[misc]
                tasks[asyncio.create_task(call)] = one
            elif what < 0.65 and tasks:
                chance.choice(list(tasks)).cancel()
            elif what < 0.8 and held:
                held.pop(chance.randrange(len(held))).close()
                room.wake()
            else:
                parts.seats[chance.choice("abc")].free += 1
                made_of += 1
                room.wake()
            if chance.random() < 0.7:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                settle()
                room.wake()  # a seat that its waiter's end gave back
                waiting = [pool for _, pool in room._lines]
                assert not any(parts.free(pool) for pool in waiting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        settle()
        assert (len(room), room._owed, +room._waiting) == (0, {}, Counter())
        assert sum(one.free for one in parts.seats.values()) + len(held) == made_of
        room.close()

    asyncio.run(run(Random(seed)))
