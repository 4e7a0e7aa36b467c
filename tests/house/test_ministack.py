"""The emulator is installed once, by whatever installer works, or its absence is explained."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from house import ministack
from house.ministack import PACKAGE, Missing, folder, made, main


class Runner:
    """Keeps the commands; those that hold a word of `fails` fail."""

    def __init__(self, *fails: str) -> None:
        self.ran: list[Sequence[str]] = []
        self.fails = fails

    def __call__(self, words: Sequence[str]) -> bool:
        self.ran.append(words)
        return not any(word in words for word in self.fails)


def test_it_is_installed_once(tmp_path: Path) -> None:
    run = Runner()
    where = tmp_path / "cache" / "m"
    where.mkdir(parents=True)
    assert made(where, run) == where / "bin" / "ministack"
    count = len(run.ran)
    assert PACKAGE in run.ran[-1]
    assert made(where, run) == where / "bin" / "ministack"
    assert len(run.ran) == count


def test_without_an_installer_it_is_missing_and_tried_again(tmp_path: Path) -> None:
    where = tmp_path / "m"
    where.mkdir()
    with pytest.raises(Missing, match="could not be installed"):
        made(where, Runner(PACKAGE))
    with pytest.raises(Missing, match="no venv"):
        made(where, Runner("venv"))
    assert made(where, Runner()).name == "ministack"


def test_it_lives_in_the_users_cache() -> None:
    version = PACKAGE.rpartition("==")[2]
    name = f"domicile/ministack-{version}-py{sys.version_info[1]}"
    assert folder({"HOME": "/home/a"}) == Path("/home/a/.cache") / name
    assert folder({"HOME": "/home/a", "XDG_CACHE_HOME": "/c"}) == Path("/c") / name


def test_the_reason_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ministack, "run", lambda words: False)
    assert main() == 3
    assert "no venv" in capsys.readouterr().out
