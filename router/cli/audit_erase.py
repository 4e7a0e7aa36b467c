"""`domicile audit erase`: make commitments in the log unopenable for good."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.audit_query import instant
from router.cli.failing import failing
from router.cli.reaching import door_options
from router.cli.shown import json_option, print_json

if TYPE_CHECKING:
    from router.audit.openings import Scope


@click.command("erase")
@click.option("--tenant", metavar="NAME", help="Only this tenant's.")
@click.option("--request", metavar="ID", help="Only one request's.")
@click.option("--before", metavar="TIME", help="Only older ones: 2026-11-01, or with a time.")
@click.option("--all", "everything", is_flag=True, help="Without one of these: all there is.")
@click.option(
    "--log",
    "log_id",
    metavar="ID",
    help="Of another log of the folder, that no process writes any more.",
)
@door_options
@json_option
@failing
def command(  # noqa: PLR0913, PLR0917 - click gives each option its own parameter
    tenant: str | None,
    request: str | None,
    before: str | None,
    everything: bool,
    log_id: str | None,
    config: str | None,
    admin: str | None,
    key_file: Path | None,
    as_json: bool,
) -> None:
    """Erase what opens entries of the log: tenants' keys, and texts behind commitments.

    \b
    The log itself can't be changed, and says who erased what. A router that runs does
    it itself; when none answers, this command opens the log, erases, and closes it.

    \b
    Examples:
      domicile audit erase --tenant clinic
      domicile audit erase --before 2026-01-01
      domicile audit erase --request 06cv1o9f...
      domicile audit erase --tenant clinic --log eu-2

    \b
    A key serves a tenant for a period (`log.key_period`): with --before it goes when its
    period ended by then, with --request it stays. Says what remains.
    Exit codes: 0 erased, 1 refused or not possible, 2 usage.
    """  # noqa: D301
    given = (tenant, request, before)
    if everything == any(one is not None for one in given):
        raise click.UsageError("say what to erase: --tenant, --request, --before, or --all")
    from router.audit.openings import Scope

    if log_id is not None and (admin is not None or key_file is not None):
        raise click.UsageError(
            "--log is done here, without a router: leave out --admin, --key-file"
        )
    micros = instant("--before", before)
    scope = Scope(tenant, request, None if micros is None else micros / 1e6)
    if log_id is None:
        found = asyncio.run(_erased(scope, config, admin, key_file))
    else:
        found = asyncio.run(_alone(scope, config, log_id))
    if as_json:
        print_json(found)
        return
    click.echo(f"erased {found['keys']} keys and {found['openings']} openings; what remains:")
    left = found["remains"]
    for sentence in left if isinstance(left, list) else ():
        click.echo(f"- {sentence}")


async def _erased(
    scope: Scope, config: str | None, admin: str | None, key_file: Path | None
) -> dict[str, object]:
    from router.cli.listener import post, reached
    from router.config import Unanswered

    asked: dict[str, object] = {
        "tenant": scope.tenant,
        "request": scope.request,
        "before": scope.before,
    }
    try:
        url, key = reached(config, admin, key_file)
        return await post(url, key, "/erase", asked)
    except Unanswered:
        if admin is not None:
            raise
        return await _alone(scope, config)


async def _alone(scope: Scope, config: str | None, log_id: str | None = None) -> dict[str, object]:
    """Without a router: its log, or another, is opened, recovered if need be, and closed again."""
    from router.audit.erasing import erase, remains
    from router.audit.layout import Folder
    from router.audit.log import AuditLog
    from router.config import find, load
    from router.settings.loading import log_settings

    path = find(config, os.environ)
    settings = log_settings(load(path), path.parent, os.environ)
    if log_id is not None:
        known = Folder(settings.dir).log_ids()
        if log_id not in known:
            raise click.UsageError(f"no log `{log_id}` here, only {', '.join(known) or 'none'}")
        settings = replace(settings, log_id=log_id)
    log = await AuditLog.open(settings, clock=time.time, entropy=os.urandom)
    try:
        now = max(time.time(), log.newest_time())
        done = await erase(log, scope, "local", now)
    finally:
        await log.close()
    left = remains(done, scope, Folder(settings.dir), {settings.log_id})
    return {"keys": done.keys, "openings": done.openings, "remains": list(left)}
