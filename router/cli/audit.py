"""`domicile audit`: verify and read the region log, offline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli import (
    audit_disclose,
    audit_erase,
    audit_export,
    audit_prove,
    audit_query,
    audit_reconcile,
    audit_replay,
    audit_report,
    audit_restore,
    audit_witness,
)
from router.cli.audit_keys import public_key
from router.cli.audit_shown import print_entries, usage
from router.cli.audit_source import say_released
from router.cli.failing import answering, failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.audit.commands import VerifyResult

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("audit")
def command() -> None:
    """Verify and read the region log. Works on a copy, offline, without configuration."""


command.add_command(audit_disclose.belongs)
command.add_command(audit_disclose.disclose)
command.add_command(audit_disclose.pseudonyms)
command.add_command(audit_erase.command)
command.add_command(audit_export.export)
command.add_command(audit_prove.prove)
command.add_command(audit_prove.prove_growth)
command.add_command(audit_prove.verify_bundle)
command.add_command(audit_query.query)
command.add_command(audit_reconcile.command)
command.add_command(audit_replay.command)
command.add_command(audit_report.command)
command.add_command(audit_restore.command)
command.add_command(audit_witness.command)


@command.command("verify")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--against", metavar="FILE", multiple=True, type=_FILE,
              help="A checkpoint or receipt held elsewhere; repeatable.")  # fmt: skip
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True,
              help="A public key to trust, as PEM file or vkey; repeatable.")  # fmt: skip
@click.option("--receipts", metavar="FILE", multiple=True, type=_FILE,
              help="A file with one JSON receipt per line; repeatable.")  # fmt: skip
@json_option
@answering
@usage
def verify(
    folder: Path,
    against: tuple[Path, ...],
    keys: tuple[str, ...],
    receipts: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Verify every log in DIR, and that it agrees with what is held elsewhere.

    \b
    Examples:
      domicile audit verify /var/lib/domicile/log
      domicile audit verify log --against checkpoint.note --key log.pub
      domicile audit verify log --receipts receipts.jsonl --json

    \b
    Exit codes: 0 no findings (an unanchored or torn tail is said, and is none),
      1 findings, each with its place,
      2 usage, or what is read or written is refused.
    """  # noqa: D301
    from router.audit.commands import run_verify

    result = run_verify(folder, against, [public_key(text) for text in keys], receipts)
    if as_json:
        print_json(result.to_json())
    else:
        _print_verdict(result)
    sys.exit(result.exit_code)


@command.command("show")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--log", "log", metavar="ID", help="Only one log of the folder.")
@click.option("--request", "request_id", metavar="ID", help="Only one request's entries.")
@click.option("--kind", metavar="KIND", help="Only entries of a kind, as `decision`.")
@click.option("--record", metavar="LOG/INDEX", help="Only this one, as reports name it.")
@json_option
@failing
@usage
def show(
    folder: Path,
    log: str | None,
    request_id: str | None,
    kind: str | None,
    record: str | None,
    as_json: bool,
) -> None:
    """Show the entries of the logs in DIR, in order.

    \b
    Examples:
      domicile audit show /var/lib/domicile/log --kind refusal
      domicile audit show log --request 0192f0c1-... --json
      domicile audit show log --record eu-1/1042

    \b
    With --json every entry is one line (JSON Lines), so that a long log streams.
    Exit codes: 0 shown, 1 a line can't be read, 2 usage.
    """  # noqa: D301
    from router.audit.commands import run_show

    if record is None:
        say_released(folder)
    found = run_show(folder, log=log, request_id=request_id, kind=kind, record=record)
    print_entries(str(folder), found, as_json)


@command.command("vkey")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--log", "log", metavar="ID", required=True, help="The log it signs.")
@failing
@usage
def vkey(file: Path, log: str) -> None:
    """Print the public half of the key in FILE as a vkey, for verifiers and witnesses.

    \b
    Example:
      domicile audit vkey /etc/domicile/log.key --log eu-1 > eu-1.vkey

    Exit codes: 0 printed, 2 usage: it holds no Ed25519 key.
    """  # noqa: D301
    from router.audit.commands import read_key

    click.echo(read_key(file).vkey(log))


def _print_verdict(result: VerifyResult) -> None:
    verdict = result.verdict
    rows = [
        (log.log, str(log.size), "-" if log.anchored is None else str(log.anchored),
         ", ".join(log.statuses))
        for log in verdict.logs
    ]  # fmt: skip
    print_table("region log", ("log", "lines", "anchored", "status"), rows)
    for finding in verdict.all_findings:
        click.echo(f"finding: {finding}")
    for notice in (*verdict.notices, *(n for log in verdict.logs for n in log.notices)):
        click.echo(f"notice: {notice}")
    click.echo(f"audit verify: {'ok' if verdict.ok else 'FINDINGS'}")
