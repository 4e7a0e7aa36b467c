"""Compiling the scorer: it works, or says in one line why not and what serves instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from classifiers.difficulty.compiled import LibraryError, load, place
from router.tiers.compiling import COMPILERS, NotCompiled, build


def program(folder: Path, text: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler here")
def test_what_was_compiled_can_be_loaded(tmp_path: Path) -> None:
    path = build(tmp_path, {})
    assert path == place(tmp_path)
    assert load(path).path == path
    assert list(tmp_path.iterdir()) == [path]


def test_no_compiler(tmp_path: Path) -> None:
    with pytest.raises(NotCompiled, match=r"no C compiler \(cc, gcc, clang\): install one"):
        build(tmp_path, {}, lambda name: None)
    with pytest.raises(NotCompiled, match=r"no C compiler \(tcc-9\)"):
        build(tmp_path, {"CC": "tcc-9"}, lambda name: None)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    failing = program(tmp_path, "echo no such header >&2; exit 1")
    with pytest.raises(NotCompiled, match="failed: no such header"):
        build(tmp_path, {"CC": failing})
    assert not place(tmp_path).exists()


def test_what_can_not_be_loaded_is_not_kept(tmp_path: Path) -> None:
    strange = program(tmp_path, 'while [ "$1" != -o ]; do shift; done; echo none > "$2"')
    with pytest.raises(LibraryError, match="can't be loaded"):
        build(tmp_path, {"CC": strange})
    assert not place(tmp_path).exists()


def test_a_folder_that_can_not_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(NotCompiled, match="can't write to"):
        build(tmp_path / "none", {"CC": program(tmp_path, "exit 0")})
