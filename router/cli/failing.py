"""How commands fail: one line that says what is wrong, exit code 1 or 2, no traceback."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")


def failing(command: Callable[P, T]) -> Callable[P, T]:
    """Turn the errors that a user can mend into their message and exit code 1."""
    return _failing(command, refused=1)


def answering(command: Callable[P, T]) -> Callable[P, T]:
    """The same for a command whose exit code 1 is an answer: where the system refuses a file or the
    output, none was given, and the code is 2."""
    return _failing(command, refused=2)


def _failing(command: Callable[P, T], refused: int) -> Callable[P, T]:
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from regions.document import DocumentErrors
        from regions.places import PlaceError
        from router.audit.errors import AuditError
        from router.config import ConfigError

        try:
            return command(*args, **kwargs)
        except (ConfigError, DocumentErrors, PlaceError, AuditError) as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(1)
        except BrokenPipeError:
            raise  # click ends quietly when nobody reads on
        except OSError as error:
            told = f"`{error.filename}`: {error.strerror}" if error.filename else str(error)
            click.echo(f"error: {told}", err=True)
            sys.exit(refused)

    return wrapped
