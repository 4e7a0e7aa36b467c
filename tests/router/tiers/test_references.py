"""Accepted answers and tests by question: read whole, or refused with the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.config import ConfigError
from router.tiers.references import hashed, read

ONE = hashed("What is the capital of France?")


def written(folder: Path, *lines: object) -> Path:
    path = folder / "references.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_question_is_named_by_the_hash_of_its_text() -> None:
    assert hashed("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(hashed("\ud800")) == 64


def test_answers_and_tests(tmp_path: Path) -> None:
    path = written(tmp_path, {"question": ONE, "answers": ["Paris", "paris, France"]})
    assert read(path, "labels") == {ONE: ("Paris", "paris, France")}
    path = written(tmp_path, {"question": ONE, "test": "assert f(1) == 2"})
    assert read(path, "tests") == {ONE: ("assert f(1) == 2",)}


@pytest.mark.parametrize(
    "line",
    [
        {}, [], "x", {"question": "Paris?", "answers": ["x"]}, {"question": ONE},
        {"question": ONE, "answers": []}, {"question": ONE, "answers": [1]},
        {"question": ONE, "answers": "Paris"}, {"question": ONE, "test": "assert 1"},
    ],
)  # fmt: skip
def test_a_line_that_can_not_be_used_is_named(tmp_path: Path, line: object) -> None:
    good = {"question": hashed("other"), "answers": ["x"]}
    with pytest.raises(ConfigError, match=r"references.jsonl:2: no reference for `labels`"):
        read(written(tmp_path, good, line), "labels")


def test_nothing_and_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds nothing"):
        read(written(tmp_path), "labels")
    line = {"question": ONE, "answers": ["x"]}
    with pytest.raises(ConfigError, match=":2: the question was there before"):
        read(written(tmp_path, line, line), "labels")
