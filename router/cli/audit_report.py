"""`domicile audit report`: where a period's requests were processed, for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.audit_keys import public_key
from router.cli.audit_shown import usage
from router.cli.audit_source import progress as bar
from router.cli.failing import answering
from router.cli.given import apart, writing
from router.cli.shown import json_option, print_json

if TYPE_CHECKING:
    from router.reports.document import Report
    from router.reports.making import Asked

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("report")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--period", "period", required=True, metavar="PERIOD",
              help="2026, 2026-Q4, 2026-11, 2026-11-29, or FROM/TO.")  # fmt: skip
@click.option("--time-zone", "zone", metavar="NAME", default="UTC", show_default=True,
              help="Days and hours are of this zone, as Europe/Berlin.")  # fmt: skip
@click.option("--tenant", metavar="NAME", help="One tenant's own report; without, all tenants.")
@click.option("--attr", "attribute", metavar="NAME", default="data_class", show_default=True,
              help="The attribute that says the data class.")  # fmt: skip
@click.option("--min-group", "least", metavar="K", type=click.IntRange(min=1),
              help="Tell no smaller group. Default 5; 1 for a tenant's own.")  # fmt: skip
@click.option("--view-from", "view_from", metavar="BOUNDARY",
              help="Where the reader is: what may not be seen there is only counted.")  # fmt: skip
@click.option("--against", metavar="FILE", multiple=True, type=_FILE,
              help="A checkpoint or receipt held elsewhere; repeatable.")  # fmt: skip
@click.option("--receipts", metavar="FILE", multiple=True, type=_FILE,
              help="A file with one JSON receipt per line; repeatable.")  # fmt: skip
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True,
              help="A public key to trust; repeatable.")  # fmt: skip
@click.option("--reconcile", metavar="FILE", type=_FILE,
              help="What `audit reconcile --json` found.")  # fmt: skip
@click.option("--anchor-told", "anchors", multiple=True, hidden=True)  # by a router, of its own
@click.option("--despite-findings", "despite", is_flag=True,
              help="Make a report of a log that doesn't verify; it says so on top.")  # fmt: skip
@click.option("--out", metavar="FILE", multiple=True, type=_FILE,
              help="report.html, report.pdf or report.json; repeatable.")  # fmt: skip
@json_option
@answering
@usage
def command(  # noqa: PLR0913
    folder: Path,
    *,
    period: str,
    zone: str,
    tenant: str | None,
    attribute: str,
    least: int | None,
    view_from: str | None,
    against: tuple[Path, ...],
    receipts: tuple[Path, ...],
    keys: tuple[str, ...],
    reconcile: Path | None,
    anchors: tuple[str, ...],
    despite: bool,
    out: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Report where requests of a period were processed, from the logs in DIR, verified meanwhile.

    \b
    Examples:
      domicile audit report /var/lib/domicile/log --period 2026-11 --out november.html
      domicile audit report log --period 2026-Q4 --tenant clinic --out q4.pdf --out q4.json
      domicile audit report log --period 2026-11 --against checkpoint.note --key log.pub --json

    \b
    Exit codes: 0 made, 1 the log has findings (nothing is written, unless `--despite-findings`)
      or is none that can be read, 2 usage, or what is read or written is refused.
    """  # noqa: D301
    from router.reports.gathering import Scope
    from router.reports.making import Asked
    from router.reports.period import period as read_period
    from router.reports.period import zone as read_zone

    writers = [(path, _writer(path)) for path in out]
    if not writers and not as_json:
        raise click.UsageError("say what to write: `--out report.html`, or `--json`")
    for path in out:
        apart(path, folder)
    asked = Asked(
        Scope(read_period(period, read_zone(zone)), tenant, None, attribute),
        least,
        time.time(),
        view_from,
        against,
        receipts,
        tuple(public_key(text) for text in keys),
        reconcile,
        anchors,
        despite,
    )
    _write(folder, asked, writers, as_json=as_json)


def _write(
    folder: Path,
    asked: Asked,
    writers: Sequence[tuple[Path, Callable[[Report], bytes]]],
    *,
    as_json: bool,
) -> None:
    from router.reports.making import make

    with bar(folder) as progress:
        report = make(folder, asked, progress)
    for path, write in writers:
        with writing(path):
            path.write_bytes(write(report))
        click.echo(f"audit report: {path}", err=as_json)
    for name, told in report.facts:
        if name == "beware":
            click.echo(f"beware: {told}", err=True)
    if as_json:
        print_json(report.to_json())
    if report.alarm:
        click.echo(report.alarm, err=True)
        sys.exit(1)


def _writer(path: Path) -> Callable[[Report], bytes]:
    found = _WRITERS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(_WRITERS)
        raise click.UsageError(f"`--out {path}`: the name ends in one of {known}")
    return found


def _html(report: Report) -> bytes:
    from router.reports.html import html

    return html(report).encode()


def _pdf(report: Report) -> bytes:
    from router.reports.pdf import pdf

    return pdf(report)


def _json(report: Report) -> bytes:
    import json

    return json.dumps(report.to_json(), indent=2, ensure_ascii=False).encode() + b"\n"


_WRITERS = {".html": _html, ".pdf": _pdf, ".json": _json}
