"""`domicile tenant`: what a change of a tenant's boundary would mean."""

from __future__ import annotations

import os
import sys
import time

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table


@click.group("tenant")
def command() -> None:
    """Plan what moves with a tenant."""


@command.command("move")
@click.argument("tenant", metavar="TENANT")
@click.option("--to", "to", metavar="BOUNDARY", required=True,
              help="The boundary its grant is to become, as `CH` or `EU + UK`.")  # fmt: skip
@click.option("--plan", "plan", is_flag=True, required=True,
              help="Only say what would be: nothing else is there yet.")  # fmt: skip
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@json_option
@failing
def move(tenant: str, to: str, plan: bool, config: str | None, as_json: bool) -> None:
    """List what of a tenant's would end up outside another boundary.

    \b
    Looks at everything the router writes to, at the router itself, and at the
    endpoints of the tenant's models. Nothing is moved or changed.

    \b
    Examples:
      domicile tenant move bank --to CH --plan
      domicile tenant move bank --to "EU + UK" --plan --json

    Exit codes: 0 all of it is inside, 1 no such tenant or boundary, 3 something is outside.
    """  # noqa: D301
    from router.config import find
    from router.decisions.moving import plan_move
    from router.settings.loading import load_snapshot

    path, now = find(config, os.environ), time.time()
    snapshot = load_snapshot(path, os.environ, now)
    found = plan_move(snapshot, tenant, to, path.parent, now)
    if as_json:
        print_json(
            [
                {"kind": one.kind, "name": one.name, "places": list(one.places),
                 "inside": one.inside, "held": one.held}
                for one in found
            ]
        )  # fmt: skip
    else:
        rows = [
            (one.kind, one.name, ", ".join(one.places), "inside" if one.inside else "OUTSIDE",
             one.held)
            for one in found
        ]  # fmt: skip
        print_table(f"`{tenant}` within {to}", ("what", "name", "where", "then", "holds"), rows)
    sys.exit(3 if any(not one.inside for one in found) else 0)
