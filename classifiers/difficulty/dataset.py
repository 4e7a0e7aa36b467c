"""Labelled rows for training and evaluation, from JSONL(.gz), CSV or Parquet files.

A row has `weak`, `strong`, `y_weak`, `y_strong` (quality in [0, 1], or true and false) and either
`prompt` (text, or a list of chat messages) or `features` (what the outcome store keeps: hashed, no
text). Optional: `id`, `source`, `category`, `split`, `group` (rows of one group never part in a
split; default: the prompt's hash) and `at` (seconds since the epoch). Blank lines are left out.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import Final
from zlib import crc32

from classifiers.difficulty.artifact import ANY
from classifiers.difficulty.features import BUCKETS, STRUCTURE, Features, extract
from classifiers.view import PromptView

KEPT: Final = 5
"""Of rows without a `split`, one group in so many is kept back."""
MOST: Final = 500_000
"""Rows of one command. All are in memory, at about 7 KB each, and more make no better a model."""
TOLD_EACH: Final = 1000
"""Rows between two signs of progress."""
_LONGEST: Final = 1 << 30
"""Characters of one field of a CSV file; a prompt may be longer than Python's usual 131,072."""


class RowError(Exception):
    """A row cannot be used; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with the outcomes of both models. `view` is empty if only features are known.

    `at`: when it was asked, in seconds since the epoch, where the row says so.
    """

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
    at: float | None = None

    @property
    def pair(self) -> str:
        """`WEAK:STRONG`."""
        return f"{self.weak}:{self.strong}"


def read(
    paths: Iterable[Path], passed: Callable[[int], None] = lambda _: None
) -> tuple[Example, ...]:
    """All examples of all files, in order. `passed` is told how many rows were read, now and then.

    Raises:
        RowError: a row that can't be used, named; or more than MOST rows.
        OSError: a file can't be read.
    """
    found: list[Example] = []
    for path in paths:
        for example in _examples(path):
            if len(found) >= MOST:
                raise RowError(
                    f"`{path}`: more than {MOST:,} rows in all files, which take about 4 GB of "
                    "memory; take a part of them at random"
                )
            found.append(example)
            if len(found) % TOLD_EACH == 0:
                passed(len(found))
    return tuple(found)


