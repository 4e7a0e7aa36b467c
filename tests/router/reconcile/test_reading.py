from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from router.assess.records import mapping, text
from router.reconcile import reading
from router.reconcile.reading import (
    Fault,
    Found,
    TooLarge,
    Unpacked,
    at,
    files,
    lines,
    objects,
)


def told(path: Path) -> list[object]:
    return [
        (dict(one.value), one.where.number) if isinstance(one, Found) else str(one.where)
        for one in objects(path)
    ]


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_lines_plain_and_packed(tmp_path: Path) -> None:
    text = '{"a": 1}\n\n  \n{"a": 2}'
    for name, data in (("p", text.encode()), ("z.gz", gzip.compress(text.encode()))):
        assert told(put(tmp_path / name, data)) == [({"a": 1}, 1), ({"a": 2}, 4)]


def test_a_bad_line_is_named_and_the_next_is_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", '{"a": 1}\n{"a": \n[1]\n7\n{"a": 2}\n')
    bad = [f"{path}:{line}" for line in (2, 3, 4)]
    assert told(path) == [({"a": 1}, 1), *bad, ({"a": 2}, 5)]


def test_an_export_of_cloudwatch_has_a_time_before_each(tmp_path: Path) -> None:
    path = put(tmp_path / "a", '2026-11-29T20:04:20.123Z {"a": 1}\n2026-11-29T20:04:21.123Z {}\n')
    assert told(path) == [({"a": 1}, 1), ({}, 2)]


@pytest.mark.parametrize("name", ["events", "logEvents"])
def test_answers_of_cloudwatch_hold_records_as_text(tmp_path: Path, name: str) -> None:
    messages: list[object] = [json.dumps({"a": 1}), "no JSON", "[1]", 7, json.dumps({"a": 2})]
    answer = {name: [{"timestamp": 5, "message": one} for one in messages], "more": [], "next": "x"}
    pretty = put(tmp_path / "p", json.dumps(answer, indent=4))
    bad = [f"{pretty}:{record}" for record in (2, 3, 4)]
    assert told(pretty) == [({"a": 1}, 1), *bad, ({"a": 2}, 5)]
    line = put(tmp_path / "l", json.dumps(answer))
    assert told(line) == [({"a": 1}, 1), *[f"{line}:1"] * 3, ({"a": 2}, 1)]
    other = put(tmp_path / "o", json.dumps({name: [{"kind": "x"}]}))
    assert told(other) == [({name: [{"kind": "x"}]}, 1)], "somebody else's word"


@pytest.mark.parametrize("name", ["records", "value", "entries"])
def test_documents(tmp_path: Path, name: str) -> None:
    held = [{"a": 1}, {"a": 2}]
    once = [({"a": 1}, 1), ({"a": 2}, 2)]
    pretty = put(tmp_path / "p", json.dumps(held, indent=2))
    assert told(pretty) == once
    assert told(put(tmp_path / "l", json.dumps(held))) == once
    assert told(put(tmp_path / "w", json.dumps({name: held}, indent=1))) == once
    single = objects(put(tmp_path / "o", json.dumps({name: held})))
    assert [one.value for one in single if isinstance(one, Found)] == held


def test_a_broken_document_keeps_what_came_before(tmp_path: Path) -> None:
    path = put(tmp_path / "a", '[\n{"a": 1},\n{"a": ')
    first, fault = objects(path)
    assert isinstance(first, Found)
    assert isinstance(fault, Fault)
    assert str(fault.where) == f"{path}:2"


def test_a_packed_bomb_is_read_to_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "a.gz", gzip.compress(b"\n" * (9 << 20)))
    with path.open("rb") as file, pytest.raises(TooLarge, match="more than 1048576 bytes"):
        assert sum(map(len, Unpacked(file, 1 << 20))) < 2 << 20
    assert list(lines(path)) == []
    monkeypatch.setattr("router.reconcile.reading.Unpacked.__init__.__defaults__", (1 << 20,))
    (fault,) = lines(path)
    assert isinstance(fault, Fault)
    assert "unpacks to more than" in fault.reason


def test_an_enormous_line_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE", 1000)
    long = b'{"a": "' + b"x" * 600_000 + b'"}'
    path = put(tmp_path / "a", b'{"a": 1}\n' + long + b'\n{"a": 2}\n' + long)
    assert told(path) == [({"a": 1}, 1), f"{path}:2", ({"a": 2}, 3), f"{path}:4"]


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b'{"a": 1}\n{"a": 2}\n' * 1000)[:-9],
        gzip.compress(b'{"a": 1}\n')[:12] + b"\x00\xff\xff",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=["cut", "garbled", "deep list", "deep object"],
)
def test_what_can_t_be_read_is_a_fault_with_a_place(tmp_path: Path, data: bytes) -> None:
    path = put(tmp_path / "a", data)
    *_, last = objects(path)
    assert isinstance(last, Fault)
    assert last.where.file == str(path)


def test_other_encodings_and_odd_values_raise_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "a", b'\xff\xfe{"a": 1}\n{"a": "\xff"}\n{"a": "\\ud800"}\n')
    found = list(objects(path))
    assert len(found) == 3
    assert isinstance(found[0], Fault)
    assert text("\ud800") == "?"


def test_folders_hold_files_no_links(tmp_path: Path) -> None:
    put(tmp_path / "b", "")
    (tmp_path / "sub").mkdir()
    put(tmp_path / "sub" / "a", "")
    put(tmp_path / ".hidden", "")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert list(files(tmp_path)) == [tmp_path / "b", tmp_path / "sub" / "a"]
    assert list(files(tmp_path / "b")) == [tmp_path / "b"]


def test_a_file_that_is_gone_is_a_fault(tmp_path: Path) -> None:
    (fault,) = lines(tmp_path / "gone")
    assert isinstance(fault, Fault)
    assert "No such file" in fault.reason


def test_values_of_other_kinds_are_none(tmp_path: Path) -> None:
    assert (text(5), mapping([1]), at({"a": [1]}, "a", "b")) == (
        "",
        {},
        None,
    )
    assert at({"a": {"b": 7}}, "a", "b") == 7
    assert reading.reason(OSError(2, "gone")) == "gone"
    assert reading.reason(RecursionError()) == "RecursionError"
