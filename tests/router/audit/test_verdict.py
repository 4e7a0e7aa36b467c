import pytest

from router.audit.reading import Place
from router.audit.verdict import Finding, LogVerdict, Verdict, merged

FINDING = Finding("altered", Place("eu-1", "s", 2, 1), "why")


@pytest.mark.parametrize(
    ("log", "statuses"),
    [
        (LogVerdict("l", 5, 5, 0, [], []), ["intact"]),
        (LogVerdict("l", 5, None, 0, [], []), ["consistent, unanchored"]),
        (LogVerdict("l", 5, 3, 0, [], []), ["unanchored tail: 2"]),
        (LogVerdict("l", 5, 3, 9, [], []), ["unanchored tail: 2", "torn tail"]),
        (LogVerdict("l", 5, 5, 9, [], []), ["torn tail"]),
        (LogVerdict("l", 5, None, 0, [FINDING], []), ["1 findings"]),
        (LogVerdict("l", 5, 3, 0, [FINDING], []), ["1 findings", "unanchored tail: 2"]),
    ],
)
def test_the_words_of_a_verdict(log: LogVerdict, statuses: list[str]) -> None:
    assert log.statuses == statuses
    verdict = Verdict([log, log], [], [])
    assert verdict.statuses == statuses
    assert verdict.ok == (not log.findings)


def test_findings_of_the_folder_count() -> None:
    verdict = Verdict([], [FINDING], [])
    assert not verdict.ok
    assert verdict.all_findings == [FINDING]
    assert verdict.statuses == ["1 findings"]
    assert str(FINDING) == "altered: eu-1/segments/s:2 (index 1): why"


def test_lines_of_a_list_with_one_fault_are_one_finding() -> None:
    def at(line: int, detail: str = "bad", index: int = -1) -> Finding:
        return Finding("roster", Place("roster.jsonl", "", line, index), detail)

    lines = [at(1), at(2), at(2), at(3), at(5), at(6, "worse"), at(7, "worse", 3)]
    assert [str(one) for one in merged(lines)] == [
        "roster: roster.jsonl:1: lines 1 to 3: bad", "roster: roster.jsonl:5: bad",
        "roster: roster.jsonl:6: worse", "roster: roster.jsonl:7 (index 3): worse",
    ]  # fmt: skip
