"""Files → policy: the design's example as printed, and every kind of mistake with its place."""

import pytest

from policies.gathered import PolicyFile
from policies.loader import load
from policies.model import Rate
from regions.model import Tier
from tests.policies.samples import EXAMPLE, TENANT, errors, example, loaded


def test_the_example_of_the_design_loads_as_printed() -> None:
    policy = example().policy
    clinic = policy.tenants["clinic"]
    assert clinic.attributes == {"sector": {"health"}}
    assert clinic.limits.requests == Rate(600, 60.0)
    assert clinic.limits.tokens == Rate(400_000, 60.0)
    assert (clinic.limits.concurrency, clinic.weight) == (64, 2)
    assert clinic.models == frozenset({"assistant"})
    assert policy.apps["crm"].trusted == {"data_class"}
    assert policy.declared["sector"].sources == {"tenant"}
    assert policy.models["assistant"].highest is Tier.LARGE
    assert [e.name for _, e in policy.candidates("assistant")] == [
        "fra-small",
        "fra-large",
        "sonnet-eu",
    ]
    sonnet = policy.endpoints["sonnet-eu"]
    assert (sonnet.source, sonnet.settings) == ("aws:eu-central-1", {"retention_mode": "none"})
    assert sonnet.assurances[0].until == 1830211200.0
    assert policy.endpoints["fra-small"].urls == ("http://small.fra1.internal:8000",)
    assert policy.endpoints["fra-large"].settings == {"replicas": "kubernetes:llm/large"}
    assert str(policy.rules[0].mark) == "main.yaml:19:5"
    assert policy.statements[0].process is not None
    assert policy.ensures[0].unit == "region"


def test_own_regions_are_in_the_catalog() -> None:
    found = example()
    assert found.catalog.atlas is found.policy.atlas
    assert found.policy.atlas.region("self:fra1").country == "DE"


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ("tenants: {a: {grant: {process: EUU}}}", "1:32: `EUU` is not known; did you mean `EU`?"),
        ("tenants: {a: {grnt: {}}}", "1:15: unknown key `tenants.a.grnt`"),
        ("boundaries: {EU: DE}", "1:18: `EU` is a built-in word"),
        ("boundaries: {a: b, b: a + EU}", "defined by itself: a, b"),
        ("boundaries: {a: a}", "defined by itself: a"),
        ("regions: {self:x: {country: UK}}", "the United Kingdom is `GB`"),
        ("regions: {aws:x: {country: DE}}", "must be `self:`"),
        ("models: {m: {tiers: {small: [nope]}}}", "endpoint `nope` is not defined"),
        ("models: {m: {tiers: {huge: [x]}}}", "models.m.tiers"),
        ("models: {m: {tiers: {small: []}}}", "has no endpoint"),
        ("tenants: {a: {models: [nope]}}", "model `nope` is not defined"),
        ("apps: {a: {trusted: [nope]}}", "attribute `nope` is not declared"),
        ("models: {m: {timeouts: {answer: 0s}, tiers: {small: [x]}}}", "should be greater than 0"),
        ("models: {m: {timeouts: {first_token: 0ms}}}", "should be greater than 0"),
        ("tenants: {a: {weight: 0}}", "greater than or equal to 1"),
        ("tenants: {a: {limits: {requests: many}}}", "600/min"),
        ("tenants: {a: {limits: {dollars: 20}}}", "20/h"),
        ("apps: {a: {limits: {dollars: 20/min}}}", "20/h"),
        ("apps: {a: {limits: {token: 20/min}}}", "unknown key `apps.a.limits.token`"),
        ("tenants: {a: {grant: {process: EU, until: soon}}}", "2027-12-31"),
        ("tenants: {a: {grant: {process: EU, until: 2027-01-01T10:00:00}}}", "needs its zone"),
        ("rules: [{name: r, process_within: EU}, {name: r, require: dpa}]", "stands twice"),
        ("rules: [{process_within: EU}]", "is missing"),
        ("- a", "valid"),
        ("a: [", "not YAML"),
        ("tenants: {a: &x {}}", "anchor"),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(baseline: str, expected: str) -> None:
    found = errors(baseline)
    assert any(expected in one for one in found), found
    assert all(one.startswith("main.yaml:") for one in found)


def test_all_errors_at_once_over_all_files() -> None:
    found = errors("tenants: {a: {grant: {process: X1}}, b: {grant: {process: X2}}}", "rules: 1")
    assert len(found) == 3
    assert found[-1].startswith("rules.yaml:1:8")


@pytest.mark.parametrize("broken", ["apps: {a: {trust: 1}}\n", "a: ["])
def test_names_of_a_file_that_can_not_be_read_are_not_told_as_undefined(broken: str) -> None:
    rules = "rules: [{name: r, when: {data_class: health}, process_within: EU}]"
    declared = TENANT + "attributes: {data_class: {values: [health]}}\n"
    assert loaded(declared, rules).rules
    (found,) = errors(declared + broken, rules)
    assert found.startswith("main.yaml:")


@pytest.mark.parametrize(
    "section",
    ["regions", "apps", "tenants", "models", "endpoints", "attributes", "boundaries", "assert"],
)
def test_rule_files_only_narrow(section: str) -> None:
    found = errors(TENANT, f"{section}: {{}}\nrules: []\n")
    message = f"`{section}` can widen what is allowed; move it to a baseline file"
    assert found == [f"rules.yaml:1:1: {message}"]


def test_rule_files_add_rules_and_each_keeps_its_place() -> None:
    policy = loaded(TENANT, "rules:\n  - {name: r, process_within: EU}\n")
    assert str(policy.rules[0].mark) == "rules.yaml:2:5"
    assert not policy.rules[0].baseline


def test_a_name_in_two_files_is_refused() -> None:
    files = [PolicyFile(n, TENANT.encode()) for n in ("a.yaml", "b.yaml")]
    with pytest.raises(ValueError, match=r"b.yaml:1:17: `acme` stands twice; the other is at a"):
        load(files)


def test_the_digest_is_over_the_meaning() -> None:
    digest = example().policy.digest
    assert loaded("# a comment\n" + EXAMPLE).digest == digest
    assert loaded(EXAMPLE.replace("default: internal", "default: public")).digest != digest
    assert loaded(EXAMPLE, "rules: [{name: r, process_within: DE}]").digest != digest
    assert loaded(EXAMPLE.replace("lat: 50.11", "lat: 50.12")).digest != digest
    moved = EXAMPLE.replace("rules:\n", "rules:\n  - {name: a, require: [dpa]}\n")
    last = EXAMPLE.replace("assert:", "  - {name: a, require: [dpa]}\nassert:")
    assert loaded(moved).digest == loaded(last).digest