def binary(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The same rows with outcomes cut at 0.5, as published routers are measured."""
    return tuple(
        replace(e, y_weak=float(e.y_weak >= 0.5), y_strong=float(e.y_strong >= 0.5))
        for e in examples
    )


def parted(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Rows to train on, and rows kept back to measure and compare on.

    Where any row says what it is for, `split` decides. Where none does, every fifth group is kept
    back, by its hash: the same ones in every file and at any time, so that a model is never
    compared on what it was trained on.
    """
    if any(example.split for example in examples):
        own = [example.split == "train" for example in examples]
    else:
        own = [crc32(f"kept-v1:{example.group}".encode()) % KEPT != 0 for example in examples]
    pairs = list(zip(examples, own, strict=True))
    return [e for e, fits in pairs if fits], [e for e, fits in pairs if not fits]


def features_row(features: Features) -> dict[str, object]:
    """What an outcome store keeps of a prompt: hashes and shape, never text."""
    return {
        "stem": sorted(features.stem), "options": sorted(features.options), "count": features.count,
        "structure": list(features.structure), "wide": features.wide,
        "distinct": features.distinct, "cut": features.cut, "code": features.code,
    }  # fmt: skip


def _examples(path: Path) -> Iterator[Example]:
    for number, row in _rows(path):
        try:
            yield _example(row, path.name.split(".")[0])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RowError(
                f"{path}:{number}: {_said(error)}; a row needs `weak`, `strong`, `y_weak`, "
                "`y_strong` and `prompt` or `features`"
            ) from error


def _said(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows of a file, each with the number of its line (of its row in Parquet).

    One that was cut, or isn't what its name says, is told as such.
    """
    try:
        yield from _stored(path)
    except RowError:
        raise
    except (EOFError, ValueError, csv.Error, zlib.error, gzip.BadGzipFile) as error:
        raise RowError(f"`{path}` can't be read: {error}; is it whole?") from error


def _stored(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    name = path.name.lower()
    if name.endswith((".jsonl.gz", ".json.gz")):
        with gzip.open(path) as lines:
            yield from _json_lines(path, lines)
    elif name.endswith((".jsonl", ".json", ".jsonl.1")):
        with path.open("rb") as lines:
            yield from _json_lines(path, lines)
    elif name.endswith(".csv"):
        csv.field_size_limit(_LONGEST)
        with path.open(encoding="utf-8-sig", newline="") as lines:
            # Strict: a quote that isn't closed would take all later rows into one prompt, unseen.
            reader = csv.DictReader(lines, strict=True)
            _once(path, reader.fieldnames or ())
            for row in reader:
                if None in row:
                    # A comma in a prompt without quotes would cut the prompt there, unseen.
                    raise RowError(f"{path}:{reader.line_num}: more fields than columns; quote it")
                yield reader.line_num, row
    elif name.endswith(".parquet"):
        yield from enumerate(_table(path), 1)
    else:
        raise RowError(f"`{path}`: unknown format; use .jsonl, .jsonl.gz, .csv or .parquet")


def _table(path: Path) -> list[Mapping[str, object]]:
    """The rows of a Parquet file. Raises RowError, ValueError, OSError."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        told = f"`{path}`: Parquet needs pyarrow: pip install 'domicile[reports]'"
        raise RowError(told) from None
    try:
        rows: list[Mapping[str, object]] = parquet.read_table(path).to_pylist()
    except ArrowException as error:
        raise ValueError(str(error)) from error
    return rows


def _once(path: Path, columns: Iterable[str]) -> None:
    """Raises RowError for a name that stands twice: which of the two counts, nobody would see."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise RowError(f"`{path}`: column `{twice[0]}` stands there twice; keep one")


def _json_lines(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise RowError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise RowError(f"{path}:{number}: a row is a JSON object")
        yield number, row


def _example(row: Mapping[str, object], stem: str) -> Example:
    prompt, hashed, at = row.get("prompt"), row.get("features"), row.get("at")
    if isinstance(prompt, str | list):
        view = _view(prompt)
        features = extract(view)
        text = prompt if isinstance(prompt, str) else json.dumps(prompt)
        key = f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"
    else:
        view, features = PromptView(), _features(hashed)
        key = f"{crc32(json.dumps(features.words).encode()):08x}"
    return Example(
        _model(row["weak"]), _model(row["strong"]),
        _quality(row["y_weak"]), _quality(row["y_strong"]),
        str(row.get("source") or stem), str(row.get("category") or ""),
        str(row.get("split") or ""), str(row.get("group") or key), view, features,
        None if at in (None, "") else _seconds(at),
    )  # fmt: skip


def _model(value: object) -> str:
    if not isinstance(value, str) or value in ("", ANY):
        raise ValueError(f"`{value}` is no name of a model")
    return value


def _seconds(at: object) -> float:
    try:
        return _finite(at)
    except ValueError:
        raise ValueError(f"`at` is `{at}`; seconds since the epoch are needed") from None


def _finite(value: object) -> float:
    """The number; NaN and infinity would make a whole training run worthless."""
    number = float(str(value))
    if not isfinite(number):
        raise ValueError(f"`{value}` is not a finite number")
    return number


def _view(prompt: str | list[object]) -> PromptView:
    if isinstance(prompt, str):
        return PromptView.of_text(prompt)
    view = PromptView.of_chat({"messages": prompt})
    if not view.messages or view.unknown:
        raise ValueError("a `prompt` that is a list needs messages with `role` and `content`")
    return view


def _features(raw: object) -> Features:
    if not isinstance(raw, Mapping):
        raise TypeError("no prompt and no features")
    stem, options = ({int(bucket) for bucket in raw[key]} for key in ("stem", "options"))
    structure = tuple(_finite(value) for value in raw["structure"])
    if len(structure) != len(STRUCTURE) or not all(0 <= b < BUCKETS for b in stem | options):
        raise ValueError("features of another version")
    return Features(
        stem - options, options, int(raw["count"]), structure, _finite(raw["wide"]),
        _finite(raw["distinct"]), bool(raw["cut"]), _finite(raw.get("code", 0.0)),
    )  # fmt: skip


def _quality(value: object) -> float:
    if value is None or value == "":
        raise ValueError("an outcome is missing")
    told = str(value).lower()
    try:
        quality = float({"true": "1", "false": "0"}.get(told, told))
    except ValueError:
        quality = nan
    if not 0.0 <= quality <= 1.0:
        raise ValueError(f"quality `{value}` is not between 0 and 1")
    return quality
