"""Every filter finds what it names and nothing else, over segments and Parquet alike."""

from pathlib import Path

import pytest

from router.audit import query
from router.audit.query import (
    NAMES,
    QueryRefused,
    QueryUnavailable,
    Question,
    ask,
    export,
    statement,
    write_parquet,
)
from tests.router.audit.asked import fill
from tests.router.audit.logbox import START, LogBox


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await fill(box)
    return box


def found(path: Path, question: Question) -> list[tuple[object, ...]]:
    return [row for batch in ask(path, question).batches for row in batch]


def requests(path: Path, question: Question) -> list[str]:
    return sorted(str(row[NAMES.index("request")]) for row in found(path, question))


AT = round(START * 1e6)
CASES = [
    (Question(), ["q1", "q2", "q3", "q4", "q5", "q6"]),
    (Question(tenant="clinic"), ["q1", "q4", "q6"]),
    (Question(attributes=("data_class=public",)), ["q2", "q3"]),
    (Question(attributes=("data_class=public", "data_class=health")), []),
    (Question(place="self:fra1"), ["q1", "q3"]),
    (Question(place="self:par1"), ["q1", "q2", "q3"]),
    (Question(rule="german"), ["q1", "q4", "q6"]),
    (Question(outcome="no_grant"), ["q4"]),
    (Question(endpoint="par"), ["q2"]),
    (Question(request="q3"), ["q3"]),
    (Question(since=AT + 20_000_000, until=AT + 40_000_000), ["q2", "q3"]),
    (Question(tenant="' OR 1=1 --"), []),
    (Question(tenant="clinic", outcome="ok", place="self:fra1"), ["q1"]),
]


@pytest.mark.parametrize("kind", ["segments", "parquet", "folder of parquet"])
async def test_every_filter(filled: LogBox, tmp_path: Path, kind: str) -> None:
    path = filled.folder
    if kind != "segments":
        folder = tmp_path / "it's here"
        folder.mkdir()
        assert export(filled.folder, folder / "a.parquet") == 6
        path = folder / "a.parquet" if kind == "parquet" else folder
    for question, expected in CASES:
        assert requests(path, question) == expected, question
    assert len(found(path, Question(limit=2))) == 2


async def test_counts(filled: LogBox) -> None:
    assert found(filled.folder, Question(by=("tenant", "outcome"))) == [
        ("", "misdirected", 1),
        ("clinic", "no_grant", 1),
        ("clinic", "ok", 1),
        ("clinic", "open", 1),
        ("shop", "incomplete", 1),
        ("shop", "ok", 1),
    ]
    by_place = found(filled.folder, Question(by=("places",)))
    assert by_place == [("self:par1", 3), ("self:fra1", 2)]


async def test_only_columns_become_part_of_the_question(filled: LogBox) -> None:
    with pytest.raises(QueryRefused, match="is no column"):
        ask(filled.folder, Question(by=("tenant; DROP TABLE log",)))
    text, values = statement(Question(tenant="x'", attributes=("a=b'",)), "log")
    assert "x'" not in text
    assert values == ["x'", "a=b'"]


async def test_an_answer_becomes_a_parquet_file(filled: LogBox, tmp_path: Path) -> None:
    assert write_parquet(ask(filled.folder, Question(tenant="shop")), tmp_path / "a.parquet") == 2
    assert requests(tmp_path / "a.parquet", Question()) == ["q2", "q3"]
    counted = ask(filled.folder, Question(by=("places", "tenant")))
    assert write_parquet(counted, tmp_path / "b.parquet") == 4
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["a.parquet", "b.parquet"]


async def test_a_log_that_can_not_be_read_leaves_no_file(filled: LogBox, tmp_path: Path) -> None:
    segment = next((filled.folder / "eu-1" / "segments").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes() + b"nonsense\n")
    with pytest.raises(Exception, match="not a line of a region log"):
        export(filled.folder, tmp_path / "a.parquet")
    assert list(tmp_path.glob("*a.parquet*")) == []


def test_without_a_log_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(QueryRefused, match="neither a log nor Parquet"):
        ask(tmp_path, Question())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(QueryUnavailable, match="domicile\\[reports\\]"):
        query._library("duckdb")
