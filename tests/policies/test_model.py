from policies.model import Grant, Model, Rule, single
from policies.timed import always
from regions.model import Tier
from tests.policies.samples import example


def test_a_grant_defaults() -> None:
    eu = always(example().policy.atlas.jurisdiction("EU"))
    grant = Grant.within(eu)
    assert grant.retain is grant.process
    assert grant.operate.at(0).is_any


def test_only_two_tiers_with_grade_on_are_substitutable() -> None:
    two = {Tier.SMALL: ("a",), Tier.LARGE: ("b",)}
    assert Model("m", two, "on").substitutable
    assert not Model("m", two, "observe").substitutable
    assert not Model("m", {Tier.LARGE: ("b",)}, "on").substitutable


def test_rules() -> None:
    trial = Rule("r", dry_run_until=100.0)
    assert trial.is_dry(99.0)
    assert not trial.is_dry(100.0)
    assert not trial.narrows
    assert example().policy.rules[0].narrows


def test_built_in_states_are_closed() -> None:
    assert single("a").closed
    assert single(None).closed
    assert single(None).values == frozenset()


def test_trust() -> None:
    policy = example().policy
    assert policy.trusted("crm") == {"data_class"}
    assert policy.trusted("unheard-of") == policy.trusted(None) == frozenset()
