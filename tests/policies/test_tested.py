"""What cases say of a policy, as findings."""

from __future__ import annotations

from policies.cases import Report, Suite, run
from policies.findings import Severity
from policies.tested import findings, uncovered
from tests.policies.samples import EXAMPLE, loading

HEAD = "now: 2026-12-01\nrouter: aws:eu-central-1\ncases:\n"
SILENT = "{name: silent, request: {tenant: clinic, model: assistant}, expect: {%s}}"
SICK = (
    "{name: sick, request: {tenant: clinic, model: assistant, headers: {data_class: health}}, "
    "expect: {applied: [health-in-eu]}}"
)


def report(*cases: str) -> Report:
    text = HEAD + "".join(f"  - {case}\n" for case in cases)
    return run(loading(EXAMPLE), Suite.parse(text, "x.cases.yaml"))


def test_a_case_that_fails_is_an_error_at_its_place() -> None:
    failed, ran = findings([report(SILENT % "endpoints: [x]", SICK)])
    assert (failed.severity, failed.code) == (Severity.ERROR, "case_failed")
    assert str(failed.mark) == "x.cases.yaml:4:5"
    assert failed.message.startswith("case `silent`: endpoints: expected ['x'], got")
    assert (ran.severity, ran.code) == (Severity.NOTE, "cases_ran")
    assert ran.message == "2 cases ran; they take 2 of 2 branches of rules"


def test_files_cover_together() -> None:
    apart = [report(SILENT % ""), report(SICK)]
    assert [one.uncovered for one in apart] == [
        ("health-in-eu: applies",),
        ("health-in-eu: does not apply",),
    ]
    assert uncovered(apart) == ()
    (ran,) = findings(apart[:1])
    assert ran.message == (
        "1 cases ran; they take 1 of 2 branches of rules; no case for `health-in-eu: applies`"
    )


def test_without_cases_there_is_nothing_to_say() -> None:
    assert uncovered([]) == ()
    assert list(findings([])) == []
