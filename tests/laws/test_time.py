"""Laws 8 and 13: time only narrows, and a decision says how long it holds."""

from __future__ import annotations

import math
from random import Random

from policies.eligibility import Eligible, Excluded, judge
from policies.engine import decide
from policies.timed import UNKNOWN_TIME, effective_now
from tests.laws import oracle
from tests.laws.worlds import NOWS, later_than, law, make_bound, make_world


def law_13_time_only_narrows(rnd: Random) -> None:
    world = make_world(rnd)
    later = later_than(rnd, world.now)
    one = decide(world.policy, world.ask, world.now)
    other = decide(world.policy, world.ask, later)
    for place in world.places:
        assert oracle.no_wider(other.allowed(place.candidate), one.allowed(place.candidate))
        before, after = (
            judge(d, place.candidate, place.endpoint, place.footprint, world.router, at)
            for d, at in ((one, world.now), (other, later))
        )
        assert isinstance(before, Eligible) or isinstance(after, Excluded)


def law_13_bounds_end(rnd: Random) -> None:
    """A boundary is what its living members make of it, at every moment; it never grows."""
    world = make_world(rnd)
    made = make_bound(rnd, world.atlas)
    seen = made.timed.at(0)
    for now in sorted(NOWS):
        assert made.timed.at(now) == made.naive(now)
        assert not made.timed.at(now).sure & ~seen.sure
        seen = made.timed.at(now)


def law_8_good_until(rnd: Random) -> None:
    """Until then, deciding again changes nothing; from then on it may not be relied on."""
    world = make_world(rnd)
    decision = decide(world.policy, world.ask, world.now)
    end = decision.good_until
    assert end is None or end > world.now
    for later in (t for t in NOWS if t >= world.now):
        for place in world.places:
            found = judge(
                decision, place.candidate, place.endpoint, place.footprint, world.router, later
            )
            again = decide(world.policy, world.ask, later)
            if end is not None and later >= end:
                assert isinstance(found, Excluded)
                assert "decision_lapsed" in found.codes
                continue
            one, other = decision.allowed(place.candidate), again.allowed(place.candidate)
            assert (one.process, one.retain, one.operate, one.applied) == (
                other.process,
                other.retain,
                other.operate,
                other.applied,
            )
            assert decision.dry_run == again.dry_run


def law_8_an_eligible_endpoint_stays_so(rnd: Random) -> None:
    world = make_world(rnd)
    decision = decide(world.policy, world.ask, world.now)
    for place in world.places:
        endpoint = place.endpoint
        found = judge(decision, place.candidate, endpoint, place.footprint, world.router, world.now)
        if not isinstance(found, Eligible):
            continue
        end = found.good_until
        assert end is None or end > world.now
        for later in (t for t in NOWS if world.now <= t and (end is None or t < end)):
            again = judge(decision, place.candidate, endpoint, place.footprint, world.router, later)
            assert isinstance(again, Eligible)


def law_13_a_clock_behind_is_wrong(rnd: Random) -> None:
    clock = rnd.choice((None, math.nan, 0.0, 95.0, 99.0, 100.0, 101.0, 1000.0))
    newest = rnd.choice((None, 100.0))
    now = effective_now(clock, newest)
    if clock is None or math.isnan(clock):
        assert now.time == UNKNOWN_TIME
        return
    assert now.time >= clock
    if newest is not None:
        assert now.time >= newest
        assert now.clock_behind == (clock < newest - 5)
    if now.clock_behind:
        assert now.time == UNKNOWN_TIME
    else:
        assert now.time == max(clock, newest or 0.0)


test_law_13 = law(law_13_time_only_narrows)
test_law_13_bounds = law(law_13_bounds_end)
test_law_8 = law(law_8_good_until)
test_law_8_eligible = law(law_8_an_eligible_endpoint_stays_so)
test_law_13_clock = law(law_13_a_clock_behind_is_wrong)
