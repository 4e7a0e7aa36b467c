"""What commands that ask the catalog share: a time, own places, and exit code 2 for bad words."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from regions.catalog import Catalog

P = ParamSpec("P")
T = TypeVar("T")


def at_option(command: Callable[P, T]) -> Callable[P, T]:
    """Add `--at`, given to the command as `at`: seconds since the epoch, now by default."""
    return click.option(
        "--at", "at", metavar="DATE", callback=_moment, help="Ask about another day or time (UTC)."
    )(command)


def own_option(command: Callable[P, T]) -> Callable[P, T]:
    """Add `--own`, given to the command as `own`: places of one's own for this question."""
    return click.option(
        "--own", "own", metavar="NAME=COUNTRY", multiple=True,
        help="A place of your own, as `self:fra1=DE`; repeatable.",
    )(command)  # fmt: skip


def misread(command: Callable[P, T]) -> Callable[P, T]:
    """Turn a selector, place or boundary that can't be read into a usage error, exit code 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from regions.places import PlaceError

        try:
            return command(*args, **kwargs)
        except PlaceError as error:
            raise click.UsageError(str(error)) from None

    return wrapped


def load_catalog(own: Sequence[str] = ()) -> Catalog:
    """The package's catalog with places of one's own.

    Raises:
        PlaceError: a place that can't be read, or without a country.
    """
    from regions.catalog import Catalog, OwnRegion
    from regions.places import PlaceError

    places: dict[str, OwnRegion] = {}
    for text in own:
        name, equals, country = text.partition("=")
        if not equals:
            raise PlaceError(f"`--own {text}` has no country; write it as `--own self:fra1=DE`")
        places[name if ":" in name else f"self:{name}"] = OwnRegion(country)
    return Catalog.load(places)


def _moment(_context: click.Context, _option: click.Parameter, text: str | None) -> float:
    from router.auth import instant

    if text is None:
        return time.time()
    try:
        return instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
