"""`domicile simulate run`: a load over fleets that aren't there, around the real selection."""

from __future__ import annotations

import sys
from math import isfinite
from pathlib import Path
from typing import cast

import click

from router.cli.failing import failing
from router.cli.shown import json_option


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
# the load
@click.option("--trace", "trace", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="A Mooncake (JSON lines) or Azure (CSV) trace, gzipped or not.")  # fmt: skip
@click.option("--compress", type=Finite(min=0, min_open=True), default=1.0,
              show_default=True, help="Play a trace so many times as fast.")  # fmt: skip
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
@click.option("--first", type=click.IntRange(min=1), default=None,
              help="Only so many requests.")  # fmt: skip
@click.option("--classes", default="", metavar="CLASS=SHARE,…",
              help="Shares of the load by class, as interactive=0.3,batch=0.2; the rest is "
              "standard. Without it there are no classes.")  # fmt: skip
@click.option("--tenants", default="", metavar="NAME=WEIGHT,…",
              help="Tenants that ask in turn, with their weights, as gold=2,silver=1.")  # fmt: skip
# the fleets
@click.option("--regions", default="self:fra1", show_default=True, metavar="REGION[=N],…",
              help="Regions; REGION=N fixes the replicas of one.")  # fmt: skip
@click.option("--replicas", default="8", show_default=True, metavar="N,…",
              help="Replicas of each region; several sizes are compared.")  # fmt: skip
@click.option("--layout", "layouts", multiple=True, default=("one",), show_default=True,
              help="How a region's replicas stand: one; pools=3:1, interactive to throughput (a "
              "third number: either); split=1:3, prefill to decode; repeatable.")  # fmt: skip
@click.option("--prefill-least", "least", type=click.IntRange(min=0), default=256,
              show_default=True, help="Least tokens of a prompt that is split.")  # fmt: skip
@click.option("--engine", "engines", multiple=True, metavar="[PART.]NAME=NUMBER",
              help="An engine's property, as kv_blocks=2048, or that of one part, as "
              "decode.max_num_seqs=128; repeatable. transfer_rate: tokens of KV cache a second "
              "over a replica's link.")  # fmt: skip
@click.option("--capacity", type=click.IntRange(min=1), default=None,
              help="Requests that a replica takes at most (`capacity.requests`).")  # fmt: skip
@click.option("--lose", "losses", multiple=True, metavar="REGION[/PART]=FROM-UNTIL",
              help="A region, or one part of it, is gone between two seconds; "
              "repeatable.")  # fmt: skip
# the routers
@click.option("--strategy", "strategies", multiple=True, default=("ours",), show_default=True,
              help="ours, least-load, round-robin, random, prefix, all; repeatable.")  # fmt: skip
@click.option("--routers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Routers of each region, which share nothing.")  # fmt: skip
@click.option("--queue", type=Finite(0.001, 86_400), default=10.0, show_default=True,
              help="Seconds that a request waits for room at most.")  # fmt: skip
@click.option("--priorities", default="", metavar="CLASS=SHARE,…",
              help="Least shares of room, as the router's own: "
              "standard=0.2,batch=0.05.")  # fmt: skip
@click.option("--stay", is_flag=True, help="Nobody leaves the own region.")
# the run
@click.option("--target", type=Finite(0.001, 86_400), default=2.0,
              show_default=True, help="Seconds to a good answer's first token.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds, equal results.")
@click.option("--plot", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="Write plots there: .svg, .png or .pdf.")  # fmt: skip
@json_option
@failing
def command(as_json: bool, plot: Path | None, **given: object) -> None:
    """Play a load in virtual time, and compare strategies, layouts and sizes.

    \b
    The order of endpoints, the choice of replicas, health, classes, pools, waiting and boundaries
    are the router's own code; engines, links and clients are simulated. See docs/simulation.md.

    \b
    Examples:
      domicile simulate run --trace mooncake.jsonl.gz --replicas 8,64 --strategy all \\
        --engine block_size=512 --engine kv_blocks=2048 --engine context=133120
      domicile simulate run --days 1 --day 1200 --rate 12 --replicas 5,6,7,8 \\
        --regions self:fra1,self:iad1,self:nrt1 --plot regions.svg
      domicile simulate run --days 1 --day 600 --rate 20 --replicas 8 --capacity 24 \\
        --classes interactive=0.3,batch=0.3 --layout one --layout pools=3:1 --layout split=1:1

    \b
    Exit codes: 0 done, 1 a file can't be read or written or a load can't be played, 2 usage,
      130 stopped by Ctrl-C: the runs that were done are shown.
    """  # noqa: D301
    from router.cli import simulating

    if plot is not None:
        simulating.check_plot(plot)
    asked = simulating.Asked(**given)  # type: ignore[arg-type]
    done = simulating.carried_out(asked)
    if plot is not None and done.results:
        simulating.draw(done.results, plot)
    simulating.show(done, as_json=as_json)
    if done.stopped:
        click.echo("stopped: the other runs were not made", err=True)
    sys.exit(done.code)
