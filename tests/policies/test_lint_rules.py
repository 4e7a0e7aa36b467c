"""Each check of rules on a policy that has what it looks for, and on one that hasn't."""

import pytest

from policies.findings import Scene
from policies.lint_rules import (
    empty_intersections,
    meaning_of_grants,
    never_binding,
    on_trial,
    running_out,
    shadowed,
    unused,
)
from tests.policies.samples import NOW, loading

HEAD = """\
attributes: {data: {values: [x, y, z], default: z}, sure: {values: [x, y], from: [key]}}
tenants: {acme: {grant: {process: EU}}, beta: {grant: {process: EU + CH}}}
"""


def scene(rules: str, head: str = HEAD) -> Scene:
    loaded = loading(f"{head}rules: [{rules}]")
    return Scene(loaded.policy, loaded.catalog, NOW)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("when: {all: [{tenant: acme}, {tenant: beta}]}, process_within: DE", "rule_never_applies"),
        ("when: {tenant: acme}, unless: {tenant: acme}, process_within: DE", "rule_never_applies"),
        ("when: {all: [{tier: small}, {tier: large}]}, process_within: DE", "rule_never_applies"),
        ("when: {sure: x}, unless: {sure: x}, process_within: DE", "rule_never_applies"),
        ("when: {sure: x}, unless: {sure: [x, y]}, process_within: DE", "rule_never_applies"),
        ("when: {not: {tenant: [acme, beta]}}, process_within: DE", "rule_never_applies"),
        ("process_within: EEA + CH", "rule_never_binds"),
        ("operated_by: any", "rule_never_binds"),
    ],
)
def test_rules_that_never_bind(rule: str, code: str) -> None:
    assert [f.code for f in never_binding(scene(f"{{name: r, {rule}}}"))] == [code]


@pytest.mark.parametrize(
    "rule",
    [
        "when: {all: [{data: x}, {data: y}]}, process_within: DE",  # an attribute may have both
        "process_within: EU",  # bounds beta
        "process_within: worldwide, require: dpa",
        "when: {tenant: acme}, unless: {sure: x}, process_within: DE",
        "when: {sure: [x, y]}, unless: {sure: x}, process_within: DE",
        "when: {not: {tenant: acme}}, process_within: DE",
    ],
)
def test_rules_that_bind(rule: str) -> None:
    assert list(never_binding(scene(f"{{name: r, {rule}}}"))) == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("{name: a, process_within: DE}, {name: b, when: {data: x}, process_within: EU}", ["b"]),
        ("{name: a, process_within: DE}, {name: b, process_within: DE}", ["b"]),
        (
            (
                "{name: a, when: {data: [x, y]}, process_within: DE},"
                " {name: b, when: {data: x, sure: x}, process_within: EU}"
            ),
            ["b"],
        ),
        ("{name: a, process_within: DE}, {name: b, process_within: EU, require: dpa}", []),
        ("{name: a, when: {data: x}, process_within: DE}, {name: b, process_within: EU}", []),
        ("{name: a, process_within: DE}, {name: b, retain_within: EU}", []),
        ("{name: a, process_within: DE}, {name: b, process_within: EU, operated_by: EU}", []),
        ("{name: a, process_within: DE}, {name: b, prefer: [EU]}", []),
        (
            (
                "{name: a, process_within: DE, dry_run: {until: 2030-01-01}},"
                " {name: b, process_within: EU}"
            ),
            [],
        ),
    ],
)
def test_shadowed(rules: str, expected: list[str]) -> None:
    found = list(shadowed(scene(rules)))
    assert [f.message.split("`")[1] for f in found] == expected


def test_empty_intersections() -> None:
    found = list(empty_intersections(scene("{name: r, when: {data: x}, process_within: CH}")))
    assert [(f.code, "acme" in f.message) for f in found] == [("empty_intersection", True)]
    concerned = scene("{name: r, when: {tenant: beta, data: x}, process_within: CH}")
    assert list(empty_intersections(concerned)) == []


def test_grants_that_are_missing_or_empty() -> None:
    head = "tenants: {a: {}, b: {grant: {process: EU, until: 2020-01-01}}}\n"
    found = list(empty_intersections(scene("", head)))
    assert [f.code for f in found] == ["tenant_without_grant", "grant_empty"]


def test_unused_attributes() -> None:
    found = list(unused(scene("{name: r, when: {data: x}, process_within: EU}")))
    assert [f.message for f in found] == ["no rule asks about attribute `sure`"]


def test_trials_and_reviews() -> None:
    looked = scene(
        "{name: a, process_within: EU, dry_run: {until: 2027-02-14}},"
        " {name: b, process_within: EU, review_by: 2027-02-01},"
        " {name: c, process_within: EU, review_by: 2026-01-01},"
        " {name: d, process_within: EU, review_by: 2030-01-01}"
    )
    assert ["29 days" in f.message for f in on_trial(looked)] == [True]
    assert [f.code for f in running_out(looked)] == ["review_due", "review_overdue"]


def test_what_ends_soon() -> None:
    head = (
        "boundaries: {b: {plus: [EU, {country: GB, until: 2027-02-01}]}}\n"
        "tenants: {acme: {grant: {process: b}}}\n"
        "endpoints: {e: {kind: openai, model: m, url: 'https://api.openai.com', assurances: ["
        "{name: dpa, evidence: x, approved_by: y, until: 2027-02-01},"
        "{name: scc, evidence: x, approved_by: y, until: 2026-02-01},"
        "{name: zdr, evidence: x, approved_by: y}]}}\n"
    )
    assert {f.code for f in running_out(scene("", head))} == {
        "assurance_ends",
        "assurance_lapsed",
        "grant_ends",
        "boundary_ends",
    }


@pytest.mark.parametrize(
    "grant",
    ["{process: EU, retain: {plus: [EU, {country: CH, until: 2027-02-01}]}}",
     "{process: EU, operate: {plus: [EU, {country: US, until: 2027-02-01}]}}"],
)  # fmt: skip
def test_every_axis_of_a_grant_may_end(grant: str) -> None:
    found = list(running_out(scene("", f"tenants: {{acme: {{grant: {grant}}}}}\n")))
    assert [f.code for f in found] == ["grant_ends"]


def test_what_a_rule_allows_may_end() -> None:
    rules = (
        "{name: a, process_within: {plus: [DE, {country: FR, until: 2027-02-01}]}},"
        " {name: b, process_within: {plus: [DE, {country: FR, until: 2030-02-01}]}}"
    )
    assert [(f.code, f.message.split("`")[1]) for f in running_out(scene(rules))] == [
        ("rule_ends", "a")
    ]


def test_what_grants_mean() -> None:
    head = (
        "tenants: {a: {grant: {process: CH}}, b: {grant: {process: worldwide, retain: CH,"
        " operate: CH}}, c: {}}\n"
    )
    assert [f.message for f in meaning_of_grants(scene("", head))] == [
        "tenant `a`: processed in CH; retained there too; operated by anybody",
        "tenant `b`: processed in any place, the unknown ones too; retained CH; operated by CH",
    ]
