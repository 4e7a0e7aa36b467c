"""`domicile demo`: the whole thing on this machine, in under a minute."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

import click

from router.cli.failing import failing


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave it running and print a curl line.")
@failing
def command(keep: bool) -> None:
    """Run two routers over a simulated fleet; a region dies, nothing leaves its boundary.

    Uses loopback only and leaves nothing behind. Exit codes: 0 all as it should be, 1 not.
    """
    # Set before the translation library is imported: it must not look for prices online.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from router.demo.play import play

    good = False
    with contextlib.suppress(KeyboardInterrupt):
        good = asyncio.run(play(click.echo, keep))
    sys.exit(0 if good or keep else 1)
