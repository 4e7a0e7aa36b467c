"""The source tree as the checks see it: every file under version control, or about to be."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

PACKAGES = ("router", "classifiers", "policies", "regions")
FOLDERS = (*PACKAGES, "house", "tests", "bench")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing to mend: where (`line` 0 for the whole file) and what."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the root, text and syntax tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def package(self) -> str:
        """The top folder: `router`, `tests`, …"""
        return self.path.parts[0]

    @property
    def module(self) -> str:
        """The dotted module name; a package's `__init__` has the package's name."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Tree:
    """All files below `root`; ignored ones left out when `root` is a git work tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> tuple[PurePosixPath, ...]:
        """Paths from the root, sorted."""
        listed = self._listed_by_git()
        found = self._walked() if listed is None else listed
        return tuple(sorted(path for path in found if (self.root / path).is_file()))

    @cached_property
    def python(self) -> tuple[Source, ...]:
        """Every Python file of the folders that the checks look after, parsed."""
        return tuple(
            self.parse(path)
            for path in self.files
            if path.suffix == ".py" and path.parts[0] in FOLDERS
        )

    @property
    def sources(self) -> Iterator[Source]:
        """The Python files of the four packages."""
        return (source for source in self.python if source.package in PACKAGES)

    def parse(self, path: PurePosixPath) -> Source:
        """Read and parse one file; `SyntaxError` names it."""
        text = (self.root / path).read_text(encoding="utf-8")
        return Source(path, text, ast.parse(text, filename=str(path)))

    def _listed_by_git(self) -> list[PurePosixPath] | None:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return [PurePosixPath(name) for name in done.stdout.decode().split("\0") if name]

    def _walked(self) -> list[PurePosixPath]:
        found = (path.relative_to(self.root) for path in self.root.rglob("*"))
        return [
            PurePosixPath(path)
            for path in found
            if not any(part.startswith(".") or part == "__pycache__" for part in path.parts)
        ]
