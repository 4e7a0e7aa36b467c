"""Compiles the optional fast scorer, `classifiers/difficulty/compiled.c`, with a C compiler.

Nothing needs it: without a compiler the Python scorer gives the same numbers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from classifiers.difficulty.compiled import FLAGS, SOURCE, load, place

COMPILERS: Final = ("cc", "gcc", "clang")
PATIENCE: Final = 120.0
"""Seconds a compiler may take; it needs about one."""
_TOLD: Final = 500


class NotCompiled(Exception):
    """There is no compiler, or it failed; the message says what to do."""


def build(
    folder: Path = SOURCE.parent,
    environment: Mapping[str, str] = os.environ,
    which: Callable[[str], str | None] = shutil.which,
) -> Path:
    """Compile the library into `folder`, try it, and return its path.

    `CC` in the environment names the compiler; else the first of COMPILERS is taken.
    Raises NotCompiled, LibraryError.
    """
    names = [environment["CC"]] if environment.get("CC") else COMPILERS
    compiler = next((found for found in map(which, names) if found), None)
    if compiler is None:
        raise NotCompiled(
            f"no C compiler ({', '.join(names)}): install one, or go without; the scorer in "
            "Python gives the same numbers"
        )
    target = place(folder)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = Path(work) / target.name
            _run([compiler, *FLAGS, "-o", str(made), str(SOURCE), "-lm"])
            load(made)
            os.replace(made, target)
    except OSError as error:
        raise NotCompiled(f"can't write to `{folder}`: {error.strerror}") from None
    return target


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotCompiled(f"`{command[0]}` did not run: {error}") from None
    if done.returncode:
        raise NotCompiled(f"`{command[0]}` failed: {done.stderr.strip()[:_TOLD]}")
