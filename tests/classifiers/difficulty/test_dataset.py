"""Rows from every format; hashed rows train like text rows; a bad row is named by its line."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.difficulty import dataset
from classifiers.difficulty.dataset import Example, RowError, binary, features_row, parted, read
from classifiers.difficulty.features import extract
from classifiers.view import PromptView

ROW = {"prompt": "What is 2+2?", "weak": "w", "strong": "s", "y_weak": 0.4, "y_strong": 1}


def table(path: Path, *rows: dict[str, object]) -> Path:
    with path.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write(path: Path, *rows: object) -> Path:
    text = "\n".join(json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    (found,) = read([write(tmp_path / name, ROW)])
    assert (found.pair, found.y_weak, found.y_strong, found.source) == ("w:s", 0.4, 1.0, "a")
    assert found.view.question == "What is 2+2?"
    assert binary([found])[0].y_weak == 0.0


@pytest.mark.parametrize("lacking", [True, False])
def test_a_parquet_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: bool
) -> None:
    """Not all that Arrow raises is a ValueError, and it is an extra that may not be there."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def damaged(path: Path) -> None:
        raise arrow.ArrowNotImplementedError("integers of 99 bits")

    monkeypatch.setattr(parquet, "read_table", damaged)
    if lacking:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RowError, match="needs pyarrow" if lacking else "99 bits; is it whole"):
        read([tmp_path / "a.parquet"])


def test_csv_and_parquet_give_the_same_rows(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(ROW))
        writer.writeheader()
        writer.writerow(ROW)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist([ROW])
    parquet.write_table(table, tmp_path / "a.parquet")
    first = read([tmp_path / "a.csv"])
    assert first == read([tmp_path / "a.parquet"]) == read([write(tmp_path / "a.jsonl", ROW)])


def test_hashed_rows_have_the_features_of_their_text(
    tmp_path: Path, examples: list[Example]
) -> None:
    row = {**ROW, "features": features_row(examples[0].features)}
    del row["prompt"]
    assert examples[0].view.question not in json.dumps(row)
    (found,) = read([write(tmp_path / "a.jsonl", row)])
    assert found.features == examples[0].features


@pytest.mark.parametrize(
    "row",
    [
        {**ROW, "y_weak": 2}, {**ROW, "y_weak": None}, {**ROW, "y_weak": "nan"}, [],
        {"prompt": "x"}, {k: v for k, v in ROW.items() if k != "prompt"},
        {**ROW, "prompt": None, "features": {"stem": [-1], "options": [], "structure": []}},
    ],
)  # fmt: skip
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: object) -> None:
    with pytest.raises(RowError, match=r"a\.jsonl:2: "):
        read([write(tmp_path / "a.jsonl", ROW, row)])


