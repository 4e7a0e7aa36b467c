"""What lint finds, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from policies.findings import Finding


def finding_json(found: Finding) -> dict[str, object]:
    """One finding: its severity, stable code, message, and place."""
    return {
        "severity": found.severity.name.lower(),
        "code": found.code,
        "message": found.message,
        "place": None if found.mark is None else str(found.mark),
    }


def print_findings(findings: Iterable[Finding]) -> None:
    """Warnings and notes, a line each; errors are the command's own to print."""
    from policies.findings import Severity

    for found in findings:
        if found.severity is not Severity.ERROR:
            click.echo(str(found))
