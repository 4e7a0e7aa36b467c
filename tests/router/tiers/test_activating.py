"""A new artifact takes the place of the one in use whole, or not at all; a router then loads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from classifiers.difficulty import commands
from classifiers.difficulty.artifact import SHIPPED, load
from classifiers.difficulty.commands import NotBetter
from router.settings.reload_files import fingerprint
from router.tiers import activating
from router.tiers.activating import BEFORE, NotActivated, activate
from tests.cases.graded import files
from tests.router.cli.test_classifier import poor, rows, trained

__all__ = ["poor", "trained"]
OBSERVED = '{model: "file:own.bin"}'


@pytest.fixture
def held(tmp_path: Path) -> Path:
    return rows(tmp_path / "held.jsonl", 250, "test", 6)


@pytest.fixture
def used(tmp_path: Path, poor: Path) -> Path:
    path = tmp_path / "own.bin"
    path.write_bytes(poor.read_bytes())
    path.chmod(0o604)
    return path


def graded_by(folder: Path) -> str:
    return files("observe", OBSERVED).load(folder).difficulty["two"].name


def test_the_router_loads_what_was_activated(
    tmp_path: Path, trained: Path, used: Path, held: Path
) -> None:
    path = files("observe", OBSERVED).write(tmp_path)
    print_before, graded_before = fingerprint(path), graded_by(tmp_path)
    found, kept = activate(trained, used, [held])
    assert found.low > 0
    assert fingerprint(path) != print_before
    assert graded_by(tmp_path) == load(trained).version() != graded_before
    assert (kept.name, load(kept).version()) == (f"own.bin{BEFORE}", graded_before)
    assert used.stat().st_mode & 0o777 == 0o604, "who could read it still can"
    assert sorted(one.name for one in tmp_path.glob(".*.draft")) == []


def test_the_file_behind_a_link_is_replaced(
    tmp_path: Path, trained: Path, used: Path, held: Path
) -> None:
    (tmp_path / "link.bin").symlink_to(used)
    activate(trained, tmp_path / "link.bin", [held])
    assert (tmp_path / "link.bin").is_symlink()
    assert used.read_bytes() == trained.read_bytes()


def test_what_is_not_surely_better_changes_nothing(
    tmp_path: Path, trained: Path, poor: Path, used: Path, held: Path
) -> None:
    used.write_bytes(trained.read_bytes())
    with pytest.raises(NotBetter, match="lower bound"):
        activate(poor, used, [held])
    with pytest.raises(NotBetter, match="nothing would change"):
        activate(trained, used, [held])
    few = rows(tmp_path / "few.jsonl", 150, "test", 7)
    used.write_bytes(poor.read_bytes())
    with pytest.raises(NotBetter, match="on 150 rows"):
        activate(trained, used, [few])
    assert used.read_bytes() == poor.read_bytes()
    assert not list(tmp_path.glob(f"*{BEFORE}"))


def test_a_pair_in_use_is_never_lost(trained: Path, tmp_path: Path, held: Path) -> None:
    used = tmp_path / "prior.bin"
    used.write_bytes(SHIPPED.read_bytes())
    with pytest.raises(NotBetter, match="no model of `llama"):
        activate(trained, used, [held])


def test_the_shipped_prior_is_never_replaced(trained: Path, held: Path) -> None:
    before = SHIPPED.read_bytes()
    with pytest.raises(NotActivated, match="name the new"):
        activate(trained, SHIPPED, [held])
    assert SHIPPED.read_bytes() == before


def test_a_file_that_changed_while_it_was_compared_is_left_alone(
    trained: Path, used: Path, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(*given: object, **more: object) -> commands.Comparison:
        found = commands.compare(trained, used, [held])
        used.write_bytes(SHIPPED.read_bytes())
        return found

    monkeypatch.setattr(activating, "compare", compare)
    with pytest.raises(NotActivated, match="compare again"):
        activate(trained, used, [held])
    assert used.read_bytes() == SHIPPED.read_bytes()


def test_a_write_that_fails_leaves_the_one_in_use(
    trained: Path, poor: Path, used: Path, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        activate(trained, used, [held])
    assert used.read_bytes() == poor.read_bytes()
    assert [one.name for one in used.parent.glob(".*.draft")] == []
