"""Every wrong engine breaks at least one law."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from tests.laws.fast_mutants import FAST
from tests.laws.laws import LAWS
from tests.laws.mutants import MUTANTS, Mutant
from tests.laws.worlds import Law
from tests.policies import test_compiled, test_judging

SEEDS = 500


def killer(mutant: Mutant, laws: Mapping[str, Law]) -> str | None:
    """The first law that a living mutant breaks; most die within a few worlds."""
    with mutant.alive():
        for seed in range(4 * SEEDS):
            for name, check in laws.items():
                try:
                    check(Random(seed))
                except Exception:  # noqa: BLE001 - a mutant that raises is dead as well
                    return name
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_killed(mutant: Mutant) -> None:
    assert killer(mutant, LAWS) is not None


@pytest.mark.parametrize("mutant", FAST, ids=lambda m: m.name)
def test_killed_by_the_reference(mutant: Mutant) -> None:
    equal = {"decide": test_compiled.equal, "judge": test_judging.equal}
    assert killer(mutant, equal) is not None


@pytest.mark.parametrize("name", LAWS)
def test_law_holds_on_many_seeded_worlds(name: str) -> None:
    """Seeds also cover what mutants are judged on: a law that fails by itself kills nothing."""
    for seed in range(SEEDS):
        LAWS[name](Random(seed))


def test_names_are_unique() -> None:
    every = (*MUTANTS, *FAST)
    assert len({mutant.name for mutant in every}) == len(every)
