"""What people wrote down to judge answers by: accepted answers, or tests, by question.

A file of JSON lines: `{"question": HASH, "answers": [TEXT...]}` or `{"question": HASH, "test":
CODE}`; HASH is the SHA-256 (hex) of the question's UTF-8, so that the file need hold no prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson

from router.config import ConfigError
from router.settings import bounded

References = Mapping[str, tuple[str, ...]]
"""Accepted answers, or one test, by the hash of the question."""
LARGEST: Final = 64 << 20
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def hashed(question: str) -> str:
    """The name of a question in the file."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path, judge: str) -> References:
    """The references of `judge`, `labels` or `tests`.

    Raises:
        ConfigError: a line that can't be used, named; a question that comes twice.
        OSError: the file can't be read.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(bounded.read(path, LARGEST).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            question, texts = _line(line, judge)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}:{number}: no reference for `{judge}` ({error})") from None
        if question in found:
            raise ConfigError(f"{path}:{number}: the question was there before; join both lines")
        found[question] = texts
    if not found:
        raise ConfigError(f"`{path}` holds nothing to judge by")
    return found


def _line(line: bytes, judge: str) -> tuple[str, tuple[str, ...]]:
    raw = orjson.loads(line)
    question = raw["question"]
    given = [raw["test"]] if judge == "tests" else raw["answers"]
    if not isinstance(question, str) or not _HASH.fullmatch(question):
        raise ValueError("`question` is 64 hex digits, the SHA-256 of its text")
    if not isinstance(given, list) or not given or not all(isinstance(t, str) for t in given):
        raise ValueError("a text is missing")
    return question, tuple(given)
