"""Each check of what can be reached, on a small fleet."""

from policies.findings import Scene, Severity
from policies.lint_reach import (
    boundaries_nobody_serves,
    caches_shared,
    endpoints_nobody_uses,
    left_out_by_preference,
    models_without_places,
    open_ended,
    plain_ids,
    preferences,
    rules_nobody_serves,
    silence,
    stores,
    unknown_facts,
    unpriced,
)
from tests.policies.samples import NOW, loading

FLEET = """\
regions: {self:fra1: {country: DE}, self:zrh1: {country: CH}, self:iad1: {country: US}}
endpoints:
  fra: {kind: vllm, model: m, region: self:fra1, operate: DE, retain: nothing}
  fra2: {kind: vllm, model: m, region: self:fra1, operate: DE, retain: nothing}
  zrh: {kind: vllm, model: m, region: self:zrh1, operate: CH, retain: nothing}
  iad: {kind: vllm, model: m, region: self:iad1, operate: US, retain: nothing}
  wild: {kind: bedrock, source: eu-central-1, model: global.anthropic.claude-sonnet-4-6, retention_mode: none}
"""  # noqa: E501


def scene(more: str, now: float = NOW, **stores_at: str) -> Scene:
    loaded = loading(FLEET + more)
    return Scene(loaded.policy, loaded.catalog, now, stores=stores_at)


def pool(*endpoints: str, grant: str = "EU", more: str = "") -> str:
    listed = ", ".join(endpoints)
    return (
        f"models: {{m1: {{tiers: {{large: [{listed}]}}}}}}\n"
        f"tenants: {{t: {{grant: {{process: {grant}}}}}}}\n{more}"
    )


def test_what_silence_reaches() -> None:
    found = list(silence(scene(pool("fra", "iad"))))
    assert found[0].message == "tenant `t`: a request that says nothing may reach m1: fra"


def test_models_without_places() -> None:
    codes = {
        endpoints: [f.code for f in models_without_places(scene(pool(*endpoints)))]
        for endpoints in (("iad",), ("fra", "iad"), ("fra", "fra2"))
    }
    assert codes == {
        ("iad",): ["model_unserved"],
        ("fra", "iad"): ["no_fallback"],
        ("fra", "fra2"): ["single_point_of_failure"],
    }
    assert list(models_without_places(scene(pool("fra", "zrh", grant="EU + CH")))) == []
    why = next(iter(models_without_places(scene(pool("iad"))))).message
    assert "`iad`: the call may be processed in self:iad1" in why


def test_a_global_profile_in_a_pool_of_the_eu() -> None:
    found = list(open_ended(scene(pool("fra", "wild"))))
    assert [(f.code, f.severity) for f in found] == [("open_ended_in_boundary", Severity.ERROR)]
    message = found[0].message
    assert "global.anthropic.claude-sonnet-4-6" in message  # the profile
    assert "elsewhere:aws" in message  # where it may go
    assert "main.yaml:9:11" in message  # the line that forbids it
    assert list(open_ended(scene(pool("fra", "wild", grant="worldwide")))) == []


def test_endpoints_nobody_uses() -> None:
    found = {
        (f.code, f.message.split("`")[1]) for f in endpoints_nobody_uses(scene(pool("fra", "iad")))
    }
    assert found == {
        ("endpoint_unused", "fra2"),
        ("endpoint_unused", "zrh"),
        ("endpoint_unused", "wild"),
        ("endpoint_unreachable", "iad"),
    }


def test_endpoints_without_a_price_where_dollars_are_limited() -> None:
    assert list(unpriced(scene(pool("fra", "iad")))) == []
    for limited in (
        "tenants: {t: {limits: {dollars: 20/d}}}",
        "apps: {a: {limits: {dollars: 2/h}}}",
        "",  # of a key
    ):
        more = "models: {m1: {tiers: {large: [fra, iad]}}}\n" + limited
        if "tenants" not in limited:
            more += "\ntenants: {t: {}}"
        priced = FLEET.replace(
            "region: self:iad1,", "region: self:iad1, price: {input: 1, output: 2},"
        )
        loaded = loading(priced + more)
        paying = frozenset() if limited else frozenset({"t"})
        found = list(unpriced(Scene(loaded.policy, loaded.catalog, NOW, paying=paying)))
        assert [(f.code, f.message.split("`")[1]) for f in found] == [("unpriced", "fra")]


def test_rules_nobody_serves() -> None:
    rules = (
        "rules: [{name: jp, process_within: JP}, {name: ch, operated_by: CH},"
        " {name: b, require: baa}, {name: o, obligations: no_batch}]"
    )
    found = list(rules_nobody_serves(scene(pool("fra", more=rules))))
    assert [f.message.split("`")[1] for f in found] == ["jp", "b"]


