"""Limits of one process: exact, atomic, and honest about when to come back."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.state.ledger import Bucket, Full, Seats, Take
from router.state.memory import MemoryLedger

MINUTE = Bucket("requests", "t/requests", 60, 60)
TOKENS = Bucket("tokens", "t/tokens", 100, 60)
OPEN = Seats("concurrency", "t/open", 2)


class Clock:
    """A clock that is only a number."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> MemoryLedger:
    return MemoryLedger(clock)


async def test_a_bucket_empties_and_refills(ledger: MemoryLedger, clock: Clock) -> None:
    for left in range(59, -1, -1):
        levels = await ledger.take([Take(MINUTE, 1)], [], "a")
        assert levels[0].remaining == left
    with pytest.raises(Full) as caught:
        await ledger.take([Take(MINUTE, 1)], [], "a")
    assert caught.value.retry_after == pytest.approx(1.0)
    clock.now += caught.value.retry_after
    await ledger.take([Take(MINUTE, 1)], [], "a")


async def test_five_parallel_estimates_overshoot_by_one_at_most(ledger: MemoryLedger) -> None:
    async def one() -> bool:
        try:
            await ledger.take([Take(TOKENS, 175)], [], "a")
        except Full:
            return False
        return True

    assert sum(await asyncio.gather(*(one() for _ in range(5)))) == 1


async def test_a_refusal_takes_nothing(ledger: MemoryLedger) -> None:
    await ledger.take([Take(TOKENS, 90)], [], "a")
    with pytest.raises(Full):
        await ledger.take([Take(MINUTE, 1), Take(TOKENS, 50)], [OPEN], "b")
    levels = await ledger.take([Take(MINUTE, 1)], [OPEN], "c")
    assert levels[0].remaining == 59


async def test_seats(ledger: MemoryLedger) -> None:
    await ledger.take([], [OPEN], "a")
    await ledger.take([], [OPEN], "b")
    with pytest.raises(Full):
        await ledger.take([], [OPEN], "c")
    ledger.leave([OPEN], "a")
    await ledger.take([], [OPEN], "c")


async def test_settling_corrects_both_ways(ledger: MemoryLedger) -> None:
    await ledger.take([Take(TOKENS, 60)], [], "a")
    ledger.settle([Take(TOKENS, -50)])
    levels = await ledger.take([Take(TOKENS, 1)], [], "a")
    assert levels[0].remaining == 89
    ledger.settle([Take(TOKENS, 200)])
    with pytest.raises(Full) as caught:
        await ledger.take([Take(TOKENS, 1)], [], "a")
    assert caught.value.retry_after > 60


async def test_two_windows_at_ninety_per_cent_never_refuse(
    ledger: MemoryLedger, clock: Clock
) -> None:
    for _ in range(5 * 54):
        await ledger.take([Take(MINUTE, 1), Take(TOKENS, 1)], [], "a")
        clock.now += 60 / 54


def test_a_share_scales_every_limit() -> None:
    ledger = MemoryLedger(Clock(), share=0.5)
    for _ in range(30):
        ledger.take_now([Take(MINUTE, 1)], [])
    with pytest.raises(Full):
        ledger.take_now([Take(MINUTE, 1)], [])


@given(st.lists(st.tuples(st.integers(1, 80), st.floats(0, 30), st.integers(-40, 40)), max_size=60))
def test_never_above_the_limit_plus_one_request(steps: list[tuple[int, float, int]]) -> None:
    clock = Clock()
    ledger = MemoryLedger(clock)
    taken = 0.0
    for amount, pause, correction in steps:
        clock.now += pause
        try:
            ledger.take_now([Take(TOKENS, amount)], [])
        except Full:
            continue
        taken += amount
        settled = max(correction, -amount)
        ledger.settle([Take(TOKENS, settled)])
        taken += settled
        # What was let through never exceeds the burst, the refill and one request's correction.
        assert taken <= 100 + clock.now * 100 / 60 + 80 + 40 * len(steps)


async def test_a_clock_that_goes_back_gives_nothing(ledger: MemoryLedger, clock: Clock) -> None:
    clock.now = 100
    await ledger.take([Take(TOKENS, 100)], [], "a")
    clock.now = 0
    with pytest.raises(Full):
        await ledger.take([Take(TOKENS, 10)], [], "a")


async def test_a_request_costs_no_more_where_there_are_many_tenants(clock: Clock) -> None:
    ledger, took = MemoryLedger(clock), list[float]()
    buckets = [Bucket("requests", f"t{number}/requests", 60, 60) for number in range(12_000)]
    for _ in range(2):
        for number, bucket in enumerate(buckets):
            if number % 500 == 0:
                took.append(process_time())
            ledger.take_now([Take(bucket, 1)], [])
    each = [later - before for before, later in pairwise(took)]
    assert min(each[-8:]) < 12 * min(each[:4])
    clock.now = 2 * 86400.0
    for number in range(24_000):
        ledger.take_now([Take(Bucket("requests", f"new{number}/requests", 60, 60), 1)], [])
    assert len(ledger._levels) == 24_000, "those of removed tenants are gone"
