"""Rows from every format; hashed rows train like text rows; a bad row is named by its line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from classifiers.difficulty.dataset import Example, RowError, binary, features_row, read

ROW = {"prompt": "What is 2+2?", "weak": "w", "strong": "s", "y_weak": 0.4, "y_strong": 1}


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


def test_an_unknown_format_says_which_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(RowError, match=r"use \.jsonl"):
        read([tmp_path / "a.xlsx"])


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "flipped.jsonl.gz", "latin.jsonl", "latin.csv"])
def test_a_file_that_is_not_whole_is_named(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, *[{**ROW, "prompt": str(n)} for n in range(200)])
    data = path.read_bytes()
    if name.startswith("cut"):
        path.write_bytes(data[: len(data) // 2])
    elif name.startswith("flipped"):
        path.write_bytes(data[:20] + bytes(byte ^ 0xFF for byte in data[20:]))
    else:
        path.write_bytes(b"\xff" + data)
    with pytest.raises(RowError, match=f"{name}` can't be read: .*; is it whole"):
        read([path])
