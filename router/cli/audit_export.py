"""`domicile audit export`: requests for asking, for other systems, or for their tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from router.cli.audit_shown import usage
from router.cli.audit_source import progress, say_released
from router.cli.failing import failing
from router.cli.given import apart, writing

_SHAPES = ("parquet", "ocsf", "cef", "otel", "bundle")


@click.command("export")
@click.argument("source", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "shape", type=click.Choice(_SHAPES), default="parquet",
              show_default=True, help="What FILE is to be.")  # fmt: skip
@click.option("--tenant", metavar="NAME", help="Only the requests of one tenant.")
@click.option("--log", "log", metavar="ID", help="With `bundle`: of which log, if there are more.")
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
@failing
@usage
def export(
    source: Path, target: Path, shape: str, tenant: str | None, log: str | None, *, force: bool
) -> None:
    """Write the requests of the logs in DIR to a Parquet file: asking that takes seconds.

    Or all events, for other systems: OCSF API Activity, CEF, OpenTelemetry logs; one a line. Or, as
    `bundle`, a tenant's entries with their proofs: nothing of another tenant is in it, and whoever
    has the log's public key can check it.

    \b
    Examples:
      domicile audit export /var/lib/domicile/log requests.parquet
      domicile audit export log events.jsonl --format ocsf
      domicile audit export log clinic.json --format bundle --tenant clinic --log eu-1

    \b
    It holds what the log holds: keep it inside the same boundary.
    Exit codes: 0 written, 1 FILE is there already or lies in DIR, the log can't be read, or
      pyarrow is not installed, 2 usage.
    """  # noqa: D301
    from router.audit.commands import logs_in

    if shape != "bundle" and log is not None:
        raise click.UsageError("`--log` is for `--format bundle`")
    logs_in(source)
    apart(target, source)
    _refuse_existing(target, force=force)
    if shape == "bundle":
        if tenant is None:
            raise click.UsageError("`--format bundle` needs `--tenant NAME`: it is one tenant's")
        say_released(source)
        what = _bundle(source, target, tenant, log)
    elif shape == "parquet":
        what = _requests(source, target, tenant)
    else:
        say_released(source)
        what = f"{_events(source, target, shape, tenant)} events"
    click.echo(f"audit export: {what} in {target}")


def _requests(source: Path, target: Path, tenant: str | None) -> str:
    from router.audit.query import export as write

    with progress(source) as told, writing(target):
        return f"{write(source, target, told, tenant)} requests"


def _bundle(source: Path, target: Path, tenant: str, log: str | None) -> str:
    from router.audit.commands import run_export

    made = run_export(source, tenant, log)
    with _whole(target) as file:
        pieces = sum(1 for piece in made.pieces() if file.write(piece))
    return f"{pieces - 2} lines of {made.checkpoint.origin}, proved,"


def _events(source: Path, target: Path, shape: str, tenant: str | None) -> int:
    from router.audit.exporting import FORMATS, events
    from router.audit.layout import Folder
    from router.audit.paging import page

    count = 0
    with _whole(target) as file:
        for log in Folder(source).logs:
            for event in events(page(log, -1, 1 << 62)):
                if tenant is None or (event.row is not None and event.row.tenant == tenant):
                    file.write(FORMATS[shape](event) + b"\n")
                    count += 1
    return count


@contextmanager
def _whole(target: Path) -> Iterator[BinaryIO]:
    """A file that takes its name when all of it is written."""
    from router.audit.query import drafted

    with writing(target), drafted(target) as draft, draft.open("wb") as file:
        yield file


def _refuse_existing(target: Path, *, force: bool) -> None:
    from router.audit.query import QueryRefused

    if target.is_file() and not force:
        raise QueryRefused(f"`{target}` is there already: name another file, or give --force")
    if target.exists() and not target.is_file():
        raise QueryRefused(f"`{target}` is no file that could be written over")
