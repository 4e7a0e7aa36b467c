"""`domicile simulate run`: a load over fleets that aren't there, around the real selection."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.simulator.scenario import Scenario
    from router.simulator.tally import Result
    from router.simulator.timing import EngineSpec
    from router.simulator.traces import Trace

_COLUMNS = {
    "strategy": "strategy", "replicas": "size", "good": "good", "ttft_p50": "ttft p50",
    "ttft_p99": "ttft p99", "queueing_p99": "queue p99", "itl_p99": "itl p99",
    "hit_rate": "hits", "utilisation": "use", "spilled": "spilled", "refused": "refused",
    "hours": "hours",
}  # fmt: skip


class Finite(click.FloatRange):
    """A range without what is no number to play with: `nan` lies in every range, `inf` in open
    ones."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or a usage error."""
        found = float(super().convert(cast("float", value), param, ctx))
        if not isfinite(found):
            self.fail(f"{value} is no finite number.", param, ctx)
        return found


@click.command("run")
@click.option("--trace", "traces", type=click.Path(path_type=Path), default=None,
              help="A Mooncake (JSON lines) or Azure (CSV) trace, gzipped or not.")  # fmt: skip
@click.option("--days", type=Finite(min=0, min_open=True), default=None,
              help="Days of made-up load instead, by each region's clock.")  # fmt: skip
@click.option("--day", type=Finite(min=60), default=86_400.0, show_default=True,
              help="Seconds of one such day.")  # fmt: skip
@click.option("--rate", type=Finite(min=0, min_open=True), default=1.0,
              show_default=True, help="Requests a second and region, the day's mean.")  # fmt: skip
@click.option("--swing", type=Finite(0, 1), default=0.8, show_default=True,
              help="How far the busiest hour lies above the mean.")  # fmt: skip
@click.option("--shape", type=click.Choice(["chat", "long"]), default="chat", show_default=True,
              help="Lengths of a made-up load.")  # fmt: skip
@click.option("--bound", type=Finite(0, 1), default=0.2, show_default=True,
              help="Share of a made-up load that may not leave its region.")  # fmt: skip
@click.option("--regions", default="self:fra1", show_default=True,
              help="Regions, with commas; REGION=N fixes the replicas of one.")  # fmt: skip
@click.option("--replicas", default="8", show_default=True,
              help="Replicas of each region; several sizes with commas.")  # fmt: skip
@click.option("--strategy", "strategies", multiple=True, default=("ours",), show_default=True,
              help="ours, least-load, round-robin, random, prefix, all; repeatable.")  # fmt: skip
@click.option("--engine", "engines", multiple=True, metavar="NAME=NUMBER",
              help="An engine's property, as kv_blocks=2048; repeatable.")  # fmt: skip
@click.option("--compress", type=Finite(min=0, min_open=True), default=1.0,
              show_default=True, help="Play a trace so many times as fast.")  # fmt: skip
@click.option("--first", type=click.IntRange(min=1), default=None,
              help="Only so many requests.")  # fmt: skip
@click.option("--routers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Routers of each region, which share nothing.")  # fmt: skip
@click.option("--target", type=Finite(min=0, min_open=True), default=2.0,
              show_default=True, help="Seconds to a good answer's first token.")  # fmt: skip
@click.option("--stay", is_flag=True, help="Nobody leaves the own region.")
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds, equal results.")
@click.option("--plot", type=click.Path(path_type=Path), default=None,
              help="Write plots there: .svg, .png or .pdf.")  # fmt: skip
