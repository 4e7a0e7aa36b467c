"""The outcome store: what both tiers were worth on one request, as lines of JSON, without text.

A line holds hashed words, numbers of structure, groups and qualities: from it a model can be
trained and an audit restored, and no prompt can be read back. One process writes one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from classifiers.difficulty.audit import Shadow, Tier
from router.config import ConfigError

LIMIT: Final = 64 << 20
"""Bytes of one file; then it becomes the older one, and the one before that is gone."""
FORMAT: Final = 1


class OutcomesUnreadable(ConfigError):
    """A line that is no outcome; says which. An alarm may be among what can't be read."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One judged request; a line of it is a row that `domicile classifier train` reads.

    `weak` and `strong` are the models of the two tiers, `judge` who judged; `features` are hashed
    and sorted (see `features_row`); `at` seconds since the epoch.
    """

    at: float
    model: str
    weak: str
    strong: str
    judge: str
    shadow: Shadow
    features: Mapping[str, object]

    def line(self) -> bytes:
        """One line of JSON."""
        shadow = self.shadow
        return orjson.dumps(
            {
                "v": FORMAT, "at": round(self.at), "model": self.model, "weak": self.weak,
                "strong": self.strong, "judge": self.judge, "tenant": shadow.tenant,
                "category": shadow.kind, "script": shadow.language, "graded": shadow.graded,
                "y_weak": shadow.small, "y_strong": shadow.large, "features": self.features,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )  # fmt: skip

    @classmethod
    def read(cls, line: bytes) -> Outcome:
        """Raises ValueError, KeyError, TypeError for what is no outcome."""
        raw: Mapping[str, object] = orjson.loads(line)
        if raw["v"] != FORMAT:
            raise ValueError(f"format {raw['v']} is another version's")
        tier: Tier = "small" if raw["graded"] == "small" else "large"
        small, large = _quality(raw["y_weak"]), _quality(raw["y_strong"])
        shadow = Shadow(
            str(raw["tenant"]), str(raw["category"]), str(raw["script"]), tier, small, large
        )
        features = raw["features"]
        if not isinstance(features, dict):
            raise TypeError("features are missing")
        at, model, judge = _number(raw["at"]), str(raw["model"]), str(raw["judge"])
        return cls(at, model, str(raw["weak"]), str(raw["strong"]), judge, shadow, features)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{value}` is no number")
    return float(value)


def _quality(value: object) -> float:
    found = _number(value)
    if not 0.0 <= found <= 1.0:
        raise ValueError(f"quality {found} is not between 0 and 1")
    return found


class OutcomeStore:
    """Appends outcomes to a file; two files are kept, of at most `limit` bytes each."""

    __slots__ = ("_limit", "path")

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = path
        self._limit = limit

    @property
    def older(self) -> Path:
        """Where the file goes when it is full."""
        return self.path.with_suffix(self.path.suffix + ".1")

    def mend(self) -> None:
        """Cut off a torn last line, as a crash leaves it. Raises OSError."""
        if not self.path.exists():
            return
        with open(self.path, "r+b") as file:
            file.truncate(self.path.read_bytes().rfind(b"\n") + 1)

    def append(self, outcome: Outcome) -> None:
        """Write one line. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = outcome.line()
        if self.path.exists() and self.path.stat().st_size + len(line) > self._limit:
            os.replace(self.path, self.older)
        with open(self.path, "ab", opener=_private) as file:
            file.write(line)

    def read(self) -> Iterator[Outcome]:
        """Every outcome, oldest first; a torn last line is left out.

        Raises:
            OutcomesUnreadable: any other line that is no outcome. OSError.
        """
        for path in (self.older, self.path):
            if not path.exists():
                continue
            lines = path.read_bytes().split(b"\n")
            for number, line in enumerate(lines, 1):
                if line and number < len(lines):
                    yield _outcome(line, f"{path}:{number}")


def _outcome(line: bytes, place: str) -> Outcome:
    try:
        return Outcome.read(line)
    except (ValueError, KeyError, TypeError) as error:
        raise OutcomesUnreadable(f"{place}: no outcome ({error}); move the file away") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
