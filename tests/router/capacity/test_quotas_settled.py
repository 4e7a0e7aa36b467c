"""What a request holds of its tenant's limits: settled as it ended, whatever came between, and what
those are told that are refused meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.model import Limits, Rate, Tenant
from router.capacity.quotas import Quotas, Reservation, demand, holders
from router.dispatch import DecideAgain, Dispatched, Dispatcher
from router.errors import RequestError
from router.state.memory import MemoryLedger
from tests.router.capacity.test_quotas import limit
from tests.router.scripted import answer, scripted


@dataclass
class House:
    """A tenant with limits, and a clock that is only a number."""

    limits: Limits
    now: float = 0.0
    quotas: Quotas = field(init=False)

    def __post_init__(self) -> None:
        self.quotas = Quotas(MemoryLedger(lambda: self.now), lambda: self.now)

    async def enter(self, tokens: int = 0) -> Reservation:
        found = await self.quotas.enter(demand(holders(Tenant("t", limits=self.limits))), "lease")
        if tokens:
            try:
                await found.tokens(tokens)
            except RequestError:
                found.close()
                raise
        return found

    async def left(self, name: str) -> int:
        """What is left of a limit, beside one request of one token that asks."""
        asked = await self.enter(1)
        asked.close()
        return 1 + next(one.remaining for one in asked.levels if one.name == name)


@given(st.lists(st.integers(0, 900), max_size=4), st.booleans())
async def test_the_last_word_is_what_counts(said: list[int], closed_first: bool) -> None:
    """A decision made anew settles twice; an end may come before it, or twice."""
    house = House(Limits(Rate(10, 3600), Rate(1000, 3600)))
    held = await house.enter(300)
    for used in said:
        held.settle(used)
    held.close()
    held.close()
    assert await house.left("tokens") == 1000 - (said[-1] if said else 0)
    assert await house.left("requests") == 10 - bool(said)


async def test_a_decision_made_anew_pays_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        limit(world, Limits(tokens=Rate(1000, 3600)))
        run, asked = Dispatcher.run, 0

        async def lapsing(*given: object) -> Dispatched:
            nonlocal asked
            asked += 1
            if asked % 2:
                raise DecideAgain
            return await run(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(Dispatcher, "run", lapsing)
        for _ in range(10):
            assert (await world.ask(max_tokens=500)).code == "ok"
        monkeypatch.undo()
        done = await world.ask(max_tokens=10)
        # Ten of five tokens, and what the eleventh reserves.
        assert int(done.sent["x-ratelimit-remaining-tokens"]) < 950


@pytest.mark.parametrize("old", [Rate(1_000_000, 60), Rate(1_000_000, 1), Rate(50, 60)])
async def test_what_began_by_another_limit_does_not_fill_the_new_one(old: Rate) -> None:
    house = House(Limits(Rate(1000, 60), old))
    open_still = [await house.enter(2) for _ in range(20)]
    house.limits = Limits(Rate(1000, 60), Rate(100, 3600))
    taken = 0
    for one in open_still:
        house.now += 1
        one.settle(1)
        one.close()
        try:
            (await house.enter(50)).settle(50)
            taken += 1
        except RequestError:
            pass
    assert taken <= 2


async def test_a_refusal_tells_what_is_left(tmp_path: Path) -> None:
    house = House(Limits(tokens=Rate(1000, 1000)))
    await house.enter(400)
    with pytest.raises(RequestError) as caught:
        await house.enter(800)
    shown = {name.removeprefix("x-ratelimit-"): text for name, text in caught.value.headers.items()}
    assert shown == {"limit-tokens": "1000", "remaining-tokens": "600", "reset-tokens": "400s"}
    assert caught.value.retry_after == 200


@pytest.mark.parametrize("rate", [Rate(60, 60), Rate(600, 60), Rate(7, 10)])
async def test_who_comes_when_told_gets_in(rate: Rate) -> None:
    """Twenty that are refused at once, each of which waits just as long as it was told."""
    house = House(Limits(requests=rate))
    while True:
        try:
            await house.enter()
        except RequestError:
            break
    house.now += 100  # nobody waits for the last one that was told
    for _ in range(rate.amount):
        await house.enter()
    told = []
    for _ in range(20):
        with pytest.raises(RequestError) as caught:
            await house.enter()
        assert caught.value.retry_after is not None
        told.append(house.now + max(1, ceil(caught.value.retry_after)))
    assert told == sorted(told)
    assert told[-1] - house.now <= ceil(20 * rate.seconds / rate.amount)
    for at in told:
        house.now = at
        await house.enter()


async def test_who_never_comes_keeps_nobody_out_for_long() -> None:
    house = House(Limits(requests=Rate(24, 86400)))
    for _ in range(24):
        await house.enter()
    told = []
    for _ in range(500):
        with pytest.raises(RequestError) as caught:
            await house.enter()
        told.append(caught.value.retry_after)
    assert (told[0], told[-1]) == (3600, 3600 + 60)
