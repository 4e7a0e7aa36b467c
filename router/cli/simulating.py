"""What `simulate run` was asked for: read from its options, carried out, and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Final

import click

from policies.model import Priority
from router.capacity.priority import PrioritiesSection
from router.cli.plausible import refuse_endless
from router.cli.progress import following
from router.cli.shown import print_json
from router.cli.simulated_tables import tables
from router.config import ConfigError, Limits
from router.simulator.layout import PARTS, Layout
from router.simulator.play import play
from router.simulator.plots import NoPlots, plot, writable
from router.simulator.scenario import ANY, Scenario, grounds
from router.simulator.station import Conduct, Outage
from router.simulator.strategies import STRATEGIES
from router.simulator.tally import Result
from router.simulator.timing import EngineSpec
from router.simulator.traces import (
    Days,
    Trace,
    TraceError,
    classed,
    days,
    ideal_hits,
    read,
    shaped,
    shared,
)

MOST: Final = 10_000_000
"""Requests of a made-up load: each takes some 200 bytes, and is made before anything is played."""
_KINDS: Final[Mapping[str, Callable[[str], int | float]]] = {
    one.name: int if isinstance(getattr(EngineSpec(), one.name), int) else float
    for one in fields(EngineSpec)
    if one.name != "jitter"  # which can't be leapt over
}
_ALIKE: Final = frozenset({"block_size", "context"})
"""What all parts have alike: prompts are the same for each."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `simulate run`, as click gives them; see its help."""

    trace: Path | None
    compress: float
    days: float | None
    day: float
    rate: float
    swing: float
    shape: str
    bound: float
    first: int | None
    classes: str
    tenants: str
    regions: str
    replicas: str
    layouts: tuple[str, ...]
    least: int
    engines: tuple[str, ...]
    capacity: int | None
    losses: tuple[str, ...]
    strategies: tuple[str, ...]
    routers: int
    queue: float
    priorities: str
    stay: bool
    target: float
    seed: int


@dataclass(slots=True)
class Done:
    """The runs that were made, and the hit rate of one shared cache beside each."""

    results: list[Result] = field(default_factory=list)
    ideals: list[float | None] = field(default_factory=list)
    stopped: bool = False

    @property
    def code(self) -> int:
        """The exit code."""
        if any(one.outside for one in self.results):
            return 1
        return 130 if self.stopped else 0


def carried_out(asked: Asked) -> Done:
    """Play what was asked for; a Ctrl-C ends it with what is done.

    Raises:
        click.UsageError: an option can't be used.
        ConfigError: a file can't be read, or a request is too large for an engine.
    """
    if (asked.trace is None) == (asked.days is None):
        raise click.UsageError("give either --trace FILE or --days N")
    scenarios, strategies = _scenarios(asked), _named(asked.strategies)
    conducts = [Conduct(one, not asked.stay, outages=_lost(asked, scenarios)) for one in strategies]
    done = Done()
    try:
        load = _load(asked, scenarios[0])
        for scenario in scenarios:
            refuse_endless(load, scenario)
        with following() as told:
            for number, (scenario, conduct) in enumerate(product(scenarios, conducts), 1):
                of = f"run {number} of {len(scenarios) * len(conducts)}"
                _play(done, scenario, load, conduct, _counting(told, of, load))
    except KeyboardInterrupt:
        done.stopped = True
    return done


def _counting(told: Callable[[str, int, int], None], of: str, load: Trace) -> Callable[[int], None]:
    def counted(count: int) -> None:
        told(of, count, len(load.asks))

    return counted


def _play(
    done: Done, scenario: Scenario, load: Trace, conduct: Conduct, told: Callable[[int], None]
) -> None:
    try:
        result = play(scenario, load, conduct, told).result
    except ValueError as error:
        raise ConfigError(
            f"an engine can't hold a request of this load: {error}; give --engine context=… and "
            "kv_blocks=… to match"
        ) from None
    parts = [part for ground in scenario.grounds for part in ground.parts]
    room = sum(part.replicas * part.engine.kv_blocks for part in parts)
    done.results.append(result)
    done.ideals.append(ideal_hits(load.asks, load.block, room) if load.block else None)


# -- reading -------------------------------------------------------------------------------


