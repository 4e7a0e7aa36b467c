"""Loads to replay: public traces as they are published, and days of made-up load.

Mooncake (FAST '25): one JSON object a line with `timestamp` (ms), `input_length`,
`output_length` and `hash_ids`, one for each 512 tokens of the prompt: equal ids, equal beginnings
up to there. Azure (Splitwise, ISCA '24): CSV with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.
Either may be gzipped. Neither holds text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import cycle
from math import cos, isfinite, pi
from pathlib import Path
from typing import Final, Literal

from policies.model import Priority

MOONCAKE_BLOCK: Final = 512
DAY: Final = 86_400.0
_MANY: Final = 1_000_000_000


class TraceError(Exception):
    """A trace that can't be read; says where and what is wrong."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a load.

    `at`: seconds from the start; `region`: where its client is; `prompt`, `output`: tokens;
    `blocks`: what names its beginning, one id for every full block of it; `priority`: its class,
    `None` where there are none.
    """

    at: float
    prompt: int
    output: int
    blocks: tuple[int, ...] = ()
    region: str = ""
    tenant: str = ""
    priority: Priority | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A load by rising time, and the tokens that one of its blocks stands for (0: it has none)."""

    asks: tuple[Ask, ...]
    block: int = 0

    @property
    def seconds(self) -> float:
        """From the first request to the last."""
        return self.asks[-1].at - self.asks[0].at if self.asks else 0.0

    def compressed(self, factor: float) -> Trace:
        """The same requests, `factor` times as fast."""
        return replace(self, asks=tuple(replace(a, at=a.at / factor) for a in self.asks))

    def first(self, count: int) -> Trace:
        """Its first requests."""
        return replace(self, asks=self.asks[:count])


