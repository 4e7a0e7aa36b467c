"""What lint finds, in words and as JSON."""

import pytest

from policies.findings import Finding, Severity
from regions.document import Mark
from router.cli.findings import finding_json, print_findings

FOUND = Finding(Severity.WARNING, "no_fallback", "only one endpoint", Mark("main.yaml", 10, 3))


def test_as_json() -> None:
    assert finding_json(FOUND) == {
        "severity": "warning",
        "code": "no_fallback",
        "message": "only one endpoint",
        "place": "main.yaml:10:3",
    }
    assert finding_json(Finding(Severity.NOTE, "x", "y"))["place"] is None


def test_errors_are_left_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([Finding(Severity.ERROR, "bad", "an error"), FOUND])
    assert capsys.readouterr().out == "main.yaml:10:3: warning: only one endpoint (no_fallback)\n"