def _scenarios(asked: Asked) -> list[Scenario]:
    """One for each size and layout."""
    engine, engines = _engines(asked.engines)
    weights = {name: int(weight) for name, weight in pairs("--tenants", asked.tenants, whole)}
    if ANY in weights or any(":" in name for name in weights):
        raise click.UsageError(f"--tenants: `{ANY}` and names with `:` are taken; choose others")
    classes = _classes(asked)
    limits = Limits.model_validate({"target": f"{asked.target:f}s", "queue": f"{asked.queue:f}s"})
    settings = {} if asked.capacity is None else {"capacity_requests": str(asked.capacity)}
    found = []
    for layout, size in product(_layouts(asked), asked.replicas.split(",")):
        named = [n if "=" in n else f"{n}={size.strip()}" for n in asked.regions.split(",")]
        try:
            made = grounds(named, engine, layout, engines)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        found.append(
            Scenario(
                made, weights, settings, limits, classes, asked.least, asked.routers,
                target=asked.target, seed=asked.seed,
            )
        )  # fmt: skip
    there = {part.kind for one in found for ground in one.grounds for part in ground.parts}
    for part in sorted(engines.keys() - there):
        raise click.UsageError(f"--engine {part}.…: no --layout that is played has such a part")
    return found


def _layouts(asked: Asked) -> list[Layout]:
    try:
        found = [Layout.read(one) for one in dict.fromkeys(asked.layouts)]
    except ValueError as error:
        raise click.UsageError(f"--layout {error}") from None
    if not asked.classes and any(one.kind == "pools" for one in found):
        raise click.UsageError("--layout pools=… is by class: give --classes too")
    return found


def _classes(asked: Asked) -> PrioritiesSection | None:
    """The router's `priorities`, where the load has classes."""
    if not asked.classes:
        if asked.priorities:
            raise click.UsageError("--priorities are shares of classes: give --classes too")
        return None
    given = pairs("--priorities", asked.priorities, share)
    try:
        return PrioritiesSection.model_validate(dict(given))
    except ValueError as error:
        lines = [line.partition(" [type=")[0].strip() for line in str(error).splitlines()]
        told = ": ".join(lines[1:3])
        raise click.UsageError(f"--priorities {asked.priorities}: {told}") from None


def _engines(words: Sequence[str]) -> tuple[EngineSpec, dict[str, EngineSpec]]:
    """The engine of all parts, and those of parts that have another one."""
    common: dict[str, int | float] = {}
    apart: dict[str, dict[str, int | float]] = {}
    known = {part for parts in PARTS.values() for part in parts}
    for word in words:
        name, _, number = word.partition("=")
        part, dot, own = name.rpartition(".")
        if dot and (part not in known or own in _ALIKE):
            raise click.UsageError(
                f"--engine `{word}`: PART.NAME=NUMBER, a part of {', '.join(sorted(known))}; "
                f"{' and '.join(sorted(_ALIKE))} are the same for all"
            )
        changes = apart.setdefault(part, {}) if dot else common
        changes[own] = _property(word, own, number)
    engine = replace(EngineSpec(), **common)  # type: ignore[arg-type]
    return engine, {part: replace(engine, **own) for part, own in apart.items()}  # type: ignore[arg-type]


def _property(word: str, name: str, number: str) -> int | float:
    try:
        found = _KINDS[name](number)
    except (KeyError, ValueError):
        known = ", ".join(_KINDS)
        raise click.UsageError(f"--engine `{word}`: NAME=NUMBER, one of {known}") from None
    # What takes time may take none; of all else there must be some.
    least = 0 if name == "per_sequence" else 1e-9
    if not least <= found < 1e12:
        raise click.UsageError(f"--engine `{word}`: the number must be above 0, and finite")
    return found


def _lost(asked: Asked, scenarios: Sequence[Scenario]) -> tuple[Outage, ...]:
    found = []
    for word in asked.losses:
        where, _, when = word.partition("=")
        region, slash, part = where.partition("/")
        known = [g for scenario in scenarios for g in scenario.grounds if g.region == region]
        if not known or (slash and part not in {p.kind for g in known for p in g.parts}):
            raise click.UsageError(f"--lose `{word}`: no such region, or part of it, is simulated")
        began, _, ended = when.partition("-")
        try:
            times = float(began), float(ended)
        except ValueError:
            times = 0.0, 0.0
        if not 0 <= times[0] < times[1] < float("inf"):
            raise click.UsageError(f"--lose `{word}`: write the seconds as {where}=600-900")
        found.append(Outage(region, *times, part))
    return tuple(found)


def _named(strategies: Sequence[str]) -> list[str]:
    if "all" in strategies:
        return list(STRATEGIES)
    for name in strategies:
        if name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise click.UsageError(f"no strategy `{name}`; there are {known} and all")
    return list(dict.fromkeys(strategies))


