"""Labelled rows for training and evaluation, from JSONL(.gz), CSV or Parquet files.

A row has `weak`, `strong`, `y_weak`, `y_strong` (quality in [0, 1]) and either `prompt` (text) or
`features` (what the outcome store keeps: hashed, no text). Optional: `id`, `source`, `category`,
`split`, `group` (rows of one group never part in a split; default: the prompt's hash).
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from classifiers.difficulty.features import BUCKETS, STRUCTURE, Features, extract
from classifiers.view import PromptView


class RowError(Exception):
    """A row cannot be used; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with the outcomes of both models. `view` is empty if only features are known."""

    weak: str
    strong: str
    y_weak: float
    y_strong: float
    source: str
    category: str
    split: str
    group: str
    view: PromptView
    features: Features

    @property
    def pair(self) -> str:
        """`WEAK:STRONG`."""
        return f"{self.weak}:{self.strong}"


def read(paths: Iterable[Path]) -> tuple[Example, ...]:
    """All examples of all files, in order. Raises RowError, OSError."""
    return tuple(example for path in paths for example in _examples(path))


def binary(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The same rows with outcomes cut at 0.5, as published routers are measured."""
    return tuple(
        Example(
            e.weak, e.strong, float(e.y_weak >= 0.5), float(e.y_strong >= 0.5), e.source,
            e.category, e.split, e.group, e.view, e.features,
        )
        for e in examples
    )  # fmt: skip


def features_row(features: Features) -> dict[str, object]:
    """What an outcome store keeps of a prompt: hashes and shape, never text."""
    return {
        "stem": sorted(features.stem), "options": sorted(features.options), "count": features.count,
        "structure": list(features.structure), "wide": features.wide,
        "distinct": features.distinct, "cut": features.cut,
    }  # fmt: skip


def _examples(path: Path) -> Iterator[Example]:
    for number, row in enumerate(_rows(path), 1):
        try:
            yield _example(row, path.name.split(".")[0])
        except (KeyError, TypeError, ValueError) as error:
            raise RowError(
                f"{path}:{number}: {type(error).__name__}: {error}; a row needs `weak`, `strong`, "
                "`y_weak`, `y_strong` and `prompt` or `features`"
            ) from error


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    """The rows of a file. One that was cut, or isn't what its name says, is told as such."""
    try:
        yield from _stored(path)
    except RowError:
        raise
    except (EOFError, ValueError, csv.Error, zlib.error) as error:
        raise RowError(f"`{path}` can't be read: {error}; is it whole?") from error


def _stored(path: Path) -> Iterator[Mapping[str, object]]:
    name = path.name.lower()
    if name.endswith((".jsonl.gz", ".json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from _json_lines(path, lines)
    elif name.endswith((".jsonl", ".json")):
        with path.open(encoding="utf-8") as lines:
            yield from _json_lines(path, lines)
    elif name.endswith(".csv"):
        with path.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    elif name.endswith(".parquet"):
        from pyarrow import parquet  # optional extra, only for this format

        yield from parquet.read_table(path).to_pylist()
    else:
        raise RowError(f"`{path}`: unknown format; use .jsonl, .jsonl.gz, .csv or .parquet")


def _json_lines(path: Path, lines: Iterable[str]) -> Iterator[Mapping[str, object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise RowError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise RowError(f"{path}:{number}: a row is a JSON object")
        yield row


def _example(row: Mapping[str, object], stem: str) -> Example:
    prompt, hashed = row.get("prompt"), row.get("features")
    if isinstance(prompt, str):
        view = PromptView.of_text(prompt)
        features = extract(view)
        key = f"{crc32(prompt.encode('utf-8', 'surrogatepass')):08x}"
    else:
        view, features = PromptView(), _features(hashed)
        key = f"{crc32(json.dumps(features.words).encode()):08x}"
    return Example(
        str(row["weak"]), str(row["strong"]), _quality(row["y_weak"]), _quality(row["y_strong"]),
        str(row.get("source") or stem), str(row.get("category") or ""),
        str(row.get("split") or ""), str(row.get("group") or key), view, features,
    )  # fmt: skip


def _features(raw: object) -> Features:
    if not isinstance(raw, Mapping):
        raise TypeError("no prompt and no features")
    stem, options = ({int(bucket) for bucket in raw[key]} for key in ("stem", "options"))
    structure = tuple(float(value) for value in raw["structure"])
    if len(structure) != len(STRUCTURE) or not all(0 <= b < BUCKETS for b in stem | options):
        raise ValueError("features of another version")
    return Features(
        stem - options, options, int(raw["count"]), structure, float(raw["wide"]),
        float(raw["distinct"]), bool(raw["cut"]),
    )  # fmt: skip


def _quality(value: object) -> float:
    quality = float(str(value))
    if not 0.0 <= quality <= 1.0:
        raise ValueError(f"quality `{value}` is not between 0 and 1")
    return quality
