import pytest

from policies.conditions import Candidate
from policies.eligibility import CODES, Eligible, Excluded, judge
from policies.engine import Ask, decide
from policies.explain import MEANINGS
from policies.model import Policy
from regions.countries import Countries
from regions.model import Assurance, Endpoint, Footprint, Price, Retention, Tier
from tests.policies.samples import NOW, TENANT, loaded

CANDIDATE = Candidate("e", "m", "aws", Tier.MEDIUM)
ZDR = Assurance("zdr", "contract", "dpo", NOW + 50)


def verdict(
    policy: Policy,
    *places: str,
    endpoint: Endpoint | None = None,
    retain: Retention | None = None,
    operate: Countries | None = None,
    router: str = "aws:eu-central-1",
    now: float = NOW,
    purpose: str = "interactive",
) -> Eligible | Excluded:
    atlas = policy.atlas
    footprint = Footprint(
        atlas.place(*(places or ("aws:eu-west-1",))),
        retain or Retention.nothing("contract"),
        operate or Countries.of(["DE"]),
        missing=("who runs it",),
    )
    decision = decide(policy, Ask("acme", purpose=purpose), NOW)
    one = endpoint or Endpoint("e", "vllm", "aws", "m", price=Price(1.0, 2.0))
    return judge(decision, CANDIDATE, one, footprint, router, now)


def codes(found: Eligible | Excluded) -> tuple[str, ...]:
    return found.codes if isinstance(found, Excluded) else ()


def rule(effect: str) -> Policy:
    return loaded(TENANT + f"rules: [{{name: r, {effect}}}]")


def test_each_axis() -> None:
    policy = rule("process_within: EU, retain_within: EU, operated_by: EU")
    atlas = policy.atlas
    us = Retention.within(atlas.place("aws:us-east-1"), "documented")
    unknown = Retention.within(atlas.unknown, "not documented")
    assert isinstance(verdict(policy), Eligible)
    assert codes(verdict(policy, "aws:eu-west-1", "aws:us-east-1")) == ("process_outside",)
    assert codes(verdict(policy, retain=us)) == ("retain_outside",)
    assert codes(verdict(policy, retain=unknown)) == ("retain_unknown",)
    assert codes(verdict(policy, operate=Countries.of(["DE", "US"]))) == ("operate_outside",)
    assert codes(verdict(policy, operate=Countries.unknown())) == ("operate_unknown",)
    assert codes(verdict(policy, router="aws:us-east-1")) == ("router_outside",)


def test_unknown_lies_only_inside_the_unbounded() -> None:
    policy = loaded(TENANT)
    unknown = Retention.within(policy.atlas.unknown, "not documented")
    assert isinstance(verdict(policy, retain=unknown, operate=Countries.unknown()), Eligible)
    assert codes(verdict(policy, "unknown")) == ("process_unknown",)
    bounded = loaded("tenants: {acme: {grant: {process: worldwide - US}}}")
    assert "retain_unknown" in codes(verdict(bounded, retain=unknown))


def test_every_reason_is_said_at_once() -> None:
    policy = rule("process_within: CH, operated_by: CH, require: [baa], obligations: [in_region]")
    found = verdict(policy, "aws:us-east-1", "aws:us-west-2")
    assert codes(found) == (
        "process_outside",
        "router_outside",
        "operate_outside",
        "assurance_missing",
        "in_region",
    )


@pytest.mark.parametrize(
    ("effect", "code"),
    [
        ("obligations: [{tier: {floor: large}}]", "tier_below_floor"),
        ("obligations: [{tier: {ceiling: small}}]", "tier_above_ceiling"),
        ("obligations: [{max_price: {input: 0.5}}]", "max_price"),
        ("obligations: [no_batch]", "no_batch"),
        ("require: [dpa]", "assurance_missing"),
    ],
)
def test_obligations_remove(effect: str, code: str) -> None:
    assert codes(verdict(rule(effect), purpose="batch")) == (code,)


def test_zero_retention_by_footprint_or_contract() -> None:
    policy = rule("obligations: [zero_retention]")
    keeps = Retention.within(policy.atlas.place("aws:eu-west-1"), "documented")
    held = Endpoint("e", "vllm", "aws", "m", assurances=(ZDR,))
    assert isinstance(verdict(policy), Eligible)
    assert codes(verdict(policy, retain=keeps)) == ("zero_retention",)
    found = verdict(policy, retain=keeps, endpoint=held)
    assert isinstance(found, Eligible)
    assert found.good_until == NOW + 50
    assert codes(verdict(policy, retain=keeps, endpoint=held, now=NOW + 50)) == ("zero_retention",)


def test_global_profiles_by_name_and_by_place() -> None:
    policy = rule("obligations: [no_global]")
    arn = "arn:aws:bedrock:eu-central-1:1:inference-profile/global.anthropic.claude"
    for model in ("global.anthropic.claude", arn):
        named = Endpoint("e", "bedrock", "aws", model)
        assert codes(verdict(policy, endpoint=named)) == ("no_global",)
    assert codes(verdict(policy, "elsewhere:aws")) == ("no_global",)


def test_an_assurance_lapses() -> None:
    policy = rule("require: [zdr]")
    held = Endpoint("e", "vllm", "aws", "m", assurances=(ZDR,))
    assert isinstance(verdict(policy, endpoint=held), Eligible)
    assert codes(verdict(policy, endpoint=held, now=NOW + 50)) == ("assurance_lapsed",)


def test_a_decision_that_ended_lets_nothing_through() -> None:
    policy = loaded("tenants: {acme: {grant: {process: EU, until: 2027-02-01}}}")
    assert isinstance(verdict(policy), Eligible)
    assert codes(verdict(policy, now=NOW + 1e8)) == ("decision_lapsed",)


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == CODES
