"""A place at once where there is room, the wait for one where there is none."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine import Preference
from regions.fleet import Reading, Readings
from regions.health import HealthBook
from router.capacity.balance import Balance
from router.capacity.lineup import UNDER_WAY
from router.capacity.load import InFlight
from router.capacity.placing import Orders, Placed, Placing, Pool, Wish
from router.selection import order
from router.simulator.scenario import Scenario, eligible, grounds
from router.simulator.timing import EngineSpec
from router.simulator.virtual import run
from router.snapshot import Snapshot
from router.types import Candidacy
from router.waiting import NoRoom, WaitingRoom
from tests.router.made import ATLAS, candidacy

SNAPSHOT = Scenario(
    grounds(["self:fra1=2"], EngineSpec()), settings={"capacity_requests": "1"}
).snapshot("self:fra1")


def placing(snapshot: Snapshot = SNAPSHOT) -> Placing:
    clock = asyncio.get_running_loop().time
    inflight = InFlight()
    balance = Balance(
        lambda: snapshot, HealthBook(), inflight, Readings(), clock, random.Random(1).random
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


TWO = Scenario(
    grounds(["self:fra1=1", "self:par1=1"], EngineSpec()), settings={"capacity_requests": "1"}
).snapshot("self:fra1")


ROOMY = Scenario(
    grounds(["self:fra1=2"], EngineSpec()), settings={"capacity_requests": "24"}
).snapshot("self:fra1")
OPEN = Scenario(grounds(["self:fra1=2"], EngineSpec())).snapshot("self:fra1")


def learned(snapshot: Snapshot, floor: float = 0.05) -> Placing:
    """8,000 prompt tokens a second, and two seconds aimed at."""
    found = placing(snapshot)
    for tokens in (100, 900) * 100:
        found.balance.paces.learn("fra1", tokens, floor + tokens / 8000)
    return found


def asks(prompt: int) -> Wish:
    return Wish(eligible(ROOMY, "any"), prompt + 50, prompt, None, "any", 1, 30.0)


@given(st.lists(st.tuples(st.integers(1, 9000), st.floats(0, 0.5)), min_size=1, max_size=60))
def test_before_a_prompt_at_a_declared_endpoint_there_is_no_long_queue(
    steps: list[tuple[int, float]],
) -> None:
    """Whatever came: with the own prompt at most half of the time aimed at, or nothing else."""

    async def main() -> None:
        found = learned(ROOMY)
        for prompt, pause in steps:
            placed = found.at_once(asks(prompt))
            if placed is not None and placed.held is not None:
                ahead = placed.held.ahead
                assert ahead <= prompt or 0.05 + ahead / 8000 <= 1.0
            await asyncio.sleep(pause)

    run(main())


def test_prompts_wait_in_the_router_while_others_are_computed() -> None:
    async def main() -> None:
        found, clock = learned(ROOMY), asyncio.get_running_loop().time
        assert all(found.at_once(asks(6000)) for _ in range(2))
        assert found.at_once(asks(6000)) is None
        began = clock()
        placed = await found.wait(asks(6000))
        assert placed.held is not None
        # Nobody left: one of the first two was computed, as far as is known.
        assert 0.5 < clock() - began < 1.1
        # Who could never be in time by itself is taken once nothing is before it.
        assert (await found.wait(asks(30_000))).held is not None

    run(main())


def test_where_nothing_is_declared_engines_queue() -> None:
    async def main() -> None:
        found = learned(OPEN)
        assert all(
            found.at_once(replace(asks(9000), eligible=eligible(OPEN, "any"))) for _ in "12345"
        )

    run(main())


def test_a_long_way_is_no_queue() -> None:
    """Where first tokens take their time without any queue, as many are let in as there is room."""

    async def main() -> None:
        found = learned(ROOMY, floor=3.0)
        assert all(found.at_once(asks(150)) for _ in range(48))
        assert found.at_once(asks(150)) is None

    run(main())


@pytest.mark.parametrize("spill", [False, True])
def test_who_waits_for_a_preferred_endpoint_is_in_nobodys_way(spill: bool) -> None:
    async def main() -> None:
        found = placing(TWO)
        country = TWO.policy.atlas.country
        prefer = frozenset({Preference("r", (country("DE"), country("FR")), spill)})
        plain = eligible(TWO, "any")
        choosy = tuple(preferring(one, prefer) for one in plain)
        first = found.at_once(replace(wish(5), eligible=choosy))
        second = found.at_once(replace(wish(5), eligible=choosy))
        assert [one.held.key for one in (first, second) if one and one.held] == (
            ["fra1/0", "par1/0"] if spill else ["fra1/0"]
        )
        waits = asyncio.create_task(found.wait(replace(wish(5), eligible=choosy)))
        await asyncio.sleep(1)
        other = found.at_once(replace(wish(5), eligible=plain))
        assert (other is None) is spill
        assert first is not None
        first.close()
        placed = await waits
        assert placed.held is not None
        assert placed.held.key == "fra1/0"

    run(main())


def preferring(one: Candidacy, prefer: frozenset[Preference]) -> Candidacy:
    allowed = one.verdict.allowed._replace(prefer=prefer)
    return replace(one, verdict=one.verdict._replace(allowed=allowed))


EVEN = Scenario(grounds(["self:fra1=1", "self:par1=1", "self:iad1=1"], EngineSpec())).snapshot(
    "self:fra1"
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 900)), max_size=12),
    st.dictionaries(st.integers(0, 2), st.tuples(st.floats(0, 3), st.floats(0, 0.01))),
    st.dictionaries(st.integers(0, 2), st.tuples(st.integers(0, 9), st.integers(0, 3))),
    st.integers(1, 2000),
)
def test_waits_alone_decide_as_the_whole_order_does(
    sent: list[tuple[int, int]],
    paces: dict[int, tuple[float, float]],
    told: dict[int, tuple[int, int]],
    prompt: int,
) -> None:
    """Where all are well the short way and the long one agree, to the replica and the work."""
    inflight, readings = InFlight(), Readings()
    balance = Balance(lambda: EVEN, HealthBook(), inflight, readings, lambda: 5.0, lambda: 0.5)
    found = Placing(balance, WaitingRoom[Placed](lambda: 5.0))
    all_of = eligible(EVEN, "any")
    assert len(all_of) == 3
    pool = found.pool(all_of)
    assert len(pool.bays) == 3
    for at, (floor, pace) in paces.items():
        for tokens in range(8):
            balance.paces.learn(pool.bays[at].endpoint, tokens * 50, floor + pace * tokens * 50)
    for at, tokens in sent:
        balance.enter(pool.bays[at].endpoint, pool.bays[at].key, tokens, tokens // 2)
    for at, (running, waiting) in told.items():
        readings.report(pool.bays[at].key, Reading(5.0, running=running, waiting=waiting))
    long = order(all_of, lambda name: balance.condition(name, prompt))
    full = any(balance.condition(bay.endpoint, prompt).full for bay in pool.bays)
    turns = balance.turns(pool.bays, prompt)
    assert (turns is None) is full
    if turns is not None:
        ordered, bay = pool.ordered(turns)
        assert ordered == long
        assert bay.endpoint == long[0].endpoint.name
        again = balance.turns(pool.bays, prompt)
        assert again is not None
        assert pool.ordered(again)[0] is ordered
        balance.health.mark(pool.bays[0].key, 5.0, 60.0)
        assert balance.turns(pool.bays, prompt) is None


@pytest.mark.parametrize("engines", [True, False])
def test_of_two_away_the_busier_is_farther_where_answers_slow_each_other(engines: bool) -> None:
    """Tokens under way at the nearer make those of whoever comes slower, and it is late by that; at
    a vendor, which tells nothing of itself, they run on machines of their own."""
    inflight, readings = InFlight(), Readings()
    balance = Balance(lambda: EVEN, HealthBook(), inflight, readings, lambda: 5.0, lambda: 0.5)
    for name, floor in (("par1", 0.03), ("iad1", 0.1)):
        for tokens in (100, 900) * 100:
            balance.paces.learn(name, tokens, floor + tokens / 8000)
        if engines:
            readings.report(f"{name}/0", Reading(5.0))
    found = []
    for tokens in (400, 6000):
        held = inflight.enter("par1/0", tokens)
        par1, iad1 = (balance.condition(name, 300) for name in ("par1", "iad1"))
        assert not par1.late
        assert par1.soon < iad1.soon
        found.append(par1.near < iad1.near)
        held.close()
    assert found == [True, not engines]


@given(st.integers(0, 20_000), st.integers(0, 20_000), st.integers(1, 4000))
def test_a_token_under_way_away_from_home_is_as_far_as_one_of_a_prompt(
    fewer: int, more: int, prompt: int
) -> None:
    """More of our own under way makes an endpoint no nearer, and by as much farther as a prompt
    longer by those tokens would."""
    inflight, readings = InFlight(), Readings()
    balance = Balance(lambda: EVEN, HealthBook(), inflight, readings, lambda: 5.0, lambda: 0.0)
    for tokens in (100, 900) * 100:
        balance.paces.learn("par1", tokens, 0.03 + tokens / 16_000)
    readings.report("par1/0", Reading(5.0))
    near = []
    for tokens in sorted((fewer, more)):
        held = inflight.enter("par1/0", tokens + 1)
        near.append(balance.condition("par1", prompt).near)
        held.close()
        alone = balance.condition("par1", prompt + round((1 + UNDER_WAY) * (tokens + 1)))
        if not alone.late:
            assert abs(near[-1] - alone.near) <= 1  # rounded to tokens, then to steps
    assert near[0] <= near[1]


def test_who_was_slow_at_first_is_asked_again() -> None:
    """What few answers foretell is not held against an endpoint: nobody would learn otherwise."""
    balance = Balance(lambda: EVEN, HealthBook(), InFlight(), Readings(), lambda: 5.0, lambda: 0.5)
    for name, floor, count in (("par1", 0.12, 100), ("iad1", 0.3, 4)):
        for tokens in (100, 900) * count:
            balance.paces.learn(name, tokens, floor + tokens / 8000)
    par1, iad1 = (balance.condition(name, 300) for name in ("par1", "iad1"))
    assert par1.soon < iad1.soon
    assert par1.near > iad1.near
    for tokens in (100, 900) * 50:
        balance.paces.learn("iad1", tokens, 0.3 + tokens / 8000)
    assert par1.near < balance.condition("iad1", 300).near


def test_orders_are_bounded_for_all_pools_together() -> None:
    """A hundred tenants have a hundred pools, and six endpoints 720 orders each."""
    balance = Balance(lambda: EVEN, HealthBook(), InFlight(), Readings(), lambda: 5.0, lambda: 0.5)
    orders, all_of = Orders(bound=12), eligible(EVEN, "any")
    pools = [Pool(all_of, balance, orders) for _ in range(3)]
    turns = list(permutations(range(3)))
    first = [orders.of(pools[0], numbers) for numbers in turns]
    assert first == [tuple(all_of[at] for at in numbers) for numbers in turns]
    others = [orders.of(pools[1], numbers) for numbers in turns]
    assert all(one is not other for one, other in zip(first, others, strict=True))
    again = [orders.of(pools[0], numbers) for numbers in turns]
    assert all(one is other for one, other in zip(first, again, strict=True))
    orders.of(pools[2], turns[0])  # one more than there may be
    again = [orders.of(pools[0], numbers) for numbers in turns]
    assert all(one is not other for one, other in zip(first, again, strict=True))
    orders.clear()
    assert orders.of(pools[0], turns[0]) is not again[0]


@pytest.mark.parametrize("why", ["prefer", "declared", "replicas", "none"])
def test_where_more_than_waits_decides_each_is_looked_at(why: str) -> None:
    prefer = (
        frozenset({Preference("r", (ATLAS.country("DE"),))}) if why == "prefer" else frozenset()
    )
    made = (candidacy("a"), candidacy("b", prefer=prefer))
    keys = {"none": (), "replicas": ("b/0", "b/1")}.get(why, ("b",))
    settings = {"capacity_requests": "1"} if why == "declared" else {}
    named = {one.endpoint.name: replace(one.endpoint, settings=settings) for one in made}
    target = SimpleNamespace(priority=0, share=1.0)
    targets = {"a": {"a": target}, "b": dict.fromkeys(keys, target)}
    policy = SimpleNamespace(endpoints=named)
    snapshot = SimpleNamespace(targets=targets, policy=policy, region="self:fra1")
    balance = Balance(
        lambda: cast(Any, snapshot), HealthBook(), InFlight(), Readings(), lambda: 5.0, lambda: 0.5
    )
    pool = Pool(made, balance, Orders())
    assert pool.bays == ()
    assert pool.single is (why != "replicas")
    plain = (made[0],)
    assert (Pool(plain, balance, Orders()).bays == ()) is (why == "declared")
