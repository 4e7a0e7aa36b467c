import pytest

from policies.model import Policy
from policies.proving.asserting import Asserting, outside
from policies.proving.examples import Disagreement
from policies.proving.logic import Logic
from policies.proving.reach import Reach
from policies.proving.requests import Requests
from policies.proving.spots import Spot, catalog_facts, spots
from policies.proving.truths import Truths
from policies.statements import Statement
from policies.timed import always
from regions.countries import Countries
from tests.policies.samples import loading

NOW = 1_796_000_000.0
WORLD = """\
regions: {self:fra1: {country: DE}, self:nyc1: {country: US}}
tenants: {acme: {grant: {process: worldwide}}}
models: {chat: {tiers: {large: [fra, nyc]}}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {dns: a:1}}
  nyc: {kind: vllm, region: self:nyc1, operate: [US], retain: self:nyc1, model: m, replicas: {dns: b:1}}
"""  # noqa: E501


class Lying(Reach):
    """Says that everything is reached."""

    def reaches(self, spot: Spot) -> int:
        return self._logic.true


def asserting(text: str, kind: type[Reach] = Reach) -> tuple[Policy, Asserting]:
    loaded = loading(text)
    policy = loaded.policy
    made = Requests(Logic(), (policy,), [rule.condition for rule in policy.rules])
    truths = Truths(made)
    found = spots(policy, catalog_facts(loaded.catalog), (), NOW)
    return policy, Asserting(made, truths, kind(made, truths, policy, NOW, False), found)


def test_what_lies_outside_on_each_axis() -> None:
    loaded = loading(WORLD)
    eu = always(loaded.policy.atlas.jurisdiction("EU"))
    statement = Statement(process=eu, retain=eu, operate=always(Countries.of(["DE"])))
    by_name = {
        spot.endpoint.name: outside(statement, spot, NOW)
        for spot in spots(loaded.policy, catalog_facts(loaded.catalog), (), NOW)
        if spot.is_plain
    }
    assert by_name["fra"] == ()
    assert by_name["nyc"] == (
        ("processed", ("self:nyc1",)),
        ("retained", ("self:nyc1",)),
        ("operated", ("US",)),
    )


def test_the_engine_has_the_last_word_on_a_counter_example() -> None:
    rule = "rules: [{name: eu, process_within: EU}]\n"
    policy, honest = asserting(WORLD + rule)
    statement = Statement(process=always(policy.atlas.jurisdiction("EU")))
    assert honest.broken(statement) is None
    _, lying = asserting(WORLD + rule, Lying)
    with pytest.raises(Disagreement):
        lying.broken(statement)
    policy, wide = asserting(WORLD)
    example = wide.broken(Statement(process=always(policy.atlas.jurisdiction("EU"))))
    assert example is not None
    assert example.endpoint == "nyc"