def read(path: Path) -> Trace:
    """A trace from a file, whichever of the known formats it has.

    Raises:
        TraceError: the file can't be read, or isn't a trace; says which line and what is wrong.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            text = raw.read().decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(f"`{path}` can't be read as a trace: {why}") from None
    mooncake = text.lstrip().startswith("{")
    try:
        asks = sorted(_mooncake(text) if mooncake else _azure(text), key=lambda ask: ask.at)
    except _Wrong as wrong:
        kind = "Mooncake" if mooncake else "Azure"
        raise TraceError(f"`{path}`, line {wrong.line}, is of no {kind} trace: {wrong}") from None
    if not asks:
        raise TraceError(f"`{path}` holds no requests")
    start = asks[0].at
    return Trace(
        tuple(replace(ask, at=ask.at - start) for ask in asks), MOONCAKE_BLOCK if mooncake else 0
    )


class _Wrong(Exception):
    """A line that says no request."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def _mooncake(text: str) -> Iterator[Ask]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with _saying(number, "timestamp (ms), input_length, output_length, hash_ids"):
                row = json.loads(line)
                prompt = _tokens(row["input_length"])
                # A partial last block has an id too; engines keep only whole ones.
                blocks = row["hash_ids"][: prompt // MOONCAKE_BLOCK]
                at, output = _second(row["timestamp"]) / 1000, _tokens(row["output_length"])
                yield Ask(at, prompt, output, tuple(map(int, blocks)))


def _azure(text: str) -> Iterator[Ask]:
    rows = csv.DictReader(io.StringIO(text))
    while True:
        with _saying(rows.line_num + 1, "TIMESTAMP, ContextTokens, GeneratedTokens"):
            if (row := next(rows, None)) is None:
                return
            # Seven digits of a second, of which six are read.
            at = datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp()
            yield Ask(at, _tokens(row["ContextTokens"]), _tokens(row["GeneratedTokens"]))


@contextmanager
def _saying(line: int, wanted: str) -> Iterator[None]:
    """What goes wrong in here is wrong with this line."""
    try:
        yield
    except KeyError as error:
        raise _Wrong(line, f"it has no {error}; it must have {wanted}") from None
    except (ValueError, TypeError, OverflowError, csv.Error) as error:
        raise _Wrong(line, f"{error}; it must have {wanted}") from None


def _tokens(value: object) -> int:
    """A number of tokens; none counts as one, for every request has a prompt and an answer.

    Raises:
        ValueError: it is none, or above a billion.
    """
    if isinstance(value, (int, float, str)) and 0 <= (found := int(value)) <= _MANY:
        return max(1, found)
    raise ValueError(f"{value!r} is no number of tokens")


def _second(value: object) -> float:
    """A time.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, (int, float)) and isfinite(value):
        return float(value)
    raise ValueError(f"{value!r} is no time")


# --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Days:
    """A load that rises and falls with the day, in each region by its own clock.

    Attributes:
        phases: region → hours that its day is ahead of the simulation's.
        rate: requests a second of one region, over the day's mean.
        swing: how far the busiest hour lies above the mean, 0 to 1; the quietest as far below.
        day: seconds of one day; shorter ones make the same shape quicker.
        bound: the share of requests whose tenant may be served in its own region only.
    """

    phases: Sequence[tuple[str, float]]
    rate: float
    seconds: float
    swing: float = 0.8
    day: float = DAY
    bound: float = 0.0

    def level(self, phase: float, at: float) -> float:
        """A region's rate at a time over its mean: the peak is at 15 o'clock."""
        hour = (at / self.day * 24 + phase) % 24
        return 1 + self.swing * cos((hour - 15) / 12 * pi)


def days(load: Days, lengths: Sequence[tuple[int, int]], seed: int = 0) -> Trace:
    """Requests by a Poisson process with the day's rate, lengths (prompt, output) drawn of a list.

    Tenants are named `any` or, where bound, `only-REGION`.
    """
    rng = random.Random(seed)
    found: list[Ask] = []
    for region, phase in load.phases:
        top, at = load.rate * (1 + load.swing), 0.0
        while (at := at + rng.expovariate(top)) < load.seconds:
            if rng.random() * (1 + load.swing) > load.level(phase, at):
                continue
            prompt, output = rng.choice(lengths)
            tenant = f"only-{region}" if rng.random() < load.bound else "any"
            found.append(Ask(at, prompt, output, (), region, tenant))
    return Trace(tuple(sorted(found, key=lambda ask: ask.at)))


def classed(trace: Trace, shares: Mapping[Priority, float], seed: int = 0) -> Trace:
    """The same requests, each of a class drawn by these shares."""
    rng, kinds = random.Random(seed), list(shares)
    drawn = rng.choices(kinds, [shares[one] for one in kinds], k=len(trace.asks))
    asks = (replace(a, priority=kind) for a, kind in zip(trace.asks, drawn, strict=True))
    return replace(trace, asks=tuple(asks))


def shared(trace: Trace, free: str, tenants: Sequence[str]) -> Trace:
    """The same requests: those of the tenant `free` are given to these tenants in turn."""
    turn = cycle(tenants)
    asks = (replace(a, tenant=next(turn)) if a.tenant == free else a for a in trace.asks)
    return replace(trace, asks=tuple(asks))


Shape = Literal["chat", "long"]


def shaped(shape: Shape, count: int = 4096, seed: int = 0) -> list[tuple[int, int]]:
    """Made-up lengths near those of published traces: `chat` Azure's conversations, `long` Kimi's.

    Log-normal around the traces' medians (928 and 129, or 6,909 and 350 tokens).
    """
    rng = random.Random(seed)
    prompt, output, top = (928.0, 129.0, 8_000) if shape == "chat" else (6_909.0, 350.0, 120_000)
    drawn = (
        (prompt * rng.lognormvariate(0, 0.9), output * rng.lognormvariate(0, 0.8))
        for _ in range(count)
    )
    return [(max(1, min(top, round(p))), max(1, min(2_000, round(o)))) for p, o in drawn]


# --------------------------------------------------------------------------------------


def ideal_hits(asks: Iterable[Ask], block: int, room: int) -> float:
    """The share of prompt tokens that one cache of `room` blocks, shared by all, would hold.

    Requests come one by one and cost no time; the least recently used block goes first, the
    end of a prompt before its beginning. No fleet of caches of that size together does better
    by least recent use.
    """
    cache: OrderedDict[int, None] = OrderedDict()
    hits = tokens = 0
    for ask in asks:
        usable = ask.blocks[: (ask.prompt - 1) // block]
        for one in usable:
            if one not in cache:
                break
            hits += block
        tokens += ask.prompt
        for one in reversed(ask.blocks):
            cache.pop(one, None)
            cache[one] = None
        while len(cache) > room:
            cache.popitem(last=False)
    return hits / tokens if tokens else 0.0
