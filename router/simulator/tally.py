"""What a simulated load came to: latencies, cache hits, use, refusals, places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.model import Priority
from router.simulator.leaping import Done, LeapingEngine
from router.simulator.spread import Spread
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask

CLASS: Final = "class:"
TENANT: Final = "tenant:"


def cold_prefill(spec: EngineSpec, prompt: int) -> float:
    """Seconds to the first token on an idle engine with an empty cache."""
    steps = -(-prompt // spec.batch_tokens)
    return steps * spec.step_floor + prompt / spec.prefill_rate


@dataclass(slots=True)
class Strand:
    """What came of the requests of one class, or of one tenant. Times in seconds.

    `waited` holds only those that waited for room; `shed` are those told to come again, or never.
    """

    asked: int = 0
    answers: int = 0
    shed: int = 0
    lost: int = 0
    good: int = 0
    tokens: int = 0
    ttft: Spread = field(default_factory=Spread)
    waited: Spread = field(default_factory=Spread)


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
        moved: caches that went from one half of an endpoint to the other, by how long it took.
        strands: the same by class, and by tenant where `tenants`, as `kinds` names them.
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
    moved: Spread = field(default_factory=Spread)
    strands: dict[str, Strand] = field(default_factory=dict)
    tenants: bool = False

    def kinds(self, ask: Ask) -> tuple[str, ...]:
        """What a request counts under, beside all: its class and its tenant, if there are any."""
        kinds = () if ask.priority is None else (f"{CLASS}{ask.priority.label}",)
        return (*kinds, f"{TENANT}{ask.tenant}") if self.tenants else kinds

    def of(self, ask: Ask) -> Iterator[Strand]:
        """The strands of a request."""
        for kind in self.kinds(ask):
            yield self.strands.setdefault(kind, Strand())

    def came(self, ask: Ask) -> None:
        """A request came."""
        self.asked[ask.tenant] += 1
        for strand in self.of(ask):
            strand.asked += 1

    def waits(self, ask: Ask, seconds: float) -> None:
        """A request waited for room, and got it."""
        self.waited.add(seconds)
        for strand in self.of(ask):
            strand.waited.add(seconds)

    def refuse(self, ask: Ask) -> None:
        """A request was refused for good."""
        self.refused[ask.tenant] += 1
        for strand in self.of(ask):
            strand.shed += 1

    def lose(self, ask: Ask) -> None:
        """Nobody answered a request."""
        self.lost += 1
        for strand in self.of(ask):
            strand.lost += 1

    def first(self, ask: Ask, seconds: float, spec: EngineSpec) -> None:
        """A first token reached its router."""
        self.ttft.add(seconds)
        self.queueing.add(max(0.0, seconds - cold_prefill(spec, ask.prompt)))
        good = seconds <= self.target
        self.good[ask.tenant] += good
        for strand in self.of(ask):
            strand.ttft.add(seconds)
            strand.good += good

    def whole(self, ask: Ask, region: str, now: float) -> None:
        """An answer ended."""
        self.answers += 1
        self.tokens[ask.tenant] += ask.prompt + ask.output
        for strand in self.of(ask):
            strand.answers += 1
            strand.tokens += ask.prompt + ask.output
        self.served[region] += 1
        self.spilled += region != ask.region
        self.last = max(self.last, now)


@dataclass(frozen=True, slots=True)
class Result:
    """One run's numbers, as they are shown. Shares are 0 to 1, times seconds.

    `hours` are replica-hours, the cost of a fleet that is paid for whether used or not; `moved`
    caches that went between two halves; `classes`, `tenants` and `parts` the same by those.
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
    layout: str
    moved: int
    transfer_p50: float
    transfer_p99: float
    classes: Mapping[str, Mapping[str, object]]
    tenants: Mapping[str, Mapping[str, object]]
    parts: Mapping[str, Mapping[str, object]]

    def row(self) -> dict[str, object]:
        """The numbers by name, rounded to what they are good for."""
        return {name: _shown(getattr(self, name)) for name in self.__slots__}


def _shown(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _shown(one) for name, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def result(
    strategy: str, layout: str, tally: Tally, engines: Iterable[tuple[str, LeapingEngine]],
    seconds: float,
) -> Result:  # fmt: skip
    """The numbers of a run that took so many virtual seconds; each engine with its part's kind."""
    found = list(engines)
    parts = [(kind, one.done) for kind, one in found]
    done = [one for _, one in parts]
    gaps = Spread().join(one.gaps for one in done)
    prompt = sum(one.prompt for one in done)
    asked = tally.asked.total()
    return Result(
        strategy, len(done), asked, tally.answers, tally.refused.total(), tally.lost,
        tally.good.total() / asked if asked else 1.0,
        tally.good.total() / seconds if seconds else 0.0,
        tally.ttft.at(0.5), tally.ttft.at(0.9), tally.ttft.at(0.99),
        tally.queueing.at(0.5), tally.queueing.at(0.99),
        gaps.at(0.5), gaps.at(0.99),
        sum(one.hits for one in done) / prompt if prompt else 0.0,
        _use(done, seconds),
        tally.spilled / tally.answers if tally.answers else 0.0,
        tally.outside, seconds, len(done) * seconds / 3600,
        sum(one.totals.preemptions for _, one in found),
        layout, tally.moved.count, tally.moved.at(0.5), tally.moved.at(0.99),
        _strands(CLASS, tally, done), _strands(TENANT, tally, done), _parts(parts, seconds),
    )  # fmt: skip


def _use(done: Sequence[Done], seconds: float) -> float:
    """The share of a time that engines worked."""
    return sum(one.busy for one in done) / (seconds * len(done)) if seconds and done else 0.0


def _strands(prefix: str, tally: Tally, done: Sequence[Done]) -> dict[str, Mapping[str, object]]:
    """Every class's or tenant's numbers, by name: the most urgent class, the first tenant first."""
    order = [f"{CLASS}{one.label}" for one in Priority]
    names = [name for name in tally.strands if name.startswith(prefix)]
    names.sort(key=lambda name: order.index(name) if name in order else 0)
    return {name.removeprefix(prefix): _strand(name, tally, done) for name in names}


def _strand(name: str, tally: Tally, done: Sequence[Done]) -> Mapping[str, object]:
    one, total = tally.strands[name], tally.tokens.total()
    gaps = Spread().join(each.apart[name] for each in done if name in each.apart)
    return {
        "requests": one.asked, "answers": one.answers, "shed": one.shed, "lost": one.lost,
        "good": one.good / one.asked if one.asked else 1.0,
        "ttft_p50": one.ttft.at(0.5), "ttft_p90": one.ttft.at(0.9), "ttft_p99": one.ttft.at(0.99),
        "itl_p50": gaps.at(0.5), "itl_p99": gaps.at(0.99),
        "waited": one.waited.count, "waited_p99": one.waited.at(0.99),
        "tokens": one.tokens / total if total else 0.0,
    }  # fmt: skip


def _parts(parts: Sequence[tuple[str, Done]], seconds: float) -> dict[str, Mapping[str, object]]:
    """How each part of a layout was used, over all regions."""
    found: dict[str, list[Done]] = {}
    for kind, one in parts:
        found.setdefault(kind, []).append(one)
    return {
        kind: {
            "replicas": len(done), "jobs": sum(one.jobs for one in done),
            "utilisation": _use(done, seconds),
        }
        for kind, done in found.items()
    }  # fmt: skip


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Each one's share of all."""
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}
