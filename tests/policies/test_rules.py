import pytest

from policies.conditions import Is
from policies.model import Policy
from policies.timed import UNKNOWN_TIME
from tests.policies.samples import NOW, TENANT, errors, loaded

DECLARED = """\
attributes:
  home: {format: country}
  data: {values: [public, internal, health]}
"""


def rules(text: str) -> Policy:
    return loaded(f"{DECLARED}{TENANT}rules: [{text}]")


def wrong(text: str) -> str:
    found = errors(f"{DECLARED}{TENANT}rules: [{text}]")
    assert len(found) == 1
    return found[0]


def test_a_match_table_is_one_rule_per_row() -> None:
    policy = rules(
        "{name: r, match: {data: {public: worldwide, health: {process_within: EU, require: dpa}},"
        " otherwise: [EU, CH]}, because: law}"
    )
    assert [(r.name, r.row) for r in policy.rules] == [
        ("r", "public"),
        ("r", "health"),
        ("r", "otherwise"),
    ]
    assert policy.rules[1].require == {"dpa"}
    assert policy.rules[2].condition == Is("data", frozenset({"internal"}))
    assert {r.because for r in policy.rules} == {"law"}


def test_countries_match_by_jurisdiction_and_otherwise_is_the_rest() -> None:
    policy = rules("{name: r, match: {home: {EU: EU, CH: CH}, otherwise: US}}")
    eu, ch, rest = (r.condition for r in policy.rules)
    assert isinstance(eu, Is)
    assert isinstance(ch, Is)
    assert isinstance(rest, Is)
    assert "DE" in eu.values
    assert ch.values == {"CH"}
    assert not rest.values & (eu.values | ch.values)
    assert "US" in rest.values


def test_what_is_common_to_rows_is_in_each() -> None:
    policy = rules(
        "{name: r, when: {purpose: batch}, require: dpa,"
        " match: {data: {public: EU}, otherwise: DE}}"
    )
    assert [r.require for r in policy.rules] == [{"dpa"}, {"dpa"}]
    assert policy.rules[0].condition.describe() == "(purpose: batch) and (data: public)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{name: r, match: {data: {public: EU}}}", "`match` covers no health, internal"),
        ("{name: r, match: {data: {publik: EU}, otherwise: EU}}", "did you mean `public`?"),
        ("{name: r, match: {dat: {public: EU}, otherwise: EU}}", "did you mean `data`?"),
        ("{name: r, match: {data: {public: EU}, home: {DE: EU}}}", "exactly one attribute"),
        ("{name: r, match: EU}", "`match` is"),
        ("{name: r, match: {data: {public: {within: EU}}, otherwise: EU}}", "unknown effect"),
        ("{name: r, match: {data: {public: {}}, otherwise: EU}}", "a row is a boundary"),
        ("{name: r}", "does nothing"),
        ("{name: r, because: law}", "does nothing"),
        ("{name: r, process_within: EU, dry_run: true}", "a trial has an end"),
        ("{name: r, process_within: EU, until: 2027-01-01}", "a rule has no `until`"),
        ("{name: r, require: bba}", "did you mean `baa`?"),
        ("{name: r, prefer: EU}", "an ordered list of boundaries"),
        ("{name: r, prefer: [{country: DE, until: 2027-01-01}]}", "has no `until`"),
        ("{name: r, prefer: {set: [EU]}}", "known: sets, spill"),
        ("{name: r, prefer: {sets: [EU], spill: maybe}}", "true or false"),
        ("{name: r, review_by: later, process_within: EU}", "2027-12-31"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in wrong(text)


def test_prefer() -> None:
    policy = rules("{name: r, prefer: {sets: [CH, EU], spill: true}}, {name: s, prefer: [DE]}")
    first = policy.rules[0].prefer
    assert first is not None
    assert first.spill
    assert first.sets == (policy.atlas.jurisdiction("CH"), policy.atlas.jurisdiction("EU"))


@pytest.mark.parametrize(
    "trial", ["dry_run: {until: 2028-01-01}", "dry_run: true, until: 2028-01-01"]
)
def test_both_ways_to_write_a_trial(trial: str) -> None:
    rule = rules(f"{{name: r, process_within: EU, {trial}}}").rules[0]
    assert rule.is_dry(NOW)
    assert not rule.is_dry(UNKNOWN_TIME)


def test_assurances_that_an_endpoint_holds_are_known() -> None:
    policy = loaded(
        "endpoints: {e: {kind: openai, model: m, urls: [https://api.openai.com],"
        " assurances: [{name: soc2, evidence: x, approved_by: y}]}}\n"
        "rules: [{name: r, require: [soc2, project_residency:eu]}]"
    )
    assert policy.rules[0].require == {"soc2", "project_residency:eu"}


def test_assertions() -> None:
    policy = loaded(
        f"{DECLARED}{TENANT}assert:\n"
        "  - never: {data: health, processed_outside: EU, operated_outside: EU}\n"
        "  - only: {retained_within: EU}\n"
        "ensure: [{for: {tenant: acme}, survives: country, least: 2, horizon: 30d}]\n"
    )
    never, only = policy.statements
    assert never.condition.describe() == "data: health"
    assert never.text == "never: data: health, processed_outside: EU, operated_outside: EU"
    assert never.operate is not None
    assert only.retain is not None
    assert only.process is None
    assert (policy.ensures[0].least, policy.ensures[0].horizon) == (2, 30 * 86400.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("assert: [{never: {tenant: acme}}]", "`never` needs one of processed_outside"),
        ("assert: [{never: {tenant: acme, processed_within: EU}}]", "`never` needs one of"),
        ("assert: [{only: {processed_within: EU, retained_outside: EU}}]", "`only` takes"),
        ("assert: [{sometimes: {}}]", "`never: {…}` or `only: {…}`"),
        ("ensure: [{for: {tenant: acme}, survives: planet}]", "survives"),
        ("ensure: [{for: {tenant: nobody}, survives: region}]", "has no value `nobody`"),
        ("ensure: [{survives: region, models: [x]}]", "model `x` is not defined"),
    ],
)
def test_assertions_refused(text: str, message: str) -> None:
    found = errors(f"{TENANT}{text}\n")
    assert any(message in one for one in found), found
