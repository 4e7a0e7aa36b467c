import pytest

from policies.model import Hedge
from tests.policies.samples import TENANT, errors, loaded


def test_an_attribute_only_records_carry_is_declared_by_them() -> None:
    policy = loaded(
        "tenants: {a: {attributes: {sector: health}}, b: {attributes: {sector: [bank, health]}}}\n"
        "apps: {x: {attributes: {channel: web}}}"
    )
    assert policy.declared["sector"].values == {"health", "bank"}
    assert policy.declared["sector"].sources == {"tenant"}
    assert policy.declared["channel"].sources == {"app"}
    assert not policy.declared["sector"].claimable


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("attributes: {tenant: {values: [a]}}", "`tenant` is built in"),
        ("attributes: {tier: {values: [a]}}", "`tier` is built in"),
        ("attributes: {otherwise: {values: [a]}}", "is built in"),
        ("attributes: {a: {}}", "needs either `values` or a `format`"),
        ("attributes: {a: {values: [x], format: country}}", "needs either"),
        ("attributes: {a: {values: [abcd], default: abce}}", "did you mean `abcd`?"),
        ("attributes: {a: {values: [x], from: [heder]}}", "did you mean `header`?"),
        ("attributes: {a: {values: [x], from: ['classifier:']}}", "is no source"),
        (
            "attributes: {a: {values: [x], from: [key]}}\napps: {c: {trusted: a}}",
            "add `app` to its `from`",
        ),
        (
            "attributes: {a: {values: [x], from: [key]}}\ntenants: {t: {attributes: {a: x}}}",
            "`a` can't come from `tenant`",
        ),
        (
            "attributes: {a: {values: [x]}}\ntenants: {t: {attributes: {a: y}}}",
            "`a` has no value `y`",
        ),
        ("tenants: {t: {attributes: {purpose: x}}}", "`purpose` is not declared"),
        ("boundaries: {worldwide: EU}", "is a built-in word"),
        ("boundaries: {eu: DE}", "is a built-in word"),
        ("tenants: {t: {grant: {process: EU, operate: aws:us-east-1}}}", "bounded by countries"),
    ],
)
def test_mistakes(baseline: str, message: str) -> None:
    found = errors(baseline)
    assert any(message in one for one in found), found


def test_a_bad_boundary_is_one_error_not_one_per_user() -> None:
    found = errors("boundaries: {x1: EUU, x2: x1 + DE}\nrules: [{name: r, process_within: x2}]")
    assert len(found) == 1


def test_a_grant_that_ends_ends_on_every_axis() -> None:
    policy = loaded("tenants: {t: {grant: {process: EU, operate: EU, until: 2027-02-01}}}")
    grant = policy.tenants["t"].grant
    assert grant is not None
    end = grant.process.ends[0]
    assert grant.retain.at(end).is_empty
    assert grant.operate.at(end).mask == 0
    assert grant.process.at(end - 1) == policy.atlas.jurisdiction("EU")


def test_countries_as_values() -> None:
    policy = loaded("attributes: {home: {format: country, default: DE}}")
    assert "CH" in policy.declared["home"].values
    assert errors("attributes: {home: {format: country, default: UK}}")


def test_a_model_hedges_when_it_says_so() -> None:
    fleet = "{kind: vllm, region: 'self:a', model: m, operate: [DE], url: 'http://a'}"
    policy = loaded(
        "regions: {'self:a': {country: DE}}\n"
        f"endpoints: {{e: {fleet}}}\n"
        "models: {m: {hedge: {after: 500ms, at_most: 0.1}, tiers: {large: [e]}},\n"
        "  n: {hedge: {}, tiers: {large: [e]}}, o: {tiers: {large: [e]}}}"
    )
    assert policy.models["m"].hedge == Hedge(0.5, 0.1)
    assert policy.models["n"].hedge == Hedge(None, 0.05)
    assert policy.models["o"].hedge is None


@pytest.mark.parametrize("text", ["EU -far", "EU - far", "(EU -far)", "EU - (far)", "EU &far"])
def test_a_boundary_may_stand_before_those_it_names(text: str) -> None:
    boundaries = f"boundaries: {{a: {{plus: ['{text}']}}, far: {{plus: [DE]}}}}\n"
    names = loaded(boundaries + TENANT).boundaries
    germany = names["far"].values[0]
    a = names["a"].values[0]
    assert (a & germany).is_empty != ("&" in text)
    assert not a.is_empty


def test_a_long_chain_of_boundaries_is_read() -> None:
    links = "".join(f"  b{n}: {{plus: [b{n + 1}]}}\n" for n in range(400))
    names = loaded(f"boundaries:\n{links}  b400: {{plus: [EU]}}\n{TENANT}").boundaries
    assert names["b0"] == names["b400"]
