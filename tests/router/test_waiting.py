"""The waiting room: fair by weight, bounded, and nobody stands in another pool's way."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.waiting import NoRoom, Ticket, WaitingRoom


class Seat:
    """One place of a pool of seats."""

    def __init__(self, seats: Seats) -> None:
        self._seats: Seats | None = seats

    def close(self) -> None:
        seats, self._seats = self._seats, None
        if seats is not None:
            seats.free += 1


class Seats:
    def __init__(self, free: int) -> None:
        self.free = free

    def take(self) -> Seat | None:
        if not self.free:
            return None
        self.free -= 1
        return Seat(self)


def made(bound: int = 1000) -> WaitingRoom[Seat]:
    return WaitingRoom(asyncio.get_running_loop().time, bound)


def ticket(tenant: str = "t", weight: int = 1, cost: int = 10, pool: str = "p") -> Ticket:
    return Ticket(tenant, weight, cost, frozenset({pool}))


def later(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def queue(
    room: WaitingRoom[Seat], seats: Seats, tickets: list[Ticket], order: list[str]
) -> list[asyncio.Task[Seat]]:
    async def one(which: Ticket) -> Seat:
        seat = await room.wait(which, seats.take, later())
        order.append(which.tenant)
        return seat

    tasks = [asyncio.create_task(one(which)) for which in tickets]
    await asyncio.sleep(0)
    return tasks


async def test_room_goes_to_who_waits_in_turn() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket("a"), ticket("b"), ticket("a")], order)
    for _ in tasks:
        seats.free += 1
        room.wake()
        await asyncio.sleep(0.01)
    assert order == ["a", "b", "a"]
    assert len(room) == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=2, max_size=4), st.integers(0, 3))
def test_every_tenant_gets_its_weight(weights: list[int], flood: int) -> None:
    """With everybody waiting, of each stretch of grants a tenant gets its part, whoever floods."""

    async def run() -> None:
        room, seats, order = made(4000), Seats(0), list[str]()
        each, total = 240, sum(weights)
        tickets = [ticket(str(n), w) for n, w in enumerate(weights) for _ in range(each)]
        tickets += [ticket(str(flood % len(weights)), weights[flood % len(weights)])] * 200
        tasks = await queue(room, seats, tickets, order)
        grants = each  # nobody runs out within these
        for _ in range(grants):
            seats.free += 1
            room.wake()
        await asyncio.sleep(0.01)
        counted = Counter(order)
        for number, weight in enumerate(weights):
            assert counted[str(number)] >= 0.95 * grants * weight / total - 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(room) == 0

    asyncio.run(run())


async def test_large_requests_count_as_large() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    tickets = [ticket("big", cost=100)] * 20 + [ticket("small", cost=10)] * 100
    tasks = await queue(room, seats, tickets, order)
    seats.free = 55
    room.wake()
    await asyncio.sleep(0.01)
    assert Counter(order)["big"] in (5, 6)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_full_pool_is_in_nobody_elses_way() -> None:
    room, full, free, order = made(), Seats(0), Seats(0), list[str]()
    tasks = await queue(room, full, [ticket("a", pool="full")] * 5, order)
    tasks += await queue(room, free, [ticket("b", pool="free")], order)
    free.free = 1
    room.wake()
    await asyncio.sleep(0.01)
    assert order == ["b"]
    assert len(room) == 5
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_leaves_leaves_at_once() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket("a"), ticket("b")], order)
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    assert len(room) == 1
    seats.free = 1
    room.wake()
    await asyncio.sleep(0.01)
    assert order == ["b"]


async def test_room_given_to_one_who_left_in_that_moment_is_given_back() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket("a")], order)
    seats.free = 1
    room.wake()
    assert seats.free == 0
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (seats.free, order) == (1, [])


async def test_no_room_in_time() -> None:
    room = made()
    with pytest.raises(NoRoom) as error:
        await room.wait(ticket(), Seats(0).take, later(0.05))
    assert 1 <= error.value.retry_after <= 60
    assert len(room) == 0


async def test_room_that_comes_without_an_event_is_found() -> None:
    room, seats = made(), Seats(0)
    asyncio.get_running_loop().call_later(0.02, seats.__dict__.__setitem__, "free", 1)
    seat = await room.wait(ticket(), seats.take, later(2))
    seat.close()
    room.close()


async def test_a_full_room_refuses_who_has_most_in_it() -> None:
    room, seats, order = made(4), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket("flood")] * 4, order)
    with pytest.raises(NoRoom):
        await room.wait(ticket("flood"), seats.take, later())
    tasks += await queue(room, seats, [ticket("quiet")], order)
    await asyncio.sleep(0.01)
    assert len(room) == 4
    assert isinstance(tasks[3].exception(), NoRoom)  # the newest of the flood gave way
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_waiting_in_vain_is_refused_at_once() -> None:
    room, seats, order = made(), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket(str(n)) for n in range(300)], order)
    for _ in range(30):  # three a second, as seen over ten seconds
        seats.free += 1
        room.wake()
    with pytest.raises(NoRoom) as error:
        await room.wait(ticket("late"), seats.take, later(10))
    assert 30 < error.value.retry_after <= 60
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_an_attempt_raises_is_its_own() -> None:
    room, seats, order = made(), Seats(0), list[str]()

    def broken() -> Seat | None:
        raise KeyError("mine")

    tasks = await queue(room, seats, [ticket("other")], order)
    wrong = asyncio.create_task(room.wait(ticket("wrong"), broken, later()))
    await asyncio.sleep(0)
    seats.free = 1
    room.wake()
    with pytest.raises(KeyError):
        await wrong
    await asyncio.sleep(0.01)
    assert order == ["other"]
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("gone", range(3))
async def test_no_room_is_taken_for_a_wait_that_ends_in_the_same_turn(gone: int) -> None:
    """A client leaves just as room comes free, before its own task has run again."""
    room, seats, order = made(), Seats(0), list[str]()
    tasks = await queue(room, seats, [ticket("a"), ticket("b"), ticket("c")], order)
    seats.free += 1
    tasks[gone].cancel()
    room.wake()
    assert seats.free == 0
    await asyncio.sleep(0.01)
    assert order == ["b" if gone == 0 else "a"]
    assert len(room) == 1
    for _ in range(2):
        seats.free += 1
        room.wake()
        await asyncio.sleep(0.01)
    assert len(room) == 0
    assert sorted(order) == sorted({"a", "b", "c"} - {"abc"[gone]})
    assert tasks[gone].cancelled()
    assert seats.free == 1
