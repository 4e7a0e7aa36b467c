"""Runs `domicile` in this process, and as a program of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli.main import main
from tests.router.audit.logbox import LogBox


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """Standard output as one JSON object."""
        value: dict[str, object] = json.loads(self.out)
        return value


Domicile = Callable[..., Ran]


@pytest.fixture
def domicile() -> Domicile:
    """`domicile("footprint", …)` in this process; an exception nobody caught fails the test."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
        words = [str(word) for word in arguments]
        done = CliRunner().invoke(main, words, env=dict(env or {}))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def program() -> Domicile:
    """The same in a process of its own, for true exit codes and imports."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
        start = "from router.cli.main import main; main(prog_name='domicile')"
        words = [sys.executable, "-c", start, *map(str, arguments)]
        given = None if env is None else {**os.environ, **env}
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=60, check=False, env=given
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def box(tmp_path: Path) -> LogBox:
    """A folder of logs to fill."""
    return LogBox(tmp_path)
