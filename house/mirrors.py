"""Tests mirror sources: `router/audit/tree.py` is tested in `tests/router/audit/test_tree.py`.

A source file without functions needs no test of its own. A long test file may be split:
`test_tree_proofs.py` belongs to `tree.py` too. Sources tested elsewhere stand in `unmirrored.txt`
with the reason; a line there that is no longer true is a finding as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from house.tree import PACKAGES, Finding, Source, Tree

EXCEPTIONS = PurePosixPath("house/unmirrored.txt")
MIRRORED = (*PACKAGES, "house")
_SHORTEST_REASON = 12


def findings(tree: Tree) -> Iterator[Finding]:
    """Sources without tests, tests without sources, and stale exceptions."""
    sources = {s.path: s for s in tree.python if s.package in MIRRORED and needs_test(s)}
    every = {source.path for source in tree.python if source.package in MIRRORED}
    tests = {path for path in every_test(tree) if path.parts[1] in MIRRORED}
    reasons = exceptions(tree)
    tested = {owner for test in tests if (owner := owner_of(test, every))}
    for path in sorted(sources.keys() - tested - reasons.keys()):
        yield Finding(str(path), 0, f"has no test; write {mirror(path)}")
    for test in sorted(tests):
        if owner_of(test, every) is None:
            yield Finding(str(test), 0, "mirrors no source file")
    for path, (line, reason) in reasons.items():
        yield from _stale(path, line, reason, wanted=path in sources.keys() - tested)


def mirror(path: PurePosixPath) -> PurePosixPath:
    """The test file of a source file."""
    return PurePosixPath("tests") / path.parent / f"test_{path.name}"


def owner_of(test: PurePosixPath, sources: set[PurePosixPath]) -> PurePosixPath | None:
    """The source file a test file belongs to: the longest name that begins the test's."""
    folder = PurePosixPath(*test.parts[1:-1])
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    candidates = (folder / f"{stem}.py" for name in names for stem in (name, f"_{name}"))
    return next((path for path in candidates if path in sources), None)


def needs_test(source: Source) -> bool:
    """Whether a file does something: it has a function with a body (Protocols don't)."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _declares_only(node)
        for node in ast.walk(source.tree)
    )


def every_test(tree: Tree) -> Iterator[PurePosixPath]:
    """Test files in a folder below `tests/`."""
    for source in tree.python:
        parts = source.path.parts
        if parts[0] == "tests" and len(parts) > 2 and parts[-1].startswith("test_"):
            yield source.path


def exceptions(tree: Tree) -> Mapping[PurePosixPath, tuple[int, str]]:
    """Lines `path: reason` of the exceptions file, by path, with their line numbers."""
    file = tree.root / EXCEPTIONS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            path, _, reason = line.partition(":")
            found[PurePosixPath(path.strip())] = (number, reason.strip())
    return found


def _stale(path: PurePosixPath, line: int, reason: str, *, wanted: bool) -> Iterator[Finding]:
    if not wanted:
        yield Finding(str(EXCEPTIONS), line, f"`{path}` needs no exception; remove the line")
    elif len(reason) < _SHORTEST_REASON:
        yield Finding(str(EXCEPTIONS), line, f"say where `{path}` is tested, and why there")


def _declares_only(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body is only a docstring, `...` or `pass`."""
    return all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )
