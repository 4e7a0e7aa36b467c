from __future__ import annotations

import time
from itertools import combinations
from random import Random

import pytest

from router.reconcile.presume import Stretch, pairs


def most(stretches: list[Stretch], calls: list[tuple[int, int]]) -> tuple[int, int]:
    """The most pairs there can be, and of attempts that must have one, by trying everything."""
    if not calls:
        return 0, 0
    (_, time), *rest = calls
    best = most(stretches, rest)
    for one in stretches:
        if one.start <= time <= one.end:
            pairs_, sure = most([s for s in stretches if s is not one], rest)
            best = max(best, (1 + pairs_, one.surely + sure))
    return best


@pytest.mark.parametrize("seed", range(120))
def test_as_many_are_paired_as_can_be_each_once_and_in_its_time(seed: int) -> None:
    random = Random(seed)
    starts = sorted(random.randrange(16) for _ in range(random.randrange(7)))
    stretches = [
        Stretch(n, s, s + random.randrange(8), random.random() < 0.6) for n, s in enumerate(starts)
    ]
    calls = list(enumerate(sorted(random.randrange(22) for _ in range(random.randrange(6)))))
    found = list(pairs(stretches, calls))
    sure = sum(stretches[attempt].surely for attempt, _ in found)
    assert (len(found), sure) == most(stretches, calls)
    assert all(a != b and c != d for (a, c), (b, d) in combinations(found, 2))
    for attempt, call in found:
        assert stretches[attempt].start <= calls[call][1] <= stretches[attempt].end


def test_an_answered_attempt_takes_the_record_of_one_that_may_have_none() -> None:
    """A time-out, and the next attempt at the same place that was answered: there is one record."""
    lost, answered = Stretch(1, 0, 10), Stretch(2, 5, 15, surely=True)
    assert list(pairs([lost, answered], [(7, 8)])) == [(2, 7)]
    late = Stretch(3, 9, 30, surely=True)
    assert sorted(pairs([lost, answered, late], [(7, 8), (8, 12)])) == [(2, 7), (3, 8)]


def test_many_that_are_missing_are_looked_for_once() -> None:
    """As where an export ends early, or the busiest hour of it is gone."""
    count = 20_000
    stretches = [Stretch(n, n * 10, n * 10 + 2000, n % 50 != 0) for n in range(count)]
    calls = [(n, n * 20 + 5) for n in range(count // 2)]
    began = time.process_time()
    found = list(pairs(stretches, calls))
    assert time.process_time() - began < 20
    assert len(found) == count // 2
    assert [attempt for attempt, _ in found if not stretches[attempt].surely] == [0], "none else"
