from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from router.reconcile.presume import Stretch, pairs


def most(stretches: list[Stretch], calls: list[tuple[int, int]]) -> int:
    """The most pairs there can be, by trying everything."""
    if not calls:
        return 0
    (_, time), *rest = calls
    best = most(stretches, rest)
    for one in stretches:
        if one.start <= time <= one.end:
            best = max(best, 1 + most([s for s in stretches if s is not one], rest))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_as_many_are_paired_as_can_be_each_once_and_in_its_time(seed: int) -> None:
    random = Random(seed)
    starts = sorted(random.randrange(20) for _ in range(random.randrange(6)))
    stretches = [Stretch(n, s, s + random.randrange(8)) for n, s in enumerate(starts)]
    calls = list(enumerate(sorted(random.randrange(28) for _ in range(random.randrange(6)))))
    found = list(pairs(stretches, calls))
    assert len(found) == most(stretches, calls)
    assert all(a != b and c != d for (a, c), (b, d) in combinations(found, 2))
    for attempt, call in found:
        assert stretches[attempt].start <= calls[call][1] <= stretches[attempt].end
