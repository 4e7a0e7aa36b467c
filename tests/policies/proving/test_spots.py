import pytest

from policies.obligations import InRegion, ZeroRetention
from policies.proving.spots import Spot, catalog_facts, ends, excluded, losses, spots
from tests.policies.samples import example, loading

NOW = 1_796_000_000.0
CLOUD = """\
regions: {self:fra1: {country: DE}}
models: {chat: {tiers: {small: [own], large: [profile, one]}}}
endpoints:
  own: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {dns: a:1}}
  profile: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6, retention_mode: none}
  one: {kind: vllm, region: "aws:eu-west-1", operate: [IE], retain: nothing, model: m, replicas: {dns: b:1}}
"""  # noqa: E501


def found(*routers: str) -> tuple[Spot, ...]:
    loaded = loading(CLOUD)
    return spots(loaded.policy, catalog_facts(loaded.catalog), routers, NOW)


def test_one_spot_for_each_endpoint_tier_and_kind_of_call() -> None:
    shown = {(s.endpoint.name, s.candidate.tier.label) for s in found()}
    assert shown == {("own", "small"), ("profile", "large"), ("one", "large")}
    assert all(s.models == {"chat"} for s in found())
    assert any(s.is_plain for s in found())


def test_each_router_adds_its_place() -> None:
    plain = [s for s in found("self:fra1", "aws:us-east-1") if s.endpoint.name == "one"]
    assert {s.router for s in plain} == {"self:fra1", "aws:us-east-1"}
    assert all(s.process.bit_count() == 2 for s in plain)


def test_a_call_that_goes_nobody_knows_where_is_no_spot() -> None:
    loaded = loading(CLOUD)
    facts = catalog_facts(loaded.catalog)
    late = NOW + 10 * 365 * 86_400.0
    assert "profile" not in {s.endpoint.name for s in spots(loaded.policy, facts, (), late)}


def test_what_excludes_a_spot_is_what_the_engine_says() -> None:
    by_name = {s.endpoint.name: s for s in found() if s.is_plain}
    assert excluded(by_name["profile"], NOW, InRegion())
    assert not excluded(by_name["own"], NOW, InRegion())
    assert not excluded(by_name["own"], NOW, ZeroRetention())
    assert excluded(by_name["own"], NOW, require=frozenset({"dpa"}))


@pytest.mark.parametrize(
    ("unit", "left"),
    [
        ("region", {"self:fra1": {"one", "profile"}, "aws:eu-central-1": {"own", "one"},
                    "aws:eu-west-1": {"own", "profile"}}),
        ("country", {"DE": {"one"}, "IE": {"own", "profile"}}),
        ("provider", {"aws": {"own"}, "self": {"profile"}}),
        ("nothing", {}),
    ],
)  # fmt: skip
def test_what_is_left_without_each_unit(unit: str, left: dict[str, set[str]]) -> None:
    plain = [s for s in found() if s.is_plain]
    shown = {lost: {s.endpoint.name for s in rest} for lost, rest in losses(unit, plain)}
    assert shown.pop("nothing") == {"own", "one", "profile"}
    assert shown == left


def test_an_operator_is_a_country_whose_law_reaches() -> None:
    plain = [s for s in found() if s.is_plain]
    shown = {lost: {s.endpoint.name for s in rest} for lost, rest in losses("operator", plain)}
    assert shown["US"] == {"own"}
    assert "own" not in shown["DE"]


def test_facts_and_assurances_end() -> None:
    loaded = example()
    found = spots(loaded.policy, catalog_facts(loaded.catalog), (), NOW)
    assert 1_830_211_200.0 in set(ends(found))  # 2027-12-31, the assurance
    assert any(end != 1_830_211_200.0 for end in ends(found))
