"""The policy engine against its references, for minutes: `./run soak tests/soak/test_policy.py`."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.laws.worlds import make_world
from tests.policies import test_judging
from tests.policies.test_compiled import compare
from tests.policies.test_prove import agree

pytestmark = pytest.mark.soak


def test_proofs_agree_with_brute_force_on_five_thousand_worlds() -> None:
    found = Counter(outcome for seed in range(1_000, 6_200) for outcome in agree(seed))
    assert min(found[outcome] for outcome in ("broken", "holds", "vacuous")) > 500, found


def test_the_engines_agree_on_two_hundred_thousand_requests() -> None:
    for seed in range(10_000, 18_000):
        rnd = Random(seed)
        compare(make_world(rnd), rnd, asks=25)


def test_the_filters_agree_on_ten_thousand_worlds() -> None:
    for seed in range(10_000, 20_000):
        test_judging.equal(Random(seed))