@json_option
@failing
def command(  # noqa: PLR0913, PLR0917 - one for each option
    traces: Path | None, days: float | None, day: float, rate: float, swing: float, shape: str,
    bound: float, regions: str, replicas: str, strategies: tuple[str, ...],
    engines: tuple[str, ...], compress: float, first: int | None, routers: int, target: float,
    stay: bool, seed: int, plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Play a load in virtual time, and compare strategies and sizes.

    \b
    The order of endpoints, the choice of replicas, health, waiting and boundaries are the
    router's own code; engines, links and clients are simulated. See docs/simulation.md.

    \b
    Examples:
      domicile simulate run --trace mooncake.jsonl.gz --replicas 8,64 --strategy all
      domicile simulate run --days 1 --day 1200 --rate 12 --replicas 5,6,7,8 \\
        --regions self:fra1,self:iad1,self:nrt1 --plot regions.svg

    Exit codes: 0 done, 1 a file can't be read or written, 2 usage.
    """  # noqa: D301
    if (traces is None) == (days is None):
        raise click.UsageError("give either --trace FILE or --days N")
    scenarios = _scenarios(regions, replicas, _engine(engines), routers, target, seed)
    loads = []
    for scenario in scenarios:
        if traces is not None:
            load = _read(traces, scenario, first, compress)
        else:
            load = _made(scenario, (days or 0.0) * day, day, rate, swing, shape, bound)
            load = load if first is None else load.first(first)
        loads.append(load)
    results, ideals = _run(scenarios, loads, _named(strategies), stay)
    if plot is not None:
        _plot(results, plot)
    _show(results, ideals, as_json)


def _engine(words: Sequence[str]) -> EngineSpec:
    from router.simulator.timing import EngineSpec

    kinds = {one.name: type(getattr(EngineSpec(), one.name)) for one in fields(EngineSpec)}
    changes: dict[str, int | float] = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            changes[name] = kinds[name](number)
        except (KeyError, ValueError):
            known = ", ".join(kinds)
            raise click.UsageError(f"--engine `{word}`: NAME=NUMBER, one of {known}") from None
    return replace(EngineSpec(), **changes)  # type: ignore[arg-type]


def _scenarios(
    regions: str, replicas: str, engine: EngineSpec, routers: int, target: float, seed: int
) -> list[Scenario]:
    from router.config import Limits
    from router.simulator.scenario import Scenario, grounds

    found = []
    for size in replicas.split(","):
        named = [one if "=" in one else f"{one}={size.strip()}" for one in regions.split(",")]
        try:
            made = grounds(named, engine)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        limits = Limits(target=f"{target}s")  # type: ignore[arg-type]
        found.append(Scenario(made, limits=limits, routers=routers, target=target, seed=seed))
    return found


def _read(file: Path, scenario: Scenario, first: int | None, compress: float) -> Trace:
    """A trace's requests, dealt to the regions in turn."""
    from router.config import ConfigError
    from router.simulator.traces import TraceError, read

    try:
        trace = read(file)
    except TraceError as error:
        raise ConfigError(str(error)) from None
    homes = [ground.region for ground in scenario.grounds]
    size = scenario.grounds[0].engine.block_size
    if trace.block and trace.block != size:
        raise click.UsageError(
            f"the trace names blocks of {trace.block} tokens and the engine has some of {size}; "
            f"give --engine block_size={trace.block} and kv_blocks, context to match"
        )
    asks = tuple(
        replace(ask, tenant="any", region=homes[number % len(homes)])
        for number, ask in enumerate(trace.asks[:first])
    )
    return replace(trace, asks=asks).compressed(compress)


def _made(
    scenario: Scenario, seconds: float, day: float, rate: float, swing: float, shape: str,
    bound: float,
) -> Trace:  # fmt: skip
    from router.simulator.traces import Days, days, shaped

    phases = tuple((ground.region, ground.phase) for ground in scenario.grounds)
    load = Days(phases, rate, seconds, swing, day, bound)
    lengths = shaped("chat" if shape == "chat" else "long")
    return days(load, lengths, scenario.seed)


def _named(strategies: Sequence[str]) -> list[str]:
    from router.simulator.strategies import STRATEGIES

    if "all" in strategies:
        return list(STRATEGIES)
    for name in strategies:
        if name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise click.UsageError(f"no strategy `{name}`; there are {known} and all")
    return list(strategies)


def _run(
    scenarios: Sequence[Scenario], loads: Sequence[Trace], strategies: Sequence[str], stay: bool
) -> tuple[list[Result], list[float | None]]:
    """Every strategy at every size; beside each result the hit rate of one shared cache."""
    from router.config import ConfigError
    from router.simulator.play import play
    from router.simulator.station import Conduct
    from router.simulator.traces import ideal_hits

    results: list[Result] = []
    ideals: list[float | None] = []
    for (scenario, load), strategy in product(zip(scenarios, loads, strict=True), strategies):
        if sys.stderr.isatty():
            click.echo(f"{strategy}, {len(load.asks)} requests …", err=True)
        try:
            results.append(play(scenario, load, Conduct(strategy, spill=not stay)).result)
        except ValueError as error:
            raise ConfigError(f"an engine can't hold a request of this load: {error}") from None
        room = sum(ground.replicas * ground.engine.kv_blocks for ground in scenario.grounds)
        ideals.append(ideal_hits(load.asks, load.block, room) if load.block else None)
    return results, ideals


def _plot(results: Sequence[Result], file: Path) -> None:
    from router.config import ConfigError
    from router.simulator.plots import NoPlots, plot

    try:
        plot(results, file)
    except NoPlots as error:
        raise ConfigError(str(error)) from None


def _show(results: Sequence[Result], ideals: Sequence[float | None], as_json: bool) -> None:
    rows = [one.row() for one in results]
    for row, ideal in zip(rows, ideals, strict=True):
        row["ideal_hit_rate"] = None if ideal is None else round(ideal, 4)
    if as_json:
        print_json({"runs": rows})
        return
    shown = [[str(row[name]) for name in _COLUMNS] for row in rows]
    print_table("simulated load", tuple(_COLUMNS.values()), shown)
    told = [f"{ideal:.4f}" for ideal in dict.fromkeys(ideals) if ideal is not None]
    if told:
        click.echo(f"hit rate of one shared cache of the same total size: {', '.join(told)}")
    if any(one.outside for one in results):
        click.echo("requests left their boundary: this is a fault of the router", err=True)
        sys.exit(1)
