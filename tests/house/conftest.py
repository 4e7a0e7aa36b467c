"""A small tree of files to run the checks on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """A function that writes files, by path, and gives the tree of them."""

    def write(files: dict[str, str]) -> Tree:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(tmp_path)

    return write
