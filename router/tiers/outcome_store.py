"""The outcome store: what both tiers were worth on one request, as lines of JSON, without text.

A line holds hashed words, numbers of structure, groups and qualities: from it a model can be
trained and an audit restored, and no prompt can be read back. One process writes one file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedRandom, FileIO
from pathlib import Path
from typing import Final

import orjson

from classifiers.difficulty.audit import Shadow, Tier
from router.audit.layout import whole_lines
from router.config import ConfigError
from router.settings.handover import is_of

LIMIT: Final = 64 << 20
"""Bytes of one file; then it becomes the older one, and the one before that is gone."""
FORMAT: Final = 1
ALARMS: Final = ".alarms.json"
Alarm = tuple[str, float, str, float]
"""A model, its accepted loss, a group of it under alarm, and since when (epoch seconds)."""


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
    """Appends outcomes to a file; two files are kept, of at most `limit` bytes each.

    Beside them stands which groups are under alarm: what an alarm came from may have left both
    files long ago, and a restart must not answer by small what was returned to large.
    """

    __slots__ = ("_limit", "path")

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = path
        self._limit = limit

    @property
    def older(self) -> Path:
        """Where the file goes when it is full."""
        return self.path.with_suffix(self.path.suffix + ".1")

    @property
    def alarms(self) -> Path:
        """Where the groups under alarm stand."""
        return self.path.with_suffix(ALARMS)

    def mend(self) -> None:
        """Cut off a torn last line, as a crash leaves it. Raises OSError."""
        if self.path.exists():
            with open(self.path, "r+b") as file:
                _cut(file)

    def append(self, outcome: Outcome) -> None:
        """Write one line, whole or not at all, behind whole lines. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = outcome.line()
        if self.path.exists() and self.path.stat().st_size + len(line) > self._limit:
            os.replace(self.path, self.older)
        with open(self.path, "a+b", buffering=0, opener=_private) as file:
            size = _cut(file)
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                file.truncate(size)  # needs no room on a full disk
                raise

    def read(self) -> Iterator[Outcome]:
        """Every outcome, oldest first; a torn last line is left out.

        Raises:
            OutcomesUnreadable: any other line that is no outcome. OSError.
        """
        for path in (self.older, self.path):
            try:
                file = open(path, "rb")  # noqa: SIM115 - closed below, opened only if there
            except FileNotFoundError:
                continue
            with file:
                for number, line in enumerate(file, 1):
                    if line.endswith(b"\n") and line != b"\n":
                        yield _outcome(line, f"{path}:{number}")

    def keep_alarms(self, alarms: Iterable[Alarm]) -> None:
        """Write down all groups under alarm, as a whole. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.alarms.with_suffix(".draft")
        with open(draft, "wb", opener=_private) as file:
            file.write(orjson.dumps({"v": FORMAT, "alarms": sorted(alarms)}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.alarms)

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The groups that were under alarm. Raises OutcomesUnreadable, OSError."""
        try:
            raw: Mapping[str, object] = orjson.loads(self.alarms.read_bytes())
            if raw["v"] != FORMAT:
                raise ValueError(f"format {raw['v']} is another version's")
            return tuple(_alarm(one) for one in _listed(raw["alarms"]))
        except FileNotFoundError:
            return ()
        except (ValueError, KeyError, TypeError) as error:
            raise OutcomesUnreadable(f"{self.alarms}: no alarms ({error}); move it away") from None


def of_router(
    folder: Path, router: str, used: Collection[str]
) -> tuple[list[OutcomeStore], list[OutcomeStore]]:
    """The stores in a folder of a router's logs that are `used`, and those of logs it had before,
    with another number of workers.

    Who is used and wrote nothing yet is named too: it may write by the time that its store is read.
    """
    found = {path.name.split(".jsonl")[0] for path in folder.glob("*.jsonl*")}
    found |= {path.name.removesuffix(ALARMS) for path in folder.glob(f"*{ALARMS}")}
    names = sorted({name for name in found if is_of(name, router)} | set(used))
    stores = [(name, OutcomeStore(folder / f"{name}.jsonl")) for name in names]
    return [s for n, s in stores if n in used], [s for n, s in stores if n not in used]


def _cut(file: FileIO | BufferedRandom) -> int:
    """Cut what follows the last whole line; the size in bytes that is left."""
    size, whole = whole_lines(file)
    if whole < size:
        file.truncate(whole)
    file.seek(whole)
    return whole


def _listed(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("its alarms are a list")
    return value


def _alarm(value: object) -> Alarm:
    if not isinstance(value, list) or len(value) != 4:
        raise TypeError("a group is a list of model, tolerance, group and time")
    return str(value[0]), _number(value[1]), str(value[2]), _number(value[3])


def _outcome(line: bytes, place: str) -> Outcome:
    try:
        return Outcome.read(line)
    except (ValueError, KeyError, TypeError) as error:
        raise OutcomesUnreadable(f"{place}: no outcome ({error}); move the file away") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
