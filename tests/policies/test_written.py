import pytest

from policies.timed import UNKNOWN_TIME
from tests.policies.samples import NOW, TENANT, errors, loaded

DECLARED = """\
attributes:
  claimed: {values: [x, y], default: y}
  sure: {values: [x, y], from: [key, tenant]}
"""


def bound(written: str) -> tuple[set[str], set[str]]:
    """Countries reached now, and when everything has lapsed."""
    policy = loaded(f"boundaries: {{bound: {written}}}")
    it = policy.boundaries["bound"]
    return set(it.at(NOW).places.countries), set(it.at(UNKNOWN_TIME).places.countries)


@pytest.mark.parametrize(
    ("written", "now", "lapsed"),
    [
        ("DE + FR", {"DE", "FR"}, {"DE", "FR"}),
        ("[DE, FR]", {"DE", "FR"}, {"DE", "FR"}),
        ("{plus: [DE, {country: GB, until: 2031-12-27}]}", {"DE", "GB"}, {"DE"}),
        ("{plus: EU, and: [DE + FR, DE + IT]}", {"DE"}, {"DE"}),
        ("{plus: DE + FR, minus: FR}", {"DE"}, {"DE"}),
        ("{within: DE + FR, until: 2031-01-01}", {"DE", "FR"}, set()),
        ("{plus: [DE, FR], until: 2031-01-01}", {"DE", "FR"}, set()),
        ("{jurisdiction: UK}", {"GB"}, {"GB"}),
        ("{region: aws:eu-central-1}", {"DE"}, {"DE"}),
        ("{subdivision: CA-QC}", {"CA"}, {"CA"}),
        ("{partition: aws-us-gov}", {"US"}, {"US"}),
        ("{plus: {provider: aws}, and: DE}", {"DE"}, {"DE"}),
        ("{boundary: other}, other: CH", {"CH"}, {"CH"}),
        ("other + DE, other: {country: CH, until: 2031-01-01}", {"CH", "DE"}, {"DE"}),
    ],
)
def test_boundaries(written: str, now: set[str], lapsed: set[str]) -> None:
    assert bound(written) == (now, lapsed)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("worldwide - o, o: {country: GB, until: 2031-01-01}", "`o` that is taken away has an `un"),
        ("EU - (DE + o), o: {country: GB, until: 2031-01-01}", "has an `until`"),
        ("worldwide - p, p: o + DE, o: {country: GB, until: 2031-01-01}", "has an `until`"),
        ("{plus: EU, minus: {country: DE, until: 2031-01-01}}", "has an `until`"),
        ("{minus: EU}", "`minus` needs `plus`"),
        ("{country: DE, region: x}", "`region` is not expected here"),
        ("{plus: EU, until: never}", "2027-12-31"),
        ("[]", "an empty boundary"),
        ("{country: [DE]}", "needs one word"),
        ("EU -", "a word is missing"),
        ("{country: XX}", "`XX` is not known"),
    ],
)
def test_boundaries_refused(written: str, message: str) -> None:
    found = errors(f"boundaries: {{bound: {written}}}")
    assert len(found) == 1
    assert message in found[0]


def test_operators_are_countries() -> None:
    policy = loaded(
        "boundaries: {allies: EU + CH, here: self:x1}\nregions: {self:x1: {country: DE}}\n"
        + TENANT
        + "rules: [{name: r, operated_by: allies}]"
    )
    assert "here" not in policy.operators
    operate = policy.rules[0].operate
    assert operate is not None
    assert "CH" in operate.at(NOW).codes
    assert any("is not known" in e or "place" in e for e in errors(
        "boundaries: {here: self:x1}\nregions: {self:x1: {country: DE}}\n"
        "rules: [{name: r, operated_by: here}]"
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "described"),
    [
        ("when: {sure: x}", "sure: x"),
        ("when: {sure: [x, y], claimed: x}", "(sure: [x, y]) and (claimed: x)"),
        ("when: {any: [{sure: x}, {claimed: x}]}", "(sure: x) or (claimed: x)"),
        ("when: {not: {sure: x}}", "not (sure: x)"),
        ("unless: {sure: x}", "not (sure: x)"),
        ("when: {claimed: x}, unless: {sure: x}", "(claimed: x) and (not (sure: x))"),
        ("when: {tier: small, provider: aws}", "(tier: small) and (provider: aws)"),
        ("unless: {tier: small}", "not (tier: small)"),
        ("when: {tenant: acme}", "tenant: acme"),
    ],
)
def test_conditions(condition: str, described: str) -> None:
    policy = loaded(f"{DECLARED}{TENANT}rules: [{{name: r, {condition}, process_within: EU}}]")
    assert policy.rules[0].condition.describe() == described


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("unless: {claimed: x}", "could lift the rule by claiming"),
        ("when: {not: {claimed: x}}", "could lift the rule by claiming"),
        ("when: {any: [{sure: x}, {not: {all: [{sure: y}, {claimed: x}]}}]}", "could lift"),
        ("when: {not: {not: {claimed: x}}}", "could lift"),
        ("when: {sur: x}", "`sur` is not declared; did you mean `sure`?"),
        ("when: {baa: held}", "`baa` is not declared"),
        ("when: {sure: z}", "has no value `z`; use one of x, y"),
        ("when: {tenant: acm}", "did you mean `acme`?"),
        ("when: {purpose: bach}", "did you mean `batch`?"),
        ("when: {any: {sure: x}}", "needs a list of conditions"),
        ("when: {}", "a condition is a mapping"),
        ("when: [x]", "a condition is a mapping"),
        ("when: {sure: []}", "needs a value"),
        ("when: {sure: {x: y}}", "needs a value"),
    ],
)
def test_conditions_refused(condition: str, message: str) -> None:
    found = errors(f"{DECLARED}{TENANT}rules: [{{name: r, {condition}, process_within: EU}}]")
    assert len(found) == 1
    assert message in found[0]
