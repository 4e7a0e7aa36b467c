"""Every command answers `--help` at once, without the libraries it may need later."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from router.cli.main import COMMANDS
from tests.router.cli.conftest import Domicile

HEAVY = ("fastapi", "litellm", "sklearn", "numpy", "scipy", "botocore", "boto3", "yaml", "pydantic",
         "uvicorn", "cryptography", "rich")  # fmt: skip
BUDGET = 0.4
PROBE = """\
import sys
from router.cli.main import main
try:
    main({words!r}, prog_name="domicile")
except SystemExit as end:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    print("LOADED", *loaded)
    sys.exit(end.code)
"""
WORDS = [
    [],
    *([name] for name in sorted(COMMANDS)),
    *(["audit", name] for name in ("verify", "show", "prove", "prove-growth", "verify-bundle")),
    ["regions", "list"],
    ["regions", "show"],
    ["keys", "new"],
    ["simulate", "fleet"],
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_help_is_quick_and_imports_nothing_heavy(words: list[str]) -> None:
    code = PROBE.format(words=[*words, "--help"], heavy=HEAVY)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("LOADED\n"), ran.stdout.splitlines()[-1]
    # Processor time: what else the machine does is not the program's.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < BUDGET


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_says_what_its_exit_codes_mean(domicile: Domicile, name: str) -> None:
    ran = domicile(name, "--help")
    assert ran.code == 0
    assert "Exit codes:" in ran.out or "Commands:" in ran.out


def test_the_group_lists_every_command_with_its_line(domicile: Domicile) -> None:
    out = " ".join(domicile("--help").out.split())
    for name, (_, line) in COMMANDS.items():
        assert f"{name} {line}" in out


def test_a_word_that_is_no_command_is_a_usage_error(domicile: Domicile) -> None:
    ran = domicile("footprnt")
    assert ran.code == 2
    assert "footprnt" in ran.err


def test_version(domicile: Domicile) -> None:
    ran = domicile("--version")
    assert ran.code == 0
    assert ran.out.strip()


@pytest.mark.parametrize("module", ["router", "router.cli.main"])
def test_the_package_runs_as_the_command_does(module: str) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        ran = subprocess.run(
            [sys.executable, "-m", module, *words],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout, ran.stderr

    code, out, _ = run("--help")
    assert code == 0
    assert out.startswith("Usage: domicile ")
    code, _, told = run("serv")
    assert code == 2
    assert "No such command 'serv'" in told


def test_ctrl_c_ends_any_command_with_130_and_a_word(
    domicile: Domicile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was code 1, which says that rows or files can't be used."""
    from classifiers.difficulty import commands

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "train", interrupted)
    target = tmp_path / "own.bin"
    done = domicile("classifier", "train", str(tmp_path / "rows.jsonl"), "--output", str(target))
    assert done.code == 130
    assert done.err.strip().endswith("stopped")
    assert "Traceback" not in done.out + done.err
    assert not target.exists()
