"""Routers whose endpoints have burst budgets, and what is spent of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from regions.model import Burst, Endpoint, Price
from router.capacity.bursts import budgets
from router.state.spending import Claim, LocalSpending, Taken
from tests.cases.built import BASELINE, RULES, Files
from tests.router.made import endpoint
from tests.router.scripted import (
    Reply,
    Scripted,
    answer,
)

HOUR = 3600.0
TOKENS = "tokens: 1000/h, output: 100"
MONEY = "dollars: 0.001/h, output: 100"
WIDE = "tokens: 1000/h, output: 1000"


def files(par: str = "", fra: str = "", rules: str = RULES) -> Files:
    """The usual files, with budgets at endpoints; a token costs there 1 to ask and 2 to have."""
    baseline = BASELINE
    for name, burst in (("par", par), ("fra", fra)):
        if burst:
            more = f"{name}: {{price: {{input: 1, output: 2}}, burst: {{{burst}}}, kind: vllm,"
            baseline = baseline.replace(f"{name}: {{kind: vllm,", more)
    return Files(baseline=baseline, rules=rules)


def well(host: str, number: int) -> Reply:
    return answer()


class Time:
    """A clock that is only a number."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Gate(LocalSpending):
    """Grants only once it is opened."""

    def __init__(self) -> None:
        super().__init__(Time())
        self.asked, self.opened = asyncio.Event(), asyncio.Event()

    async def take(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        """See `Spending`."""
        self.asked.set()
        await self.opened.wait()
        return await super().take(claims)


def timed(world: Scripted) -> Time:
    """Let its budgets be counted by a clock of one's own."""
    clock = Time()
    world.router.live.bursts.spending = LocalSpending(clock)
    return clock


def spent(world: Scripted, name: str = "par") -> float:
    """What counts of an endpoint's budget."""
    live = world.router.live
    (found,) = (
        one.spent
        for one in live.bursts.stands(live.snapshot.policy.endpoints)
        if one.endpoint == name
    )
    return found


async def held(world: Scripted, share: float = 1.0, name: str = "par") -> tuple[Taken, ...]:
    """Take a part of a budget, as other requests would."""
    (budget,) = budgets(world.router.live.snapshot.policy.endpoints[name])
    taken = await world.router.live.bursts.spending.take([Claim(budget, budget.limit * share)])
    world.router.live.bursts.spending.settle(taken, [one.amount for one in taken])
    return taken


def limited(burst: Burst, **more: object) -> Endpoint:
    return replace(endpoint("far"), price=Price(3.0, 15.0), burst=burst, **more)  # type: ignore[arg-type]


BOTH = Burst((20_000_000, HOUR), (5_000_000, 24 * HOUR), 400)
