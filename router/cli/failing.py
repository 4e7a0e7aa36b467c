"""How commands fail: one line that says what is wrong, exit code 1, no traceback."""

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
            sys.exit(1)

    return wrapped