def test_a_bad_row_is_named_by_its_line_behind_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"\n{json.dumps(ROW)}\n  \n{json.dumps({**ROW, 'y_weak': 7})}\n")
    with pytest.raises(RowError, match=r"a\.jsonl:4: quality `7`"):
        read([path])
    csv_file = table(tmp_path / "a.csv", {**ROW, "prompt": "two\nlines"}, {**ROW, "y_weak": "x"})
    with pytest.raises(RowError, match=r"a\.csv:4: "):
        read([csv_file])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_strong": None}, "an outcome is missing"),
        ({"y_strong": ""}, "an outcome is missing"),
        ({"y_strong": float("nan")}, "not between 0 and 1"),
        ({"prompt": None}, "no prompt and no features"),
        ({"prompt": [1]}, "needs messages"),
        ({"prompt": []}, "needs messages"),
        ({"weak": None}, "`None` is no name of a model"),
        ({"strong": ""}, "`` is no name of a model"),
        ({"weak": "*"}, "is no name of a model"),
        ({"weak": ["w"]}, "is no name of a model"),
        ({"y_weak": "yes"}, "quality `yes` is not between 0 and 1"),
        ({"at": "nan"}, "`at` is `nan`; seconds"),
        ({"at": "2026-01-01 00:00:00"}, "`at` is `2026-01-01 00:00:00`; seconds since the epoch"),
        ({"features": {"count": float("inf")}}, "infinity"),
        ({"features": {"structure": [float("nan")] * 11}}, "`nan` is not a finite number"),
        ({"features": {"wide": float("inf")}}, "`inf` is not a finite number"),
        ({"features": {"distinct": float("nan")}}, "`nan` is not a finite number"),
    ],
)
def test_what_is_wrong_with_a_row_is_told(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    if isinstance(hashed := changes.get("features"), dict):
        known = features_row(extract(PromptView.of_text("What is 2+2?")))
        changes = {"prompt": None, "features": {**known, **hashed}}
    with pytest.raises(RowError, match=message):
        read([write(tmp_path / "a.jsonl", {**ROW, **changes})])


def test_json_as_deep_as_no_one_reads_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[" * 100_000)
    with pytest.raises(RowError, match=r"a\.jsonl:1: not JSON"):
        read([tmp_path / "a.jsonl"])


def test_a_comma_without_quotes_does_not_cut_a_prompt_unseen(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("weak,strong,y_weak,y_strong,prompt\nw,s,0,1,Hello, what is it?\n")
    with pytest.raises(RowError, match=r"a\.csv:2: more fields than columns"):
        read([path])


def test_a_quote_that_is_not_closed_takes_no_rows_with_it(tmp_path: Path) -> None:
    text = 'weak,strong,y_weak,y_strong,prompt\nw,s,1,0,"one\nw,s,1,0,two\n'
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(RowError, match="unexpected end of data; is it whole"):
        read([tmp_path / "a.csv"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_stands_twice_is_refused(tmp_path: Path, kind: str) -> None:
    """The last one counted, unseen: outcomes of another experiment, say."""
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        path.write_text("prompt,weak,strong,y_weak,y_weak,y_strong\nWhat is it?,w,s,0,1,1\n")
    else:
        names = ["prompt", "weak", "strong", "y_weak", "y_weak", "y_strong"]
        arrow = pytest.importorskip("pyarrow")
        columns = [[one] for one in ("What is it?", "w", "s", 0, 1, 1)]
        table = arrow.table([arrow.array(one) for one in columns], names=names)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    told = "column `y_weak` stands there twice" if kind == "csv" else r"Multiple.*\(y_weak\)"
    with pytest.raises(RowError, match=told):
        read([path])


def test_rows_without_a_split_part_the_same_way_in_every_file(examples: list[Example]) -> None:
    marked, unmarked = examples, [replace(one, split="") for one in examples]
    assert parted(marked) == (
        [one for one in examples if one.split == "train"],
        [one for one in examples if one.split == "test"],
    )
    own, held = parted(unmarked)
    assert 0.1 < len(held) / len(unmarked) < 0.3
    assert not {one.group for one in own} & {one.group for one in held}
    again = parted([*unmarked[200:], *unmarked])[1]
    assert {one.group for one in again} == {one.group for one in held}
    assert parted([]) == ([], [])


def test_outcomes_may_be_true_and_false_and_prompts_dialogues(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why is it so?"}]
    row = {**ROW, "prompt": said, "y_weak": False, "y_strong": True, "at": 7}
    [found] = read([write(tmp_path / "a.jsonl", row)])
    assert (found.y_weak, found.y_strong, found.at) == (0.0, 1.0, 7.0)
    assert found.view.question == "Why is it so?"
    assert found.view.parts[0].role == "system"
    told = table(tmp_path / "a.csv", {**ROW, "y_weak": "False", "y_strong": "True"})
    assert [(one.y_weak, one.y_strong) for one in read([told])] == [(0.0, 1.0)]


def test_marks_of_other_programs_are_read_over(tmp_path: Path) -> None:
    long = {**ROW, "prompt": "word " * 40_000}
    for path in (write(tmp_path / "a.jsonl", long), table(tmp_path / "a.csv", long)):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        assert len(read([path])) == 1


def test_an_unknown_format_says_which_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(RowError, match=r"use \.jsonl"):
        read([tmp_path / "a.xlsx"])


@pytest.mark.parametrize(
    "name", ["cut.jsonl.gz", "flipped.jsonl.gz", "sum.jsonl.gz", "latin.jsonl", "latin.csv"]
)
def test_a_file_that_is_not_whole_is_named(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, *[{**ROW, "prompt": str(n)} for n in range(200)])
    data = path.read_bytes()
    if name.startswith("cut"):
        path.write_bytes(data[: len(data) // 2])
    elif name.startswith("sum"):
        path.write_bytes(data[:-8] + bytes(4) + data[-4:])
    elif name.startswith("flipped"):
        path.write_bytes(data[:20] + bytes(byte ^ 0xFF for byte in data[20:]))
    else:
        path.write_bytes(b"\xff" + data)
    with pytest.raises(RowError, match=f"{name}` can't be read: .*; is it whole"):
        read([path])


def test_more_rows_than_memory_is_likely_to_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "MOST", 3)
    row = '{"weak": "w", "strong": "s", "y_weak": 0, "y_strong": 1, "prompt": "a b c"}\n'
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_text(row * 3)
    two.write_text(row)
    assert len(read([one])) == 3
    with pytest.raises(RowError, match=r"2\.jsonl`: more than 3 rows"):
        read([one, two])
