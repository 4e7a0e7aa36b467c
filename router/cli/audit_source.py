"""Where a question's rows come from: a folder, a file, or a bucket; with a bar at a terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from router.audit.query import Question, Table
    from router.audit.rows import Progress

_S3 = "s3://"


@contextmanager
def answered(
    source: str, question: Question, region: str | None, api: str | None
) -> Iterator[Table]:
    """The answer to a question. What was brought from a bucket lies in a private folder meanwhile.

    Raises:
        click.UsageError: a bucket without a region.
    """
    from router.audit.query import ask

    if not source.startswith(_S3):
        with progress(Path(source)) as told:
            yield ask(Path(source), question, told)
        return
    bucket, _, prefix = source.removeprefix(_S3).partition("/")
    if not bucket or region is None:
        raise click.UsageError("a bucket is asked as `s3://BUCKET/PREFIX` with its `--region`")
    folder = tempfile.TemporaryDirectory(prefix="domicile-query-")
    with folder as name, _bar("objects", None) as told:
        yield _from_bucket(bucket, prefix, region, api, Path(name), question, told)


def _from_bucket(
    bucket: str,
    prefix: str,
    region: str,
    api: str | None,
    into: Path,
    question: Question,
    told: Progress,
) -> Table:
    from router.audit.anchors.s3 import S3Objects
    from router.audit.query import ask, ask_rows
    from router.audit.remote import parquet, sealed_rows
    from router.storage.s3 import s3_client

    store = S3Objects(s3_client(region, None, api), bucket)
    if parquet(store, prefix, into, told):
        return ask(into, question)
    return ask_rows(sealed_rows(store, prefix, into, told), question)


@contextmanager
def progress(source: Path) -> Iterator[Progress]:
    """A bar on standard error, while segments are read at a terminal."""
    if not source.is_dir():
        yield lambda _: None
        return
    from router.audit.layout import Folder
    from router.audit.rows import size

    say_released(source, "asked as `s3://BUCKET/PREFIX`")
    with _bar("reading segments", size(Folder(source)) or None) as told:
        yield told


def say_released(source: Path, how: str = "brought back by `audit restore`") -> None:
    """Say on standard error what a folder no longer holds, if anything."""
    from router.audit.layout import Folder

    count = Folder(source).released
    if count:
        click.echo(
            f"note: the lines of {count} segments were released: older requests are in the bucket "
            f"they were sealed in, {how}",
            err=True,
        )


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Progress]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
