"""What a simulated load came to: latencies, cache hits, use, refusals, places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from router.simulator.leaping import LeapingEngine
from router.simulator.spread import Spread
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask


def cold_prefill(spec: EngineSpec, prompt: int) -> float:
    """Seconds to the first token on an idle engine with an empty cache."""
    steps = -(-prompt // spec.batch_tokens)
    return steps * spec.step_floor + prompt / spec.prefill_rate


@dataclass(slots=True)
class Tally:
    """Counts of one run. Times in seconds.

    Attributes:
        target: seconds to the first token that make an answer good.
        waited: in the waiting room; `lasted` to the end of a whole answer.
        queueing: time to the first token without the prompt's own cold prefill.
        good: answers whose first token came within the target, by tenant.
        asked, refused: requests, and those told to come again, by tenant.
        came_back: refused ones that were taken when they came again as told; `told` all of them.
        tokens: prompt and output tokens of whole answers, by tenant.
        served: answers by region; `spilled` those from another region than the client's.
        outside: dispatches to a region outside the tenant's boundary: 0, or the router is wrong.
    """

    target: float
    ttft: Spread = field(default_factory=Spread)
    queueing: Spread = field(default_factory=Spread)
    waited: Spread = field(default_factory=Spread)
    lasted: Spread = field(default_factory=Spread)
    answers: int = 0
    broken: int = 0
    lost: int = 0
    retried: int = 0
    outside: int = 0
    spilled: int = 0
    told: int = 0
    came_back: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    good: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    last: float = 0.0

    def first(self, ask: Ask, seconds: float, spec: EngineSpec) -> None:
        """A first token reached its router."""
        self.ttft.add(seconds)
        self.queueing.add(max(0.0, seconds - cold_prefill(spec, ask.prompt)))
        if seconds <= self.target:
            self.good[ask.tenant] += 1

    def whole(self, ask: Ask, region: str, now: float) -> None:
        """An answer ended."""
        self.answers += 1
        self.tokens[ask.tenant] += ask.prompt + ask.output
        self.served[region] += 1
        self.spilled += region != ask.region
        self.last = max(self.last, now)


@dataclass(frozen=True, slots=True)
class Result:
    """One run's numbers, as they are shown. Shares are 0 to 1, times seconds.

    `hours` are replica-hours, the cost of a fleet that is paid for whether used or not.
    """

    strategy: str
    replicas: int
    requests: int
    answers: int
    refused: int
    lost: int
    good: float
    goodput: float
    ttft_p50: float
    ttft_p90: float
    ttft_p99: float
    queueing_p50: float
    queueing_p99: float
    itl_p50: float
    itl_p99: float
    hit_rate: float
    utilisation: float
    spilled: float
    outside: int
    seconds: float
    hours: float
    preemptions: int

    def row(self) -> dict[str, object]:
        """The numbers by name, rounded to what they are good for."""
        return {name: _shown(getattr(self, name)) for name in self.__slots__}


def _shown(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def result(strategy: str, tally: Tally, engines: Iterable[LeapingEngine], seconds: float) -> Result:
    """The numbers of a run that took so many virtual seconds."""
    found = list(engines)
    gaps = Spread().join(engine.gaps for engine in found)
    prompt = sum(engine.totals.queried for engine in found)
    busy = sum(engine.busy for engine in found)
    asked = tally.asked.total()
    return Result(
        strategy, len(found), asked, tally.answers, tally.refused.total(), tally.lost,
        tally.good.total() / asked if asked else 1.0,
        tally.good.total() / seconds if seconds else 0.0,
        tally.ttft.at(0.5), tally.ttft.at(0.9), tally.ttft.at(0.99),
        tally.queueing.at(0.5), tally.queueing.at(0.99),
        gaps.at(0.5), gaps.at(0.99),
        sum(engine.totals.hits for engine in found) / prompt if prompt else 0.0,
        busy / (seconds * len(found)) if seconds and found else 0.0,
        tally.spilled / tally.answers if tally.answers else 0.0,
        tally.outside, seconds, len(found) * seconds / 3600,
        sum(engine.totals.preemptions for engine in found),
    )  # fmt: skip


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Each one's share of all."""
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}
