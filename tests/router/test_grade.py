"""The tier floor: highest unless graded, and always within the policy's bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.engine import Ask, Decision, decide
from policies.model import Grant, Model, Policy, Rule, Tenant
from policies.obligations import TierRange
from policies.timed import always
from regions.model import Tier
from router.errors import RequestError
from router.grade import asked_tier, floor
from tests.router.made import ATLAS

TIERS = st.sampled_from(Tier)


def decision(tiers: TierRange) -> Decision:
    tenant = Tenant("t", Grant.within(always(ATLAS.worldwide())))
    rule = Rule("r", obligations=(tiers,))
    return decide(Policy(ATLAS, tenants={"t": tenant}, rules=(rule,)), Ask("t"), 0)


def model(grade: str, *tiers: Tier) -> Model:
    return Model("m", dict.fromkeys(tiers, ("e",)), grade)


def test_without_grading_the_highest_tier_serves() -> None:
    both = model("observe", Tier.SMALL, Tier.LARGE)
    assert floor(both, decision(TierRange()), None, Tier.SMALL) is Tier.LARGE


def test_graded_small_serves_small() -> None:
    both = model("on", Tier.SMALL, Tier.LARGE)
    assert floor(both, decision(TierRange()), None, Tier.SMALL) is Tier.SMALL
    assert floor(both, decision(TierRange()), None, None) is Tier.LARGE


def test_one_tier_is_never_substituted() -> None:
    assert floor(model("on", Tier.LARGE), decision(TierRange()), None, Tier.SMALL) is Tier.LARGE


@given(TIERS, TIERS, TIERS, st.none() | TIERS, st.none() | TIERS)
def test_policy_bounds_whatever_is_asked_and_graded(
    low: Tier, high: Tier, top: Tier, asked: Tier | None, graded: Tier | None
) -> None:
    bounds = TierRange(min(low, high), max(low, high))
    found = floor(model("on", Tier.SMALL, top), decision(bounds), asked, graded)
    assert found <= bounds.ceiling
    assert found >= min(bounds.floor, top)
    # A request may ask for more, never for less.
    assert found >= floor(model("on", Tier.SMALL, top), decision(bounds), None, graded)


def test_the_header() -> None:
    assert asked_tier(None) is None
    assert asked_tier(b" Large ") is Tier.LARGE
    with pytest.raises(RequestError) as caught:
        asked_tier(b"huge")
    assert caught.value.status == 400
