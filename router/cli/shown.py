"""What every command shares: JSON on request, else a table for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")
_PAGE: Final = 1000
"""Rows of one table."""


def json_option(command: Callable[P, T]) -> Callable[P, T]:
    """Add `--json`, given to the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def print_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on standard output, as wide as the terminal, 120 columns where there is none.

    Cells are text as it is: no markup, and no control characters for the terminal. Many rows come
    as several tables: a log has more of them than fit in memory.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console = console if console.is_terminal else Console(width=120)
    left = iter(rows)
    page = list(islice(left, _PAGE))
    while True:
        table = Table(title=Text(plain(title), style="italic"), title_justify="left")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in page:
            table.add_row(*(Text(plain(cell)) for cell in row))
        console.print(table)
        page, title = list(islice(left, _PAGE)), ""
        if not page:
            return


def plain(text: str) -> str:
    """The text with every control character but the line end made visible as `\ufffd`."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
