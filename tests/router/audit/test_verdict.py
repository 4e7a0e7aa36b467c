import pytest

from router.audit.reading import Place
from router.audit.verdict import Finding, LogVerdict, Verdict

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
