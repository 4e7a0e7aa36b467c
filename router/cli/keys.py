"""`domicile keys`: make API keys. A key is shown once; only its digest is kept."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]*")


@click.group("keys")
def command() -> None:
    """Make API keys."""


@command.command("new")
@click.option("--id", "id_", required=True, help="The key's public id, as shown in the log.")
@click.option("--tenant", required=True, help="The tenant it belongs to.")
@click.option("--app", default=None, help="The app that uses it.")
@click.option("--role", type=click.Choice(["application", "auditor", "operator"]),
              default="application", show_default=True, help="What it may do.")  # fmt: skip
@click.option("--view-from", "view_from", metavar="BOUNDARY",
              help="Where an auditor sits, as `DE`; without it there are only counts.")  # fmt: skip
@click.option("--days", type=click.IntRange(1, 3650), default=None, help="Valid for so many days.")
@json_option
@failing
def new(
    id_: str,
    tenant: str,
    app: str | None,
    role: str,
    view_from: str | None,
    days: int | None,
    as_json: bool,
) -> None:
    """Make a key: print it once, with the line for the keys file.

    \b
    Examples:
      domicile keys new --id crm-1 --tenant clinic
      domicile keys new --id audit-1 --tenant "*" --role auditor --view-from DE

    Exit codes: 0 made, 2 usage.
    """  # noqa: D301
    from router.auth import new_key

    if view_from is not None and role != "auditor":
        raise click.UsageError("`--view-from` is for `--role auditor`")

    key, digest = new_key(os.urandom)
    line: dict[str, str] = {"id": id_, "sha256": digest, "tenant": tenant}
    if app is not None:
        line["app"] = app
    if role != "application":
        line["role"] = role
    if view_from is not None:
        line["view_from"] = view_from
    if days is not None:
        line["expires"] = (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    if as_json:
        print_json({"key": key, "line": line})
        return
    click.echo(f"key (shown once): {key}")
    click.echo("add to the keys file:")
    click.echo("  - {" + ", ".join(f"{name}: {_yaml(value)}" for name, value in line.items()) + "}")


def _yaml(value: str) -> str:
    """A text as it stands in YAML: plain when it is a word, else quoted, as `"*"`."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)
