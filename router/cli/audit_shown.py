"""What `audit` commands have in common: how entries are shown, and what is a usage error."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from router.cli.shown import print_table

if TYPE_CHECKING:
    from router.audit.reading import Shown

P = ParamSpec("P")
T = TypeVar("T")

_FEW = 6
"""Of a longer list so many are shown in a table."""


def usage(command: Callable[P, T]) -> Callable[P, T]:
    """Exit code 2 for files that can't be what they were given as."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from router.audit.commands import UsageError

        try:
            return command(*args, **kwargs)
        except UsageError as error:
            raise click.UsageError(str(error)) from None

    return wrapped


def print_entries(title: str, found: Iterable[Shown], as_json: bool) -> None:
    """Entries as a table, or as JSON Lines."""
    if as_json:
        for line in _json_lines(found):
            click.echo(line)
        return
    cut: set[str] = set()
    rows = ((*_head(one), _text(_short(one.body, cut))) for one in found)
    print_table(title, ("record", "time", "kind", "request", "entry"), rows)
    if cut:
        click.echo("… stands for the rest of a long list; `--json` shows all of it", err=True)


def _head(one: Shown) -> tuple[str, str, str, str]:
    return f"{one.place.log}/{one.place.index}", when(one.time), one.kind, one.id


def _short(value: object, cut: set[str]) -> object:
    """The value with the first few of each long list: an allowed set names hundreds of places."""
    if isinstance(value, Mapping):
        return {name: _short(each, cut) for name, each in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    shown = [_short(each, cut) for each in value[:_FEW]]
    if len(value) > _FEW + 1:
        cut.add("…")
        return [*shown, f"… {len(value) - _FEW} more"]
    return [*shown, *(_short(each, cut) for each in value[_FEW:])]


def when(micros: int) -> str:
    """A time of the log as people read it."""
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")


def _json_lines(found: Iterable[Shown]) -> Iterator[str]:
    for one in found:
        place = {"log": one.place.log, "index": one.place.index, "line": one.place.line}
        row = {"place": place, "kind": one.kind, "id": one.id, "time": when(one.time)}
        yield json.dumps({**row, "body": one.body}, ensure_ascii=False)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
