"""Every difference between a source region's list and the catalog, once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regions.catalog import Catalog
from router.watch.compared import Change, compare

FACTS = Catalog.load({}).bedrock
SOURCE = "eu-central-1"
KNOWN = {n: p.routes[SOURCE] for n, p in FACTS.profiles.items() if SOURCE in p.routes}
GLOBAL = next(n for n, sources in FACTS.global_sources.items() if SOURCE in sources)
EU = "eu.anthropic.claude-sonnet-4-6"


def test_the_catalog_compared_with_itself_differs_in_nothing() -> None:
    assert compare(SOURCE, {**KNOWN, GLOBAL: ("any",)}, FACTS) == ()


def test_added_and_removed_members() -> None:
    [found] = compare(SOURCE, {**KNOWN, EU: (*KNOWN[EU][1:], "eu-west-2")}, FACTS)
    assert (found.kind, found.added, found.removed) == ("members", ("eu-west-2",), (KNOWN[EU][0],))
    assert found.widened


def test_fewer_members_are_not_wider() -> None:
    [found] = compare(SOURCE, {**KNOWN, EU: KNOWN[EU][:1]}, FACTS)
    assert not found.widened


def test_new_and_gone_profiles() -> None:
    seen = {name: members for name, members in KNOWN.items() if name != EU}
    found = compare(SOURCE, {**seen, "amer.vendor.m": ("us-east-1",)}, FACTS)
    assert [(one.profile, one.kind) for one in found] == [("amer.vendor.m", "new"), (EU, "gone")]


def test_a_new_global_profile_is_told() -> None:
    [found] = compare(SOURCE, {**KNOWN, "global.vendor.m": ("any",)}, FACTS)
    assert found == Change("global.vendor.m", SOURCE, "new", members=("any",))


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), st.sets(st.sampled_from(KNOWN[EU]))))
def test_every_difference_is_found_and_nothing_else(changed: dict[str, set[str]]) -> None:
    seen = {**KNOWN, **{name: tuple(members) for name, members in changed.items()}}
    found = {one.profile for one in compare(SOURCE, seen, FACTS)}
    assert found == {name for name, new in changed.items() if new != set(KNOWN[name])}
