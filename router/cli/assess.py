"""`domicile assess`: what someone runs today, against a boundary."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.asking import at_option, load_catalog, misread, own_option
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from regions.catalog import Catalog
    from router.assess.routes import Assessment, Bounds, Crossing, Route
    from router.assess.trail import Trail


@click.command("assess")
@click.option("--litellm", "config", metavar="FILE", type=click.Path(path_type=Path),
              help="A LiteLLM proxy's config.yaml.")  # fmt: skip
@click.option("--cloudtrail", "folder", metavar="DIR", type=click.Path(path_type=Path),
              help="A folder of CloudTrail log files, *.json or *.json.gz.")  # fmt: skip
@click.option("--within", metavar="BOUNDARY", required=True, help="Judge where calls run.")
@click.option("--retain-within", metavar="BOUNDARY", help="Judge where anything is kept.")
@click.option("--operated-by", metavar="COUNTRIES", help="Judge whose law reaches the operators.")
@click.option("--env", "environment", metavar="NAME=VALUE", multiple=True,
              help="What `os.environ/NAME` in the config stands for; repeatable.")  # fmt: skip
@own_option
@at_option
@json_option
@failing
@misread
def command(  # noqa: PLR0913, PLR0917 - click gives each option its own parameter
    config: Path | None,
    folder: Path | None,
    within: str,
    retain_within: str | None,
    operated_by: str | None,
    environment: tuple[str, ...],
    own: tuple[str, ...],
    at: float,
    as_json: bool,
) -> None:
    """Check what a LiteLLM config or CloudTrail shows today.

    \b
    --litellm: every deployment with its footprint, verdict and line, and the
      fallbacks that cross the boundary. What the file leaves to the proxy's
      environment is unknown unless given with --env; what no LiteLLM setting
      says, as an Azure SKU, may stand in `model_info: {domicile: {sku: …}}`.
    --cloudtrail: Bedrock calls by the region they actually ran in.

    \b
    Examples:
      domicile assess --litellm config.yaml --within EU
      domicile assess --litellm config.yaml --within EEA --env AWS_REGION=eu-west-1
      domicile assess --cloudtrail ./AWSLogs --within EU --json

    \b
    Exit codes: 0 all inside, 3 something is outside, 4 something is unknown, or
      nothing was found, 1 a file can't be read, 2 usage.
    """  # noqa: D301
    from router.assess.routes import Bounds

    bounds = Bounds(within, at, retain_within, operated_by)
    if config is not None and folder is None:
        sys.exit(_litellm(config, _pairs(environment), load_catalog(own), bounds, as_json))
    if folder is None or config is not None:
        raise click.UsageError("give one of `--litellm FILE` and `--cloudtrail DIR`")
    if retain_within is not None or operated_by is not None:
        raise click.UsageError("CloudTrail shows where calls ran: only `--within` applies")
    sys.exit(_cloudtrail(folder, load_catalog(own), bounds, as_json))


def _pairs(texts: Sequence[str]) -> Mapping[str, str]:
    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"`--env {text}` has no value; write `--env NAME=VALUE`")
    return dict(text.split("=", 1) for text in texts)


# -- LiteLLM -------------------------------------------------------------------------------


def _litellm(
    path: Path, environment: Mapping[str, str], catalog: Catalog, bounds: Bounds, as_json: bool
) -> int:
    from router.assess.litellm import read
    from router.assess.routes import assess

    found = assess(read(path, environment), catalog, bounds)
    if as_json:
        print_json(_assessment_json(found))
    else:
        _print_assessment(found)
    return found.exit_code


def _assessment_json(found: Assessment) -> dict[str, object]:
    return {
        "file": found.file,
        "within": found.bounds.within,
        "exit_code": found.exit_code,
        "routes": [_route_json(route) for route in found.routes],
        "fallbacks": [_crossing_json(crossing) for crossing in found.crossings],
        "mixed_groups": list(found.mixed),
        "also_sent_prompts": [
            {"kind": one.kind, "name": one.name, "line": one.line} for one in found.bystanders
        ],
        "not_read": list(found.not_read),
    }


def _route_json(route: Route) -> dict[str, object]:
    from router.cli.answers import judgement_json

    return {
        "model_name": route.deployment.group,
        "model": route.deployment.params.get("model"),
        "line": route.deployment.line,
        "source": route.answer.endpoint.source,
        "process": list(route.where),
        "verdict": route.verdict.value,
        "reason": route.reason,
        "judgements": [judgement_json(one) for one in route.answer.judgements],
    }


def _crossing_json(crossing: Crossing) -> dict[str, object]:
    return {
        "kind": crossing.fallback.kind,
        "group": crossing.fallback.group,
        "group_verdict": crossing.group.value,
        "targets": [{"group": n, "verdict": v.value} for n, v in crossing.targets],
        "crosses": crossing.crosses,
        "line": crossing.fallback.line,
    }


def _print_assessment(found: Assessment) -> None:
    from router.cli.answers import places_short

    rows = [
        (
            str(route.deployment.line),
            route.deployment.group,
            route.deployment.params.get("model", "?"),
            places_short(route.answer.footprint.process),
            route.verdict.upper(),
            route.reason,
        )
        for route in found.routes
    ]
    columns = ("line", "model_name", "model", "may run in", "verdict", "why")
    print_table(f"{found.file} within {found.bounds.within}", columns, rows)
    for text in _remarks(found):
        click.echo(text)


def _remarks(found: Assessment) -> list[str]:
    lines = [
        f"{found.file}:{one.fallback.line}: {one.fallback.kind} of `{one.fallback.group}` "
        f"{'CROSSES the boundary' if one.crosses else 'goes'} to "
        + ", ".join(f"`{name}` ({verdict})" for name, verdict in one.targets)
        for one in found.crossings
    ]
    lines += [f"`{g}` is balanced over deployments inside and not inside" for g in found.mixed]
    for one in found.bystanders:
        does = "processes prompts somewhere" if one.kind == "guardrail" else "is sent prompts"
        judged = "UNKNOWN" if found.judged(one) else "not judged without --retain-within"
        lines.append(f"{found.file}:{one.line}: {one.kind} `{one.name}` {does}: {judged}")
    lines += [f"not in this file: {what}: UNKNOWN" for what in found.not_read]
    if not found.routes:
        lines.append(f"{found.file}: no deployment in `model_list`: nothing is known")
    return lines


# -- CloudTrail ----------------------------------------------------------------------------


def _cloudtrail(folder: Path, catalog: Catalog, bounds: Bounds, as_json: bool) -> int:
    from router.assess.trail import assess_folder

    trail = assess_folder(folder, catalog, bounds.within, bounds.at)
    if as_json:
        print_json(_trail_json(trail, bounds))
    else:
        _print_trail(trail, bounds)
    return trail.exit_code


def _trail_json(trail: Trail, bounds: Bounds) -> dict[str, object]:
    return {
        "folder": str(trail.folder),
        "within": bounds.within,
        "exit_code": trail.exit_code,
        "calls": trail.calls,
        "rows": [
            {
                "source": row.source,
                "model": row.model,
                "region": row.region,
                "basis": row.basis,
                "calls": row.calls,
                "verdict": row.verdict.value,
                "reason": row.reason,
            }
            for row in trail.rows
        ],
        "counts": trail.counts(),
        "notes": list(trail.notes),
    }


def _print_trail(trail: Trail, bounds: Bounds) -> None:
    rows = [
        (row.source, row.model, row.region or "?", str(row.calls), row.basis, row.verdict.upper(),
         row.reason)
        for row in trail.rows
    ]  # fmt: skip
    columns = ("called in", "model", "ran in", "calls", "known by", "verdict", "why")
    print_table(f"{trail.folder} within {bounds.within}: {trail.calls} calls", columns, rows)
    for note in trail.notes:
        click.echo(f"note: {note}")