def _load(asked: Asked, scenario: Scenario) -> Trace:
    """The requests, the same for every run."""
    homes = [ground.region for ground in scenario.grounds]
    if asked.trace is not None:
        found = _read(asked.trace, homes, scenario.grounds[0].engine).compressed(asked.compress)
    else:
        found = _made(asked, scenario)
    found = found if asked.first is None else found.first(asked.first)
    if not found.asks:
        raise click.UsageError("so short a load has no requests: raise --days, --day or --rate")
    if asked.tenants:
        found = shared(found, ANY, list(scenario.weights))
    return classed(found, shares(asked.classes), asked.seed) if asked.classes else found


def _read(file: Path, homes: Sequence[str], engine: EngineSpec) -> Trace:
    """A trace's requests, dealt to the regions in turn."""
    try:
        trace = read(file)
    except TraceError as error:
        raise ConfigError(str(error)) from None
    if trace.block and trace.block != engine.block_size:
        raise click.UsageError(
            f"the trace names blocks of {trace.block} tokens and the engine has some of "
            f"{engine.block_size}; give --engine block_size={trace.block} and kv_blocks, context "
            "to match"
        )
    asks = tuple(
        replace(ask, tenant=ANY, region=homes[number % len(homes)])
        for number, ask in enumerate(trace.asks)
    )
    return replace(trace, asks=asks)


def _made(asked: Asked, scenario: Scenario) -> Trace:
    phases = tuple((ground.region, ground.phase) for ground in scenario.grounds)
    seconds = (asked.days or 0.0) * asked.day
    count = seconds * asked.rate * len(phases)
    if count > MOST:
        raise click.UsageError(
            f"that is {count:,.0f} requests, and {MOST:,} are the most: shorten the day (--day "
            "1200 keeps its shape), or lower --days or --rate"
        )
    load = Days(phases, asked.rate, seconds, asked.swing, asked.day, asked.bound)
    lengths = shaped("chat" if asked.shape == "chat" else "long")
    return days(load, lengths, scenario.seed)


def shares(text: str) -> dict[Priority, float]:
    """Shares of the load by class; what is left of 1 is standard."""
    found: dict[Priority, float] = {}
    for name, part in pairs("--classes", text, share):
        try:
            found[Priority.named(name)] = part
        except ValueError as error:
            raise click.UsageError(f"--classes {text}: {error}") from None
    left = 1 - sum(found.values())
    if left < -1e-9 or (Priority.STANDARD in found and left > 1e-9):
        raise click.UsageError(f"--classes {text}: the shares come to {1 - left:g}, not to 1")
    if Priority.STANDARD not in found and left > 1e-9:
        found[Priority.STANDARD] = left
    return {one: found[one] for one in Priority if found.get(one)}


def share(text: str) -> float:
    """A number from 0 to 1. ValueError if it is none."""
    if not 0 <= (found := float(text)) <= 1:
        raise ValueError(text)
    return found


def whole(text: str) -> float:
    """A whole number from 1 to 1000. ValueError if it is none."""
    if not 1 <= (found := int(text)) <= 1000:
        raise ValueError(text)
    return found


def pairs(option: str, text: str, number: Callable[[str], float]) -> list[tuple[str, float]]:
    """The pairs of `a=1,b=2`; none of an empty text."""
    found: dict[str, float] = {}
    for one in text.split(",") if text else ():
        name, _, said = one.strip().partition("=")
        try:
            value: float | None = number(said)
        except ValueError:
            value = None
        if value is None or not name or name in found:
            kind = (number.__doc__ or "").partition(".")[0].lower()
            raise click.UsageError(
                f"{option} `{one}`: write NAME=NUMBER, each name once; the number is {kind}"
            )
        found[name] = value
    return list(found.items())


# -- showing -------------------------------------------------------------------------------


def check_plot(file: Path) -> None:
    """Whether a plot can be written there, before hours are played for it."""
    try:
        writable(file)
    except NoPlots as error:
        raise ConfigError(str(error)) from None


def draw(results: Sequence[Result], file: Path) -> None:
    """Write the plots."""
    try:
        plot(results, file)
    except NoPlots as error:
        raise ConfigError(str(error)) from None
    click.echo(f"plots: {file}", err=True)


def show(done: Done, *, as_json: bool) -> None:
    """Tables, or JSON whose names stay: new ones may come."""
    if as_json:
        rows: list[Mapping[str, object]] = [
            {**one.row(), "ideal_hit_rate": None if ideal is None else round(ideal, 4)}
            for one, ideal in zip(done.results, done.ideals, strict=True)
        ]
        print_json({"runs": rows})
    elif done.results:
        tables(done.results, done.ideals)
    if any(one.outside for one in done.results):
        click.echo("requests left their boundary: this is a fault of the router", err=True)
