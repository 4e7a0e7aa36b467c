"""The strategies differ in the choice among replicas that stand alike, and in nothing else."""

from __future__ import annotations

import random
from collections import Counter

from regions.fleet import Readings
from regions.health import HealthBook, Sign
from regions.prefix import trail
from router.capacity.balance import Balance
from router.capacity.load import InFlight
from router.simulator.scenario import Scenario, grounds
from router.simulator.strategies import STRATEGIES
from router.simulator.timing import EngineSpec

SNAPSHOT = Scenario(grounds(["self:fra1=4"], EngineSpec())).snapshot("self:fra1")
PROMPT = trail([("user", "how long is a piece of string? " * 200)])


def balance(strategy: str) -> Balance:
    rng = random.Random(0)
    return STRATEGIES[strategy](
        lambda: SNAPSHOT, HealthBook(), InFlight(), Readings(), lambda: 1.0, rng.random
    )


def chosen(strategy: str, count: int) -> list[str]:
    found, keys = balance(strategy), []
    for _ in range(count):
        held = found.reserve("fra1", 100, PROMPT, 80)
        assert held is not None
        keys.append(held.key)
    return keys


def test_round_robin_goes_round() -> None:
    assert chosen("round-robin", 6) == [f"fra1/{n % 4}" for n in range(6)]


def test_random_goes_anywhere() -> None:
    assert set(chosen("random", 60)) == {f"fra1/{n}" for n in range(4)}


def test_least_load_looks_at_no_prompt() -> None:
    assert set(Counter(chosen("least-load", 40)).values()) == {10}


def test_prefix_looks_at_nothing_else() -> None:
    assert len(set(chosen("prefix", 40))) == 1


def test_the_ill_are_left_by_all() -> None:
    for strategy in STRATEGIES:
        found = balance(strategy)
        for key in ("fra1/0", "fra1/1", "fra1/2"):
            found.health.observe(key, Sign.DEAD, 1.0)
        for _ in range(8):
            held = found.reserve("fra1", 100, PROMPT, 80)
            assert held is not None
            assert held.key == "fra1/3"
