"""`domicile serve`: run the router."""

from __future__ import annotations

import os
import sys

import click

from router.cli.failing import failing


@click.command("serve")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@failing
def command(config: str | None) -> None:
    """Run the router until SIGTERM, then let open requests end.

    Exit codes: 0 stopped, 1 it could not start.
    """
    import uvloop

    from router.config import find
    from router.server import serve

    path = find(config, os.environ)
    click.echo(f"domicile: serving from {path}", err=True)
    uvloop.run(serve(path, os.environ))
    sys.exit(0)
