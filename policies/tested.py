"""What running case files says of a policy: failures, and what no case took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.cases import Report
from policies.findings import Finding, Severity


def uncovered(reports: Sequence[Report]) -> tuple[str, ...]:
    """The branches of rules that no case of any file took, sorted."""
    if not reports:
        return ()
    return tuple(sorted(frozenset.intersection(*(frozenset(r.uncovered) for r in reports))))


def findings(reports: Sequence[Report]) -> Iterator[Finding]:
    """An error for each case that fails, and a note of how much the cases cover together."""
    for report in reports:
        for result in report.results:
            if result.problems:
                message = f"case `{result.name}`: {'; '.join(result.problems)}"
                yield Finding(Severity.ERROR, "case_failed", message, result.mark)
    if not reports:
        return
    left, branches = uncovered(reports), reports[0].branches
    message = (
        f"{sum(len(report.results) for report in reports)} cases ran; they take "
        f"{branches - len(left)} of {branches} branches of rules"
    )
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        message += f"; no case for {', '.join(f'`{one}`' for one in left[:3])}{more}"
    yield Finding(Severity.NOTE, "cases_ran", message)
