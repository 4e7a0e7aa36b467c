"""`domicile audit query`: which requests, where, under which rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.audit_source import answered
from router.cli.failing import failing
from router.cli.given import writing
from router.cli.shown import print_table

if TYPE_CHECKING:
    from router.audit.query import Question, Table

_FORMATS = ("table", "json", "csv", "parquet")
_SHOWN = ("time", "tenant", "attributes", "model", "outcome", "endpoint", "places", "rules")
_MOST = 200
_COLUMNS = {
    "tenant": "tenant", "app": "app", "attributes": "attributes", "place": "places",
    "rule": "rules", "outcome": "outcome", "endpoint": "endpoint",
}  # fmt: skip
"""Which column holds what an option asks for."""


@click.command("query")
@click.argument("source", metavar="DIR|PARQUET|s3://BUCKET/PREFIX")
@click.option("--region", metavar="REGION", help="Of the bucket, as `aws:eu-central-1`.")
@click.option("--s3-api", "api", metavar="URL", help="Another S3 API than AWS's own.")
@click.option("--since", metavar="TIME", help="From this time on, as 2026-11-01 or with a time.")
@click.option("--until", metavar="TIME", help="Before this time.")
@click.option("--tenant", metavar="NAME", help="Of this tenant.")
@click.option("--app", metavar="NAME", help="Of this app.")
@click.option("--attr", "attributes", metavar="NAME=VALUE", multiple=True,
              help="With this value of an attribute; repeatable.")  # fmt: skip
@click.option("--place", metavar="REGION", help="May have been processed there.")
@click.option("--rule", metavar="NAME", help="This rule applied.")
@click.option("--outcome", metavar="CODE", help="As `ok`, or a refusal's code.")
@click.option("--endpoint", metavar="NAME", help="This endpoint answered.")
@click.option("--request", metavar="ID", help="This one.")
@click.option("--by", metavar="COLUMN,…", help="Count requests by these columns.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most; 0: all.")
@click.option("--format", "shape", type=click.Choice(_FORMATS), default="table", show_default=True,
              help="How it is written.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as `--format json`.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Write it there.")  # fmt: skip
@failing
def query(
    source: str,
    attributes: tuple[str, ...],
    limit: int | None,
    shape: str,
    as_json: bool,
    out: Path | None,
    **asked: str | None,
) -> None:
    """Ask a folder of logs, or what `audit export` wrote, for requests.

    \b
    Examples:
      domicile audit query /var/lib/domicile/log --tenant clinic --attr data_class=health
      domicile audit query requests.parquet --by tenant,places --since 2026-11-01
      domicile audit query log --outcome no_endpoint_inside_boundary --format csv --out no.csv
      domicile audit query s3://acme-log-eu/ --region aws:eu-central-1 --tenant clinic --json

    \b
    In a bucket: the Parquet files below the prefix, or else the sealed segments there, brought
    here one at a time; keys come from the environment or the machine's role.
    JSON is one line per request. A table shows 200 rows unless `--limit` says otherwise.
    Exit codes: 0 asked, 1 it can't be read, or DuckDB is not installed, 2 usage.
    """  # noqa: D301
    from router.audit.query import Question

    shape = "json" if as_json else shape
    if shape == "parquet" and out is None:
        raise click.UsageError("`--format parquet` needs `--out FILE`")
    for one in attributes:
        if "=" not in one:
            raise click.UsageError(f"`--attr {one}`: write NAME=VALUE, as data_class=health")
    most = (_MOST if shape == "table" else 0) if limit is None else limit
    question = Question(
        since=instant("--since", asked["since"]),
        until=instant("--until", asked["until"]),
        tenant=asked["tenant"],
        app=asked["app"],
        attributes=attributes,
        place=asked["place"],
        rule=asked["rule"],
        outcome=asked["outcome"],
        endpoint=asked["endpoint"],
        request=asked["request"],
        by=tuple(one.strip() for one in (asked["by"] or "").split(",") if one.strip()),
        limit=most,
    )
    with answered(source, question, asked["region"], asked["api"]) as table, writing(out):
        watched = replace(table, batches=_watched(table.batches, question))
        _write(watched, shape, out, most)


def _watched(
    batches: Iterator[list[tuple[object, ...]]], question: Question
) -> Iterator[list[tuple[object, ...]]]:
    """The batches; where they held no row it is said how to find out which word nobody has."""
    empty = True
    for batch in batches:
        empty = empty and not batch
        yield batch
    if empty:
        named = [(column, getattr(question, name)) for name, column in _COLUMNS.items()]
        columns = ",".join(column for column, value in named if value)
        more = f"; `--by {columns}` in place of these words counts what there is" if columns else ""
        click.echo(f"audit query: no request here is like that{more}", err=True)


def instant(option: str, text: str | None) -> int | None:
    """The microseconds of an option's time; `None` of no text. Raises UsageError."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"`{option} {text}`: write a time as 2026-11-01 or 2026-11-01T12:00:00Z"
        ) from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1e6)


def _write(table: Table, shape: str, out: Path | None, most: int) -> None:
    if shape == "parquet" and out is not None:
        from router.audit.query import write_parquet

        click.echo(f"audit query: {write_parquet(table, out)} rows in {out}")
    elif shape == "table":
        _show(table, most)
    else:
        with click.open_file(str(out or "-"), "w", encoding="utf-8") as file:
            for line in _csv(table) if shape == "csv" else _json(table):
                file.write(line + "\n")


def _show(table: Table, most: int) -> None:
    columns = [n for n in table.columns if n in _SHOWN or "requests" in table.columns]
    chosen = [table.columns.index(name) for name in columns]
    rows = [row for batch in table.batches for row in batch]
    shown = ([_cell(columns[n], row[at]) for n, at in enumerate(chosen)] for row in rows)
    print_table(f"{len(rows)} rows", columns, shown)
    if most and len(rows) == most:
        click.echo(f"audit query: the first {most}; more may match: use `--limit` or `--by`")


def _cell(name: str, value: object) -> str:
    if name == "time" and isinstance(value, int):
        return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(table: Table) -> Iterator[str]:
    import json

    for batch in table.batches:
        for row in batch:
            yield json.dumps(dict(zip(table.columns, row, strict=True)), ensure_ascii=False)


def _csv(table: Table) -> Iterator[str]:
    import csv
    import io

    yield ",".join(table.columns)
    for batch in table.batches:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([_plain(value) for value in row] for row in batch)
        yield text.getvalue().removesuffix("\n")


def _plain(value: object) -> object:
    """A cell without a formula for spreadsheets: what starts like one is quoted."""
    text = " ".join(map(str, value)) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in "=+-@\t\r" and text else text
