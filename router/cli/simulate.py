"""`domicile simulate`: model servers that aren't there, with true timing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from router.cli import simulate_run
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.simulator.bedrock import BedrockSpec
    from router.simulator.replica import ReplicaSpec


@click.group("simulate")
def command() -> None:
    """Run a simulated fleet or a simulation."""


command.add_command(simulate_run.command)


@command.command("fleet")
@click.argument("replicas", metavar="REGION[/NAME][=PORT]...", nargs=-1, required=True)
@click.option("--model", "models", multiple=True, default=("tiny",), show_default=True,
              help="A model that every replica serves; repeatable.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds, equal answers.")
@click.option("--speed", type=simulate_run.Finite(0.01, 10_000), default=1.0, show_default=True,
              help="Engine seconds per second.")  # fmt: skip
@click.option("--transfers", is_flag=True,
              help="Let replicas hand each other caches of prompts, as vLLM does.")  # fmt: skip
@click.option("--bedrock", is_flag=True, help="Run a stand-in for Bedrock beside the replicas.")
@json_option
@failing
def fleet(
    replicas: tuple[str, ...],
    models: tuple[str, ...],
    seed: int,
    speed: float,
    transfers: bool,
    bedrock: bool,
    as_json: bool,
) -> None:
    """Run replicas that speak vLLM's API and metrics, on 127.0.0.1, until Ctrl-C.

    \b
    Prints where each listens, and a control URL to break them with:
      POST /kill?REPLICA, /freeze, /thaw, /heal; /fail takes a fault as JSON;
      GET /fleet and /seen. With --bedrock also the keys that it takes, and
      POST /bedrock/fail, /bedrock/heal; GET /bedrock/calls, /bedrock/trail.
    What to do with it: docs/simulation.md.

    \b
    Examples:
      domicile simulate fleet self:fra1 self:par1 --model my-model
      domicile simulate fleet self:fra1/a=8000 self:fra1/b=8001 --speed 10 --json
      domicile simulate fleet self:fra1 --bedrock

    Exit codes: 0 stopped, 1 a port is taken, 2 usage.
    """  # noqa: D301
    from router.config import ConfigError
    from router.simulator.fleet import run_fleet

    found = _specs(replicas, models, speed)
    specs = {name: replace(spec, transfers=transfers) for name, spec in found.items()}

    def announce(rows: list[dict[str, object]], control: str, stub: str) -> None:
        if as_json:
            keys = {"bedrock_credentials": _credentials()} if stub else {}
            print_json({"control": control, "bedrock": stub or None, **keys, "replicas": rows})
            return
        _show(rows, control)
        if stub:
            click.echo(f"bedrock: {stub}\nits credentials: {json.dumps(_credentials())}")

    spec = _bedrock(seed, speed) if bedrock else None
    try:
        asyncio.run(run_fleet(specs, seed=seed, bedrock=spec, announce=announce))
    except OSError as error:
        raise ConfigError(f"can't listen: {error.strerror}; choose another port") from None


def _specs(
    replicas: Sequence[str], models: tuple[str, ...], speed: float
) -> Mapping[str, ReplicaSpec]:
    from router.simulator.replica import ReplicaSpec

    specs: dict[str, ReplicaSpec] = {}
    for text in replicas:
        name, equals, port = text.partition("=")
        if not name or (equals and not (port.isdecimal() and int(port) < 65536)):
            raise click.UsageError(f"`{text}`: write a replica as self:fra1/a or self:fra1/a=8000")
        if name in specs:
            raise click.UsageError(f"`{name}` stands twice; name replicas as `{name}/a`")
        specs[name] = ReplicaSpec(models=models, speed=speed, port=int(port or 0))
    return specs


def _bedrock(seed: int, speed: float) -> BedrockSpec:
    """A stand-in that offers what the catalog knows; a global profile reaches its sources."""
    from regions.catalog import Catalog
    from router.simulator.bedrock import BedrockSpec
    from router.simulator.bedrock_world import BedrockWorld

    facts = Catalog.load().bedrock
    routes = {name: profile.routes for name, profile in facts.profiles.items()}
    for name, sources in facts.global_sources.items():
        routes[name] = dict.fromkeys(sources, tuple(sorted(sources)))
    served: dict[str, list[str]] = {}
    for model, offered in facts.models.items():
        for region in offered.runtime:
            served.setdefault(region, []).append(model)
    return BedrockSpec(BedrockWorld.of(routes, served), speed=speed, seed=seed)


def _credentials() -> Mapping[str, str]:
    """The keys that the stand-in takes, as an endpoint's `credentials` name them."""
    from router.simulator.bedrock import TEST_KEY, TEST_SECRET

    return {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}


def _show(rows: list[dict[str, object]], control: str) -> None:
    shown = [
        (str(row["name"]), str(row["region"]), str(row["url"]), " ".join(map(str, _list(row))))
        for row in rows
    ]
    print_table("simulated fleet", ("replica", "region", "url", "models"), shown)
    click.echo(f"control: {control}")


def _list(row: Mapping[str, object]) -> Sequence[object]:
    models = row["models"]
    return models if isinstance(models, list) else ()
