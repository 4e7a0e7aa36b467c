"""The `run` script from outside: what it says before anything is set up."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A copy of `run` in a folder with a space in its name, beside a set-up that only reports."""
    home = tmp_path / "a project"
    (home / "house").mkdir(parents=True)
    shutil.copy(ROOT / "run", home / "run")
    (home / "house" / "install.py").write_text("import sys; sys.exit('set-up ' + sys.argv[1])")
    return home / "run"


def call(
    script: Path, *words: str, path: str = "/usr/bin:/bin", **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", script, *words],
        cwd="/",
        env={"PATH": path, "HOME": "/nowhere", **more},
        capture_output=True,
        text=True,
        check=False,
    )


def old_python(folder: Path) -> str:
    """A PATH with a python3 that is too old, and the few tools that `run` needs."""
    folder.mkdir()
    fake = folder / "python3"
    fake.write_text('#!/bin/sh\ncase $2 in *exit*) exit 1 ;; *) echo "Python 3.9" ;; esac\n')
    fake.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("words", [(), ("help",), ("--help",)])
def test_help_needs_no_set_up(script: Path, words: tuple[str, ...]) -> None:
    done = call(script, *words)
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in ("demo", "test", "check", "e2e", "serve"))


def test_an_unknown_command_is_named(script: Path) -> None:
    done = call(script, "dance")
    assert done.returncode == 2
    assert "no command `dance`" in done.stderr


@pytest.mark.parametrize(
    ("command", "lock"),
    [("demo", "runtime"), ("serve", "runtime"), ("test", "dev"), ("check", "dev")],
)
def test_each_command_sets_up_its_lock_and_stops_when_that_fails(
    script: Path, command: str, lock: str
) -> None:
    python = shutil.which("python3") or ""
    done = call(script, command, PYTHON=python)
    assert done.returncode == 1
    assert done.stderr.strip() == f"set-up {lock}"


def test_an_old_python_is_told(script: Path, tmp_path: Path) -> None:
    done = call(script, "demo", path=old_python(tmp_path / "bin"))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, found Python 3.9" in done.stderr


def test_no_python_is_told(script: Path, tmp_path: Path) -> None:
    done = call(script, "demo", path=str(tmp_path))
    assert done.returncode == 1
    assert "found no python3" in done.stderr
