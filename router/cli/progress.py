"""A bar on standard error for what takes longer than a moment; nothing where no one watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Told = Callable[[str, int, int], None]


@contextmanager
def following() -> Iterator[Told]:
    """Shows progress while it is open: call what it gives with (what, parts done, of how many)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _unseen
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def told(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield told


def _unseen(what: str, done: int, total: int) -> None:
    """Progress that goes to no terminal."""
