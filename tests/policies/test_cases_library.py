"""Every policy of the library loads, has no error, says its legal basis, and passes its cases."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policies.cases import Suite, run
from policies.findings import Severity
from policies.gathered import PolicyFile
from policies.lint import lint
from policies.loader import Loaded, load

LIBRARY = Path(__file__).resolve().parents[2] / "policies" / "library"
NAMES = sorted(p.stem for p in LIBRARY.glob("*.yaml") if not p.stem.endswith(".cases"))
WANTED = {
    "gdpr-eu-only", "eu-plus-uk", "hipaa", "phi-us-public-worldwide", "swiss-bank",
    "works-council", "quebec", "dora-critical", "dpdp-india", "incident-override", "tenant-move",
    "saas-per-user-country", "eea", "uk", "switzerland", "us-commercial", "us-govcloud",
    "canada", "australia", "japan", "worldwide-small-first",
}  # fmt: skip
NOW = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
# Policies that show, on purpose, an endpoint that must never be used.
SHOWN = {"australia": {"open_ended_in_boundary"}}


def loaded(name: str) -> Loaded:
    path = LIBRARY / f"{name}.yaml"
    return load([PolicyFile(path.name, path.read_bytes())])


def test_nothing_is_missing() -> None:
    assert set(NAMES) == WANTED


def test_the_table_of_contents_is_complete() -> None:
    listed = (LIBRARY / "README.md").read_text()
    for name in NAMES:
        said = (LIBRARY / f"{name}.yaml").read_text().splitlines()[0]
        assert f"| [{name}]({name}.yaml) | {said.removeprefix('# ').rstrip('.')} |" in listed


@pytest.mark.parametrize("name", NAMES)
def test_cases_pass_and_take_every_branch(name: str) -> None:
    path = LIBRARY / f"{name}.cases.yaml"
    report = run(loaded(name), Suite.parse(path.read_bytes(), path.name))
    assert [(r.name, r.problems) for r in report.results if r.problems] == []
    assert report.passed
    assert report.uncovered == ()
    assert report.coverage == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_says_why_and_the_file_says_where_to_read_it(name: str) -> None:
    assert all(rule.because for rule in loaded(name).policy.rules)
    head = (LIBRARY / f"{name}.yaml").read_text().split("\n\n")[0]
    assert "# Basis:" in head
    assert "The log must show" in head
    assert "https://" in head or "none in law" in head


@pytest.mark.parametrize("name", NAMES)
def test_no_errors_of_lint(name: str) -> None:
    found = lint(loaded(name), NOW)
    errors = {f.code for f in found if f.severity is Severity.ERROR}
    silent_refused = {"saas-per-user-country": {"model_unserved"}}
    assert errors == SHOWN.get(name, silent_refused.get(name, set()))
