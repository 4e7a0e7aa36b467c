"""How commands reach a running router's operators' door: the same three options on each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")


def door_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add `--config`, `--admin` and `--key-file`: the command takes `config`, `admin` (texts) and
    `key_file` (a path), each None by default."""
    key_file = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option(
            "--key-file", "key_file", metavar="FILE", type=key_file,
            help="File with an operator's api key, instead of this machine's token.",
        ),
        click.option("--admin", metavar="URL", help="The admin listener, instead of a file's."),
        click.option("--config", metavar="FILE", help="Configuration file of the router."),
    ):  # fmt: skip
        command = option(command)
    return command
