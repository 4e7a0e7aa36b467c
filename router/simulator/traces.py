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
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import cos, pi
from pathlib import Path
from typing import Final, Literal

MOONCAKE_BLOCK: Final = 512
DAY: Final = 86_400.0


class TraceError(Exception):
    """A trace that can't be read; says where and what is wrong."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a load.

    `at`: seconds from the start; `region`: where its client is; `prompt`, `output`: tokens;
    `blocks`: what names its beginning, one id for every full block of it.
    """

    at: float
    prompt: int
    output: int
    blocks: tuple[int, ...] = ()
    region: str = ""
    tenant: str = ""


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
        TraceError: the file can't be read, or isn't a trace.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            text = raw.read().decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(f"`{path}` can't be read as a trace: {error}") from None
    mooncake = text.lstrip().startswith("{")
    rows = _mooncake(text) if mooncake else _azure(text)
    try:
        asks = sorted(rows, key=lambda ask: ask.at)
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"`{path}` is no Mooncake or Azure trace: {error}") from None
    if not asks:
        raise TraceError(f"`{path}` holds no requests")
    start = asks[0].at
    return Trace(
        tuple(replace(ask, at=ask.at - start) for ask in asks), MOONCAKE_BLOCK if mooncake else 0
    )


def _mooncake(text: str) -> Iterator[Ask]:
    for line in text.splitlines():
        if line.strip():
            row = json.loads(line)
            # A partial last block has an id too; engines keep only whole ones.
            whole = int(row["input_length"]) // MOONCAKE_BLOCK
            yield Ask(
                float(row["timestamp"]) / 1000, int(row["input_length"]),
                int(row["output_length"]), tuple(map(int, row["hash_ids"][:whole])),
            )  # fmt: skip


def _azure(text: str) -> Iterator[Ask]:
    for row in csv.DictReader(io.StringIO(text)):
        # Seven digits of a second, of which six are read.
        at = datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp()
        yield Ask(at, max(1, int(row["ContextTokens"])), max(1, int(row["GeneratedTokens"])))


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
