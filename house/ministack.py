"""An emulator of AWS in the user's cache, for tests against a real S3 API: ministack.

`python house/ministack.py` makes it once (118 MB) and prints the path of its program; when this
machine can't have it, it prints the reason and exits 3. It has an environment of its own, because
it pins another botocore than we do.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PACKAGE = "ministack[full]==1.5.33"

Run = Callable[[Sequence[str]], bool]


class Missing(Exception):
    """This machine can't have it; the message says why."""


def folder(environment: Mapping[str, str]) -> Path:
    """Where it is kept: below `XDG_CACHE_HOME`, else `~/.cache`. Raises Missing."""
    home, cache = environment.get("HOME"), environment.get("XDG_CACHE_HOME")
    if not cache and not home:
        raise Missing("there is no HOME to keep ministack below")
    cache = cache or f"{home}/.cache"
    version = PACKAGE.rpartition("==")[2]
    return Path(cache) / "domicile" / f"ministack-{version}-py{sys.version_info[1]}"


def run(words: Sequence[str]) -> bool:
    """Run a command quietly; true when it exits 0."""
    done = subprocess.run(list(words), stdout=sys.stderr, stderr=sys.stderr, check=False)
    return done.returncode == 0


def made(where: Path, run: Run) -> Path:
    """The program, installed if it isn't there yet; two calls at once wait for each other.

    Raises:
        Missing: it can't be installed.
    """
    program, ready = where / "bin" / "ministack", where / "ready"
    where.parent.mkdir(parents=True, exist_ok=True)
    with where.with_suffix(".lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        if not ready.exists():
            _install(where, run)
            ready.touch()
    return program


def _install(where: Path, run: Run) -> None:
    python = str(where / "bin" / "python")
    if not run([sys.executable, "-m", "venv", "--clear", str(where)]):
        raise Missing("no venv could be made for ministack")
    uv = Path(sys.executable).with_name("uv")
    ways = [[python, "-m", "pip", "install", "--quiet", PACKAGE]]
    if uv.exists():
        ways.insert(0, [str(uv), "pip", "install", "--quiet", "--python", python, PACKAGE])
    if not any(run(way) for way in ways):
        raise Missing(f"{PACKAGE} could not be installed")


def main() -> int:
    """Print the program's path, or the reason why there is none."""
    try:
        print(made(folder(os.environ), run))
    except (Missing, OSError) as reason:
        print(reason)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
