"""`domicile audit`: verify and read the region log, offline."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from router.cli import (
    audit_disclose,
    audit_erase,
    audit_query,
    audit_reconcile,
    audit_replay,
    audit_report,
    audit_restore,
    audit_witness,
)
from router.cli.audit_keys import public_key
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.audit.commands import VerifyResult
    from router.audit.reading import Shown

P = ParamSpec("P")
T = TypeVar("T")

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


def _usage(command: Callable[P, T]) -> Callable[P, T]:
    """Exit code 2 for files that can't be what they were given as."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from router.audit.commands import UsageError

        try:
            return command(*args, **kwargs)
        except UsageError as error:
            raise click.UsageError(str(error)) from None

    return wrapped


@click.group("audit")
def command() -> None:
    """Verify and read the region log. Works on a copy, offline, without configuration."""


command.add_command(audit_disclose.belongs)
command.add_command(audit_disclose.disclose)
command.add_command(audit_disclose.pseudonyms)
command.add_command(audit_erase.command)
command.add_command(audit_query.export)
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
@failing
@_usage
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
      1 findings, each with its place, 2 usage.
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
@_usage
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

    found = run_show(folder, log=log, request_id=request_id, kind=kind, record=record)
    _print_entries(str(folder), found, as_json)


@command.command("prove")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--log", "log", metavar="ID", required=True, help="The log the request is in.")
@click.option("--request", "request_id", metavar="ID", required=True, help="The request.")
@click.option("--checkpoint", metavar="FILE", type=_FILE,
              help="Prove against this checkpoint, not the newest.")  # fmt: skip
@failing
@_usage
def prove(folder: Path, log: str, request_id: str, checkpoint: Path | None) -> None:
    """Print a bundle that proves everything recorded about one request, and nothing else.

    \b
    Example:
      domicile audit prove log --log eu-1 --request 0192f0c1-... > bundle.json

    Exit codes: 0 printed, 1 the log can't be read, 2 usage: nothing to prove there.
    """  # noqa: D301
    from router.audit.commands import run_prove

    click.echo(run_prove(folder, log, request_id, checkpoint).to_json().decode(), nl=False)


@command.command("check-bundle")
@click.argument("bundle", metavar="FILE", type=_FILE)
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True, required=True,
              help="A public key to trust, as PEM file or vkey; repeatable.")  # fmt: skip
@json_option
@failing
@_usage
def check_bundle(bundle: Path, keys: tuple[str, ...], as_json: bool) -> None:
    """Check a bundle without the log it came from, and show what it proves.

    \b
    Example:
      domicile audit check-bundle bundle.json --key log.pub

    Exit codes: 0 proved, 1 it doesn't prove what it says, 2 usage.
    """  # noqa: D301
    from router.audit.commands import run_verify_bundle

    _print_entries(
        str(bundle), run_verify_bundle(bundle, [public_key(text) for text in keys]), as_json
    )


@command.command("vkey")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--log", "log", metavar="ID", required=True, help="The log it signs.")
@failing
@_usage
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


def _print_entries(title: str, found: Iterable[Shown], as_json: bool) -> None:
    if as_json:
        for line in _json_lines(found):
            click.echo(line)
        return
    rows = ((str(one.place.index), _when(one.time), one.kind, one.id, _body(one)) for one in found)
    print_table(title, ("index", "time", "kind", "request", "entry"), rows)


def _json_lines(found: Iterable[Shown]) -> Iterator[str]:
    import json

    for one in found:
        place = {"log": one.place.log, "index": one.place.index, "line": one.place.line}
        row = {"place": place, "kind": one.kind, "id": one.id, "time": _when(one.time)}
        yield json.dumps({**row, "body": one.body}, ensure_ascii=False)


def _body(one: Shown) -> str:
    import json

    return json.dumps(one.body, ensure_ascii=False, separators=(", ", ": "))


def _when(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")
