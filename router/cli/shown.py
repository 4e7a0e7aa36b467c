"""What every command shares: JSON on request, else a table for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")


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

    Cells are text as it is: no markup, and no control characters for the terminal.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(plain(title), style="italic"), title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def plain(text: str) -> str:
    """The text with every control character but the line end made visible as `\ufffd`."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