def test_unknown_facts_and_those_that_age() -> None:
    more = (
        "  dim: {kind: vllm, model: m, region: self:fra1}\n"
        "  far: {kind: bedrock, source: eu-central-1, model: eu.unheard.of, retention_mode: none}\n"
    )
    loaded = loading(FLEET + more)
    found = list(unknown_facts(Scene(loaded.policy, loaded.catalog, NOW)))
    by_name = {f.message.split("`")[1]: f for f in found if f.code == "footprint_unknown"}
    assert "retain, operate not known" in by_name["dim"].message
    assert by_name["dim"].severity is Severity.NOTE
    assert by_name["far"].severity is Severity.ERROR
    fresh = Scene(loaded.policy, loaded.catalog, 1_796_000_000.0)
    soon = Scene(loaded.policy, loaded.catalog, 1_796_000_000.0 + 70 * 86_400.0)
    assert "fact_ages" not in {f.code for f in unknown_facts(fresh)}
    assert "fact_ages" in {f.code for f in unknown_facts(soon)}


def test_preferences_at_odds() -> None:
    odd = "rules: [{name: a, prefer: [CH, EU]}, {name: b, prefer: [EU, CH]}]"
    even = "rules: [{name: a, prefer: [CH, EU]}, {name: b, prefer: [CH]}]"
    found = list(preferences(scene(pool("fra", "zrh", grant="EU + CH", more=odd))))
    assert [f.code for f in found] == ["prefer_conflict"]
    assert list(preferences(scene(pool("fra", "zrh", grant="EU + CH", more=even)))) == []


def test_who_a_preference_leaves_out() -> None:
    rules = (
        "rules: [{name: a, prefer: [CH, DE]}, {name: b, prefer: [CH]}, "
        "{name: c, prefer: [CH, worldwide]}]"
    )
    found = list(left_out_by_preference(scene(pool("fra", "zrh", grant="EU + CH", more=rules))))
    assert [(f.code, f.message.split("`")[1]) for f in found] == [("prefer_leaves_out", "b")]
    assert "none of `fra` lies in" in found[0].message


def test_boundaries_nobody_serves() -> None:
    more = "boundaries: {home: {plus: [EU, CH]}, far: {plus: [JP, AU]}}"
    found = list(boundaries_nobody_serves(scene(pool("fra", more=more))))
    assert [(f.code, f.message) for f in found] == [
        ("boundary_unserved", "no endpoint lies inside boundary `far`")
    ]


def test_plain_ids_that_need_a_profile() -> None:
    more = (
        "  plain: {kind: bedrock, source: eu-central-1, model: %s, retention_mode: none}\n"
        "  whole: {kind: bedrock, source: eu-central-1, model: eu.%s, retention_mode: none}\n"
    )
    loaded = loading(FLEET + more % ("amazon.nova-2-lite-v1:0", "amazon.nova-2-lite-v1:0"))
    (found,) = plain_ids(Scene(loaded.policy, loaded.catalog, NOW))
    assert (found.code, found.severity) == ("needs_profile", Severity.WARNING)
    assert "`eu.amazon.nova-2-lite-v1:0`, `global.amazon.nova-2-lite-v1:0`" in found.message
    served = loading(FLEET + more.replace("eu-central-1", "us-east-1").replace("eu.%s", "us.%s")
                     % ("amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0"))  # fmt: skip
    assert list(plain_ids(Scene(served.policy, served.catalog, NOW))) == []


def test_unknown_facts_are_counted() -> None:
    more = "  dim: {kind: vllm, model: m, region: self:fra1}\n"
    loaded = loading(FLEET + more)
    scene_ = Scene(loaded.policy, loaded.catalog, 1_796_000_000.0)
    (counted,) = [f for f in unknown_facts(scene_) if f.code == "facts_counted"]
    unknown = [f.message for f in unknown_facts(scene_) if f.code == "footprint_unknown"]
    axes = {axis: sum(axis in one.partition(" not known")[0] for one in unknown)
            for axis in ("process", "retain", "operate")}  # fmt: skip
    assert counted.message == (
        f"of {len(scene_.footprints)} endpoints the footprint is not known: "
        + ", ".join(f"{axis} of {n}" for axis, n in axes.items())
    )
    assert axes["retain"] >= 1


def test_stores_lie_where_everything_may_be_retained() -> None:
    found = list(stores(scene(pool("fra"), log="aws:us-east-1", state="aws:eu-west-1")))
    assert [f.message.split("`")[1] for f in found] == ["log"]


def test_a_cache_in_which_tenants_meet_is_said_to_be_shared() -> None:
    one, both = "t: {grant: {process: EU}}", "u: {grant: {process: DE}}, "
    halved = "{kind: vllm, model: m, region: self:fra1, operate: DE, retain: nothing"
    more = (
        f"  pre: {halved}}}\n  split: {halved}, prefill: {{endpoint: pre}}}}\n"
        f"  told: {halved}, cache: shared}}\n  apart: {halved}, cache: tenant}}\n"
        "models: {m1: {tiers: {large: [fra, zrh, wild, split, told, apart]}}}\n"
    )
    alone, together = (f"{more}tenants: {{{who}{one}}}\n" for who in ("", both))
    assert not list(caches_shared(scene(alone)))
    found = list(caches_shared(scene(together)))
    assert [f.message.split("`")[1] for f in found] == ["fra", "split", "pre"]
    assert {(f.code, f.severity) for f in found} == {("cache_shared", Severity.WARNING)}
    assert all("`cache: tenant`" in f.message for f in found)
