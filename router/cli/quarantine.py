"""`domicile quarantine`: take something out of a running router at once, or let it in again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from router.cli.failing import failing
from router.cli.listener import post, reached
from router.cli.reaching import door_options
from router.cli.shown import json_option, print_json


@click.command("quarantine")
@click.argument("what", type=click.Choice(["endpoint", "place", "operator", "key"]))
@click.argument("name", metavar="NAME")
@click.option("--reason", required=True, help="Why; it stands in the region log.")
@click.option("--lift", is_flag=True, help="Let it be used again.")
@door_options
@json_option
@failing
def command(
    what: str,
    name: str,
    reason: str,
    lift: bool,
    config: str | None,
    admin: str | None,
    key_file: Path | None,
    as_json: bool,
) -> None:
    """Take an endpoint, a place, an operator or a key out of a running router, now.

    \b
    Requests in flight feel it at their next attempt; it outlasts a restart, and
    stands in the region log. It only ever narrows.

    \b
    Examples:
      domicile quarantine endpoint sonnet-eu --reason "incident 4711"
      domicile quarantine place aws:eu-south-2 --reason "flood"
      domicile quarantine operator US --reason "court order"
      domicile quarantine place aws:eu-south-2 --reason "all clear" --lift

    Exit codes: 0 done, 1 refused or no answer, 2 usage.
    """  # noqa: D301
    url, key = reached(config, admin, key_file)
    asked = {"what": what, "name": name, "reason": reason, "lift": lift}
    found = asyncio.run(post(url, key, "/quarantine", asked))
    if as_json:
        print_json(found)
        return
    click.echo(f"{what} `{name}` is {'in use again' if lift else 'quarantined'}")
