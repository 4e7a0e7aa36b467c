from policies.eligibility import Eligible
from policies.findings import Finding, Scene, Severity
from tests.policies.samples import NOW, example, loading


def scene() -> Scene:
    return Scene(example().policy, example().catalog, NOW)


def test_silence_is_what_the_tenants_record_says() -> None:
    decision = scene().silent["clinic"]
    assert decision.ask.attributes["sector"].values == {"health"}
    assert decision.ask.attributes["data_class"].values == {"internal"}


def test_verdicts_do_not_depend_on_where_the_router_is() -> None:
    looked = scene()
    for tier, endpoint in looked.policy.candidates("assistant"):
        decision = looked.silent["clinic"]
        assert isinstance(looked.verdict(decision, tier, endpoint), Eligible)
        assert looked.reasons(decision, tier, endpoint) == ()
    assert looked.served("clinic", looked.policy.models["assistant"]) == (
        "fra-small",
        "fra-large",
        "sonnet-eu",
    )


def test_the_loosest_decision_is_the_grant_and_unconditional_rules() -> None:
    loaded = loading(
        "attributes: {a: {values: [x], default: x}}\ntenants: {t: {grant: {process: worldwide}}}\n"
        "rules: [{name: r, when: {a: x}, process_within: DE}, {name: s, process_within: EU}]"
    )
    looked = Scene(loaded.policy, loaded.catalog, NOW)
    assert looked.loosest["t"].common.process == loaded.policy.atlas.jurisdiction("EU")
    assert looked.silent["t"].common.process == loaded.policy.atlas.country("DE")


def test_a_tenant_without_a_list_may_ask_for_every_model() -> None:
    loaded = loading(
        "regions: {self:a1: {country: DE}}\n"
        "endpoints: {e: {kind: vllm, model: m, region: self:a1}}\n"
        "models: {a: {tiers: {small: e}}, b: {tiers: {small: e}}}\n"
        "tenants: {t: {}, u: {models: a}}"
    )
    looked = Scene(loaded.policy, loaded.catalog, NOW)
    assert [m.name for m in looked.models(loaded.policy.tenants["t"])] == ["a", "b"]
    assert [m.name for m in looked.models(loaded.policy.tenants["u"])] == ["a"]


def test_a_finding_without_a_place_is_shown_without_one() -> None:
    assert str(Finding(Severity.NOTE, "c", "m")) == "note: m (c)"
