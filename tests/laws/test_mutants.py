"""Every wrong engine breaks at least one law."""

from __future__ import annotations

from random import Random

import pytest

from tests.laws.laws import LAWS
from tests.laws.mutants import MUTANTS, Mutant

SEEDS = 250


def killer(mutant: Mutant) -> str | None:
    """The first law that a living mutant breaks."""
    with mutant.alive():
        for seed in range(SEEDS):
            for name, check in LAWS.items():
                try:
                    check(Random(seed))
                except (AssertionError, ValueError, TypeError):
                    return name
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_killed(mutant: Mutant) -> None:
    assert killer(mutant) is not None


@pytest.mark.parametrize("name", LAWS)
def test_law_holds_on_many_seeded_worlds(name: str) -> None:
    """Seeds also cover what mutants are judged on: a law that fails by itself kills nothing."""
    for seed in range(SEEDS):
        LAWS[name](Random(seed))


def test_every_law_kills_somebody() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
