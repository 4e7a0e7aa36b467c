"""`domicile serve`: run the router."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from router.cli.failing import failing


@click.command("serve")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option(
    "--workers", "workers", type=click.IntRange(1, 256), metavar="N",
    help="Processes behind the one port, instead of the file's `router.workers`.",
)  # fmt: skip
@failing
def command(config: str | None, workers: int | None) -> None:
    """Run the router until SIGTERM, then let open requests end; a second SIGTERM ends them.

    With several workers each writes a region log of its own, and the admin listener shows all.

    \b
    Examples:
      domicile serve
      domicile serve --config /etc/domicile/domicile.yaml --workers 4

    Exit codes: 0 stopped, 1 it could not start.
    """  # noqa: D301
    import uvloop

    from router.config import find
    from router.server import serve

    path = find(config, os.environ)
    begun = partial(click.echo, f"domicile: serving from {path}", err=True)
    uvloop.run(serve(path, os.environ, workers=workers, begun=begun))
    sys.exit(0)
