"""The law of a budget: in no stretch of its time is more taken than it, wherever that begins."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.state.spending import SLOTS, SOON, Budget, Claim, LocalSpending, Spent, Taken

HOUR = Budget("far", "tokens", 1000, 3600)
DAY = Budget("far", "dollars", 5000, 86400)


class Clock:
    """A clock that is only a number."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spending(clock: Clock) -> LocalSpending:
    return LocalSpending(clock)


STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 90), st.integers(0, 4000)),  # seconds until it is asked for
        st.integers(1, 1100),  # the most that it may cost
        st.floats(0, 1.5),  # what part of that it costs in the end
        st.integers(0, 5),  # it ends so many steps later
    ),
    min_size=1,
    max_size=60,
)


@given(STEPS, st.floats(0, 3600))
async def test_no_stretch_of_its_time_has_more_than_the_budget(
    steps: list[tuple[int, int, float, int]], began: float
) -> None:
    clock = Clock()
    clock.now = began
    spending = LocalSpending(clock)
    costs: dict[int, tuple[float, int]] = {}  # of each, when it was taken and what it costs
    ends: list[tuple[int, int, tuple[Taken, ...], int]] = []
    beyond = 0
    for number, (pause, amount, part, later) in enumerate(steps):
        clock.now += pause
        for one in [one for one in ends if one[0] <= number]:
            ends.remove(one)
            _, which, taken, used = one
            spending.settle(taken, [used])
            beyond += max(0, used - taken[0].amount)
            costs[which] = costs[which][0], used
        try:
            taken = await spending.take([Claim(HOUR, amount)])
        except Spent:
            continue
        costs[number] = clock.now, amount
        ends.append((number + later, number, taken, round(amount * part)))
        recent = [cost for at, cost in costs.values() if clock.now - HOUR.seconds <= at]
        assert sum(recent) <= HOUR.limit + beyond
        assert sum(recent) <= spending.spent(HOUR)


@given(STEPS)
async def test_what_costs_what_was_taken_never_passes_the_budget(
    steps: list[tuple[int, int, float, int]],
) -> None:
    clock = Clock()
    spending = LocalSpending(clock)
    taken: list[tuple[float, int]] = []
    for pause, amount, _, _ in steps:
        clock.now += pause
        try:
            await spending.take([Claim(HOUR, amount)])
        except Spent:
            continue
        taken.append((clock.now, amount))
    for begin, _ in taken:
        inside = [amount for at, amount in taken if begin <= at <= begin + HOUR.seconds]
        assert sum(inside) <= HOUR.limit


@given(STEPS, st.integers(1, 1000))
async def test_the_time_told_is_when_it_fits_and_not_before(
    steps: list[tuple[int, int, float, int]], asked: int
) -> None:
    clock = Clock()
    spending = LocalSpending(clock)
    for pause, amount, _, _ in steps:
        clock.now += pause
        if spending.wait([Claim(HOUR, amount)]) == 0:
            spending.settle(await spending.take([Claim(HOUR, amount)]), [amount])
    wait = spending.wait([Claim(HOUR, asked)])
    assert 0 <= wait <= HOUR.seconds + HOUR.width
    if wait:
        clock.now += wait - 0.001
        assert spending.wait([Claim(HOUR, asked)]) > 0
        clock.now += 0.002
        assert spending.wait([Claim(HOUR, asked)]) == 0


async def test_two_budgets_are_taken_together_or_not_at_all(
    spending: LocalSpending, clock: Clock
) -> None:
    await spending.take([Claim(HOUR, 900), Claim(DAY, 100)])
    with pytest.raises(Spent):
        await spending.take([Claim(HOUR, 200), Claim(DAY, 100)])
    assert (spending.spent(HOUR), spending.spent(DAY)) == (900, 100)
    clock.now += HOUR.seconds + HOUR.width
    assert (spending.spent(HOUR), spending.spent(DAY)) == (0, 100)


@pytest.mark.parametrize("amount", [1001, inf])
async def test_what_is_dearer_than_the_whole_budget_never_waits(
    spending: LocalSpending, amount: float
) -> None:
    with pytest.raises(Spent) as caught:
        await spending.take([Claim(HOUR, amount)])
    assert caught.value.wait == inf
    await spending.take([Claim(HOUR, 1000)])


async def test_what_was_not_used_can_be_used(spending: LocalSpending) -> None:
    taken = await spending.take([Claim(HOUR, 1000)])
    # Requests under way hold it, and will probably give most of it back.
    assert spending.wait([Claim(HOUR, 10)]) == SOON
    spending.settle(taken, [990])
    assert spending.wait([Claim(HOUR, 10)]) == 0
    assert spending.wait([Claim(HOUR, 11)]) > HOUR.seconds - HOUR.width


async def test_one_that_ends_after_the_budgets_time_changes_nothing(
    spending: LocalSpending, clock: Clock
) -> None:
    taken = await spending.take([Claim(HOUR, 600)])
    clock.now += 2 * HOUR.seconds
    await spending.take([Claim(HOUR, 500)])
    spending.settle(taken, [0])
    assert spending.spent(HOUR) == 500
    assert spending.wait([Claim(HOUR, 501)]) > 0


async def test_a_worker_has_its_part(clock: Clock) -> None:
    half = LocalSpending(clock, 0.5)
    await half.take([Claim(HOUR, 500)])
    assert 0 < half.wait([Claim(HOUR, 1)]) < inf
    assert half.wait([Claim(HOUR, 501)]) == inf


async def test_it_remembers_no_more_than_its_slots(spending: LocalSpending, clock: Clock) -> None:
    for _ in range(1000):
        clock.now += 50
        if spending.wait([Claim(HOUR, 1)]) == 0:
            await spending.take([Claim(HOUR, 1)])
        assert len(spending.own(HOUR)) <= SLOTS + 1


async def test_another_clock_makes_nothing_younger(spending: LocalSpending, clock: Clock) -> None:
    open_ = await spending.take([Claim(HOUR, 400)])
    spending.settle(await spending.take([Claim(HOUR, 300)]), [300])
    for moved in (7200, -7200, 30, -30, 0.5):
        spending.by_clock(spending.now() + moved)
        assert spending.spent(HOUR) == 700
    spending.settle(open_, [0])  # where it is, is not known any more
    assert spending.spent(HOUR) == 700
    clock.now += HOUR.seconds - HOUR.width
    assert spending.spent(HOUR) == 700
    clock.now += 4 * HOUR.width
    assert spending.spent(HOUR) == 0
