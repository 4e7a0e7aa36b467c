"""Many replicas: a look at few of them finds what a look at every one of them finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.fleet import Reading, Readings
from regions.health import HealthBook, Sign
from regions.prefix import Trail, trail
from router.capacity.balance import Balance
from router.capacity.lineup import Seat, by_rank
from router.capacity.load import Held, InFlight
from router.simulator.scenario import Scenario, grounds
from router.simulator.timing import EngineSpec
from router.snapshot import Snapshot

COUNTS = (70, 130)
TALK = "What was said before, at some length. " * 40
SIGNS = (Sign.OK, Sign.OK, Sign.LOAD, Sign.ILL, Sign.DEAD, Sign.BROKE)


@cache
def fleet(count: int, capacity: str = "") -> Snapshot:
    kind, _, number = capacity.partition("=")
    return Scenario(
        grounds([f"self:fra1={count}"], EngineSpec()), settings={kind: number} if kind else {}
    ).snapshot("self:fra1")


class World:
    """One router over a large endpoint to which anything happens."""

    def __init__(self, snapshot: Snapshot, seed: int) -> None:
        self.random, self.now = Random(seed), 100.0
        self.snapshot = snapshot
        self.keys = tuple(snapshot.targets["fra1"])
        self.balance = Balance(
            lambda: self.snapshot, HealthBook(), InFlight(), Readings(), lambda: self.now,
            self.random.random,
        )  # fmt: skip
        self.open: list[Held] = []

    def seats(self) -> list[Seat]:
        look = self.balance._look("fra1", 0)
        return [look(key) for key in self.keys]

    def check(self) -> None:
        """The best is what the look at all of them has as the best."""
        best = self.balance._best("fra1", self.snapshot.targets["fra1"])
        assert best == min(self.seats(), key=by_rank) or (
            # Idle ones are told apart by nothing.
            best[1:] == min(self.seats(), key=by_rank)[1:] and best.load == 0
        )

    def reserve(self, path: Trail | None) -> None:
        """Choose by the few, and see that a look at all comes to the same."""
        seats, prompt = self.seats(), self.random.choice((1, 40, 700, 700, 9000))
        before, balance = deepcopy(self.balance.affinity), self.balance
        front = min(seat.rank[:4] for seat in seats)
        alike = {seat.key: seat for seat in seats if seat.rank[:4] == front}
        load = min(seat.load for seat in alike.values())
        held = balance.reserve("fra1", prompt + 50, path, prompt)
        assert held is not None
        self.open.append(held)
        if path is None:
            assert alike[held.key].load == load
            return
        # Whichever of the least loaded was drawn: a cache elsewhere is worth more than any of them.
        least = [key for key, seat in alike.items() if seat.load == load]
        drawn = held.key if held.key in least else least[0]
        loads = {key: seat.load for key, seat in alike.items()}
        queues, room = all(seat.work for seat in alike.values()), balance.readings.room
        foreign = self.foreign(held.key)
        assert before.choose(path, loads, prompt, drawn, room, foreign, queues)[0] == held.key

    def foreign(self, entered: str) -> Callable[[str], float]:
        """As `Balance._foreign` had it before the request was counted."""

        def share(key: str) -> float:
            others = self.balance.readings.usual(key, self.now)
            own = self.balance.inflight.requests(key) - (key == entered)
            return others / (others + own) if others else 0.0

        return share

    def step(self, what: int) -> None:
        draw, balance = self.random, self.balance
        match what:
            case 0 | 1 | 2:
                self.reserve(None)
            case 3:
                text = TALK + str(draw.randrange(6))
                self.reserve(trail([("user", text), ("assistant", "ok"), ("user", TALK)]))
            case 4 if self.open:
                draw.choice(self.open).opened(self.now)
            case 5 if self.open:
                self.open.pop(draw.randrange(len(self.open))).close()
            case 6:
                for key in draw.sample(self.keys, draw.choice((1, 5, 60))):
                    self.tell(key)
            case 7:
                key, sign = draw.choice(self.keys), draw.choice(SIGNS)
                balance.health.start(key, self.now)
                balance.health.observe(key, sign, self.now)
            case 8:
                balance.paces.learn("fra1", draw.choice((10, 500, 3000)), draw.random())
            case 9:
                self.now += draw.choice((0.001, 0.05, 0.3, 6.0))

    def tell(self, key: str) -> None:
        draw, own = self.random, self.balance.inflight.requests(key)
        running = draw.choice((None, 0, own, own + 1, own + 7))
        reading = Reading(self.now, running, draw.choice((None, 0, 0, 3)), None, None, own, 50_000)
        self.balance.readings.report(key, reading)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(COUNTS),
    st.sampled_from(["", "capacity_requests=2", "capacity_tokens=900"]),
    st.integers(0, 1 << 30),
    st.lists(st.integers(0, 9), min_size=5, max_size=50),
)
def test_few_looks_find_what_all_looks_find(
    count: int, capacity: str, seed: int, steps: list[int]
) -> None:
    world = World(fleet(count, capacity), seed)
    for what in steps:
        world.step(what)
        world.check()


def looked(world: World) -> Iterator[int]:
    """How many replicas each choice looks at."""
    balance, seen = world.balance, Counter[str]()
    true = Balance._seat

    def counted(self: Balance, *what: object) -> Seat:
        seen["seat"] += 1
        return true(self, *what)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Balance, "_seat", counted)
        for number in range(300):
            if number < 20:
                balance.paces.learn("fra1", 100 * number, 0.02 + number / 80)
            world.now += 0.02
            seen.clear()
            balance.condition("fra1", 100)
            held = balance.reserve("fra1", 800, None, 600)
            assert held is not None
            world.open.append(held)
            yield seen["seat"]


@pytest.mark.parametrize("count", COUNTS)
def test_few_are_looked_at(count: int) -> None:
    """The first find idle ones; later ones pass those that have a prompt to compute, 75 ms each."""
    assert max(looked(World(fleet(count), 1))) <= 16


def test_of_equals_each_is_chosen_as_often() -> None:
    world, seen = World(fleet(70), 3), Counter[str]()
    busy = [world.balance.enter("fra1", key, 100, 0) for key in world.keys[:30]]
    for _ in range(4000):
        held = world.balance.reserve("fra1", 10)
        assert held is not None
        seen[held.key] += 1
        held.close()
    assert set(seen) == set(world.keys[30:])
    assert 60 < min(seen.values()) <= max(seen.values()) < 150
    for held in busy:
        held.close()


def test_equals_with_and_without_work_are_told_apart() -> None:
    """All have as many tokens; those that have a prompt to compute are none of the least."""
    world, seen = World(fleet(70), 3), Counter[str]()
    for number, key in enumerate(world.keys):
        world.balance.enter("fra1", key, 100, 0 if number in {7, 66} else 50)
    for _ in range(400):
        held = world.balance.reserve("fra1", 10)
        assert held is not None
        seen[held.key] += 1
        held.close()
    assert set(seen) == {"fra1/7", "fra1/66"}
    assert min(seen.values()) > 140


def test_a_fleet_that_changes_is_lined_up_anew() -> None:
    world = World(fleet(130), 5)
    for _ in range(130):
        world.reserve(None)
    world.snapshot = fleet(70)
    world.keys = tuple(world.snapshot.targets["fra1"])
    world.check()
    world.balance.inflight.forget(frozenset(world.keys))
    world.balance.readings.forget(frozenset(world.keys))
    for _ in range(90):
        world.reserve(None)
        world.check()
    assert {held.key for held in world.open[130:]} < set(world.keys)


def test_replicas_of_declared_shares_are_all_looked_at() -> None:
    """With shares declared nothing is lined up: the choice goes by them as it does among few."""
    plain = fleet(70)
    targets = dict(plain.targets["fra1"])
    targets["fra1/69"] = replace(targets["fra1/69"], share=0.25)
    world, seen = World(replace(plain, targets={"fra1": targets}), 2), Counter[str]()
    for _ in range(1400):
        held = world.balance.reserve("fra1", 100)
        assert held is not None
        world.open.append(held)
        seen[held.key] += 1
    assert seen["fra1/69"] <= 6
    assert min(count for key, count in seen.items() if key != "fra1/69") >= 18
