"""What a log may say of its own lines that are not here."""

import pytest

from router.audit.absence import Absence
from router.audit.lines import Value
from router.audit.note import Certificate, PublicKey
from router.audit.reading import Place

AT = Place("eu-1", "0.jsonl", 1, 0)
SAID: dict[str, Value] = {
    "first": 0,
    "end": 9,
    "key": "p/eu-1/000/segment.jsonl.zst",
    "until": 86_400,
}


def absence() -> Absence:
    found = Absence()
    found.lines(AT, 0, 9)
    found.followed(5_000_000)
    return found


def test_an_entry_below_a_signed_head_makes_it_no_finding() -> None:
    found = absence()
    found.released(12, SAID)
    assert list(found.findings(13)) == []
    assert [one.fault for one in found.findings(12)] == ["segment"], "nobody signed that entry"
    [notice] = found.notices()
    assert notice.startswith("9 lines are not here: released, and sealed below `p/eu-1/`")
    assert "1970-01-02" in notice


@pytest.mark.parametrize("other", [{"first": 1}, {"end": 8}, {"first": "0"}])
def test_another_entry_says_nothing_of_these_lines(other: dict[str, Value]) -> None:
    found = absence()
    found.released(12, {**SAID, **other})
    assert [one.place for one in found.findings(13)] == [AT]
    assert list(found.notices()) == []


def test_a_certificate_may_be_among_what_is_not_here() -> None:
    def since(begins: int) -> Certificate:
        return Certificate("eu-1", PublicKey(bytes(32)), begins, begins + 60, bytes(4), bytes(64))

    found = absence()
    assert found.hides(since(5), 20)
    assert not found.hides(since(6), 20), "what is not here is older than it"
    assert not found.hides(since(5), 0)
    assert found.count == 9


def test_an_entry_stands_for_what_went_before_its_own_lines() -> None:
    found = absence()
    found.released(30, {**SAID, "first": 9, "end": 20})
    assert list(found.findings(31)) == []
    assert [one.place for one in found.findings(30)] == [AT], "nobody signed that entry"
    assert next(found.notices()).startswith("9 lines are not here: released")
    later = Place("eu-1", "20.jsonl", 1, 20)
    found.lines(later, 20, 25)
    assert [one.place for one in found.findings(31)] == [later], "it is of older lines"


@pytest.mark.parametrize("until", [None, "x", 1 << 52])
def test_a_date_that_is_none_leaves_the_rest(until: Value) -> None:
    found = absence()
    found.released(12, {**SAID, "until": until})
    [notice] = found.notices()
    assert "sealed below `p/eu-1/`; `audit restore` brings them" in notice


def test_an_entry_without_lines_stands_for_none() -> None:
    found = absence()
    found.released(12, {**SAID, "first": 9, "end": 9})
    assert [one.place for one in found.findings(13)] == [AT]
