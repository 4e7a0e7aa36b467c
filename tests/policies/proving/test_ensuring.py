import pytest

from policies.conditions import Is
from policies.proving.ensuring import Ensuring
from policies.proving.examples import Disagreement
from policies.proving.logic import Logic
from policies.proving.reach import Reach
from policies.proving.requests import Requests
from policies.proving.spots import Spot, catalog_facts, spots
from policies.proving.truths import Truths
from policies.statements import Ensure
from tests.policies.samples import loading

NOW = 1_796_000_000.0
WORLD = """\
regions: {self:fra1: {country: DE}, self:par1: {country: FR}, self:ams1: {country: NL}}
tenants: {acme: {grant: {process: EU}, models: [chat]}}
models:
  chat: {tiers: {small: [ams], large: [fra, par]}}
  other: {tiers: {large: [fra]}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {dns: a:1}}
  par: {kind: vllm, region: self:par1, operate: [FR], retain: nothing, model: m, replicas: {dns: b:1}}
  ams: {kind: vllm, region: self:ams1, operate: [NL], retain: nothing, model: m, replicas: {dns: c:1}}
"""  # noqa: E501


class Lying(Reach):
    """Says that nothing is reached."""

    def reaches(self, spot: Spot) -> int:
        return self._logic.false


def ensuring(text: str, kind: type[Reach] = Reach) -> Ensuring:
    loaded = loading(text)
    policy = loaded.policy
    made = Requests(Logic(), (policy,), [rule.condition for rule in policy.rules])
    truths = Truths(made)
    found = spots(policy, catalog_facts(loaded.catalog), (), NOW)
    return Ensuring(made, truths, kind(made, truths, policy, NOW, True), found)


def test_only_the_tier_that_serves_counts() -> None:
    assert ensuring(WORLD).broken(Ensure(unit="region")) is None
    broken = ensuring(WORLD).broken(Ensure(unit="region", least=2))
    assert broken is not None
    assert broken.left in (("fra",), ("par",))


def test_a_ceiling_moves_the_floor() -> None:
    ceiling = "rules: [{name: small, obligations: [{tier: {ceiling: small}}]}]\n"
    broken = ensuring(WORLD + ceiling).broken(Ensure(unit="region"))
    assert broken is not None
    assert (broken.lost, broken.left, broken.rules) == ("self:ams1", (), ("small",))
    assert ensuring(WORLD + ceiling).broken(Ensure(unit="nothing")) is None


def test_only_models_that_the_tenant_may_use_count() -> None:
    assert ensuring(WORLD).broken(Ensure(unit="region", models=frozenset({"other"}))) is None
    assert ensuring(WORLD).is_vacuous(Ensure(models=frozenset({"other"})))
    assert not ensuring(WORLD).is_vacuous(Ensure())


def test_other_purposes_count_where_they_are_named() -> None:
    rule = "rules: [{name: no-batch, obligations: no_batch}]\n"
    assert ensuring(WORLD + rule).broken(Ensure()) is None
    batch = Ensure(Is("purpose", frozenset({"batch"})))
    broken = ensuring(WORLD + rule).broken(batch)
    assert broken is not None
    assert broken.request.purpose == "batch"


def test_the_engine_has_the_last_word() -> None:
    with pytest.raises(Disagreement):
        ensuring(WORLD, Lying).broken(Ensure())
