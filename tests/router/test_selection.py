"""The order of endpoints: tiers, preferences, standing, load."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine import Preference
from regions.health import Standing
from regions.model import Tier
from router.selection import Condition, PreferConflict, order, wait_for
from router.types import Candidacy
from tests.router.made import ATLAS, candidacy

GOOD = Condition(Standing.GOOD, 0)


def names(found: tuple[Candidacy, ...]) -> list[str]:
    return [one.endpoint.name for one in found]


def ordered(candidacies: list[Candidacy], **conditions: Condition) -> list[str]:
    return names(order(candidacies, lambda name: conditions.get(name, GOOD)))


def preferring(*words: str, rule: str = "r") -> frozenset[Preference]:
    sets = tuple(
        ATLAS.worldwide() if word == "worldwide" else ATLAS.country(word) for word in words
    )
    return frozenset({Preference(rule, sets)})


def test_lowest_tier_first_then_standing_then_load() -> None:
    found = ordered(
        [
            candidacy("large", tier=Tier.LARGE),
            candidacy("busy", tier=Tier.SMALL),
            candidacy("idle", tier=Tier.SMALL),
            candidacy("loaded", tier=Tier.SMALL),
        ],
        busy=Condition(Standing.GOOD, 100),
        loaded=Condition(Standing.LOADED, 0),
    )
    assert found == ["idle", "busy", "loaded", "large"]


def test_a_replica_on_trial_gets_its_turn() -> None:
    both = [candidacy("good"), candidacy("trial")]
    states = {"good": Condition(Standing.GOOD, 10), "trial": Condition(Standing.TRIAL, 0)}
    assert ordered(both, **states) == ["trial", "good"]


def test_a_marked_endpoint_is_tried_last_but_tried() -> None:
    found = ordered(
        [candidacy("a", tier=Tier.SMALL), candidacy("b", tier=Tier.LARGE)],
        a=Condition(Standing.MARKED, 0, 3),
    )
    assert found == ["b", "a"]


def test_a_later_set_opens_when_the_earlier_ones_are_out() -> None:
    prefer = preferring("FR", "worldwide")
    both = [
        candidacy("de", "self:fra1", prefer=prefer),
        candidacy("fr", "self:par1", prefer=prefer),
    ]
    assert ordered(both) == ["fr", "de"]
    # Marked bad: the second set opens, and the marked one stays behind it.
    assert ordered(both, fr=Condition(Standing.MARKED, 0)) == ["de", "fr"]


def test_load_does_not_open_a_later_set() -> None:
    prefer = preferring("FR", "worldwide")
    both = [
        candidacy("de", "self:fra1", prefer=prefer),
        candidacy("fr", "self:par1", prefer=prefer),
    ]
    assert ordered(both, fr=Condition(Standing.LOADED, 10**6)) == ["fr", "de"]


def test_an_endpoint_in_no_set_never_opens() -> None:
    prefer = preferring("FR")
    both = [
        candidacy("de", "self:fra1", prefer=prefer),
        candidacy("fr", "self:par1", prefer=prefer),
    ]
    assert ordered(both) == ["fr"]


def test_every_applying_preference_must_open_a_candidate() -> None:
    prefer = preferring("FR", rule="one") | preferring("DE", rule="two")
    both = [
        candidacy("de", "self:fra1", prefer=prefer),
        candidacy("fr", "self:par1", prefer=prefer),
    ]
    with pytest.raises(PreferConflict):
        ordered(both)


def test_all_marked_panics_toward_trying() -> None:
    prefer = preferring("FR", "worldwide")
    both = [
        candidacy("de", "self:fra1", prefer=prefer),
        candidacy("fr", "self:par1", prefer=prefer),
    ]
    marked = Condition(Standing.MARKED, 0, 2)
    assert sorted(ordered(both, de=marked, fr=marked)) == ["de", "fr"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["self:fra1", "self:par1", "self:iad1"]),
            st.sampled_from(Tier),
            st.sampled_from(Standing),
            st.integers(0, 10),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_order_is_a_permutation_without_preferences(
    worlds: list[tuple[str, Tier, Standing, int]],
) -> None:
    found = [candidacy(str(n), region, tier) for n, (region, tier, _, _) in enumerate(worlds)]
    states = {str(n): Condition(s, load) for n, (_, _, s, load) in enumerate(worlds)}
    result = order(found, states.__getitem__)
    assert sorted(names(result)) == sorted(states)
    # No available endpoint of a lower tier stands behind one of a higher tier.
    live = [one.tier for one in result if states[one.endpoint.name].standing < Standing.MARKED]
    assert live == sorted(live)


def test_how_long_to_wait() -> None:
    both = [candidacy("a"), candidacy("b")]
    states = {"a": Condition(Standing.MARKED, 0, 9), "b": Condition(Standing.MARKED, 0, 4)}
    assert wait_for(both, states.__getitem__) == 4
    assert wait_for([], states.__getitem__) == 1
