"""Size and naming budgets. Branches, docstrings and line length are ruff's part.

1. a file has at most 400 lines
2. a function has at most 60 lines, tests included; over the sources the median is at most 9, and
   nine of ten have at most 25 (signature, docstring and comments count: a reader reads them too)
3. no signature or field of a source says `dict[str, Any]` or `Mapping[str, Any]`
4. no module or class is named for nothing (`manager`, `helper`, …)
5. `__init__.py` is empty
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from math import ceil
from statistics import median

from house.tree import PACKAGES, Finding, Source, Tree

FILE_LINES = 400
FUNCTION_LINES = 60
MEDIAN_LINES = 9
NINE_OF_TEN_LINES = 25
EMPTY_WORDS = frozenset(
    word + plural
    for word in ("manager", "helper", "util", "handler", "processor", "info", "context")
    for plural in ("", "s")
)
_LOOSE = re.compile(r"\b(dict|Dict|Mapping|MutableMapping)\[str, (typing\.)?Any\]")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def findings(tree: Tree) -> Iterator[Finding]:
    """Everything over budget in `tree`, in the order of the list above."""
    for source in tree.python:
        yield from file_findings(source)
    yield from spread_findings(tree.sources)


def file_findings(source: Source) -> Iterator[Finding]:
    """What one file does wrong by itself."""
    yield from _too_long(source)
    yield from _empty_names(source)
    if source.package in PACKAGES:
        yield from _loose_types(source)
        if source.path.name == "__init__.py" and source.text.strip():
            yield Finding(str(source.path), 0, "is not empty; import from the module itself")


def spread_findings(sources: Iterable[Source]) -> Iterator[Finding]:
    """The median and the nine-of-ten length over all functions of `sources`."""
    lengths = sorted(length(node) for source in sources for node in functions(source))
    if not lengths:
        return
    middle, most = median(lengths), lengths[ceil(0.9 * len(lengths)) - 1]
    if middle > MEDIAN_LINES:
        yield Finding("all sources", 0, f"median function has {middle} lines, over {MEDIAN_LINES}")
    if most > NINE_OF_TEN_LINES:
        text = f"one function in ten has {most} lines or more, over {NINE_OF_TEN_LINES}"
        yield Finding("all sources", 0, text)


def functions(source: Source) -> Iterator[Function]:
    """Every function and method of a file, nested ones too."""
    return (node for node in ast.walk(source.tree) if isinstance(node, Function))


def length(node: Function) -> int:
    """Lines of a function from `def` to its end, without decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _too_long(source: Source) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if lines > FILE_LINES:
        yield Finding(str(source.path), 0, f"has {lines} lines, over {FILE_LINES}")
    for node in functions(source):
        if length(node) > FUNCTION_LINES:
            text = f"`{node.name}` has {length(node)} lines, over {FUNCTION_LINES}"
            yield Finding(str(source.path), node.lineno, text)


def _empty_names(source: Source) -> Iterator[Finding]:
    names = [(0, part) for part in source.path.with_suffix("").parts]
    names += [(n.lineno, n.name) for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)]
    for line, name in names:
        said = {word.lower() for word in _WORD.findall(name)} & EMPTY_WORDS
        if said:
            text = f"`{name}` says `{said.pop()}`; name it for what it is"
            yield Finding(str(source.path), line, text)


def _loose_types(source: Source) -> Iterator[Finding]:
    for line, annotation in _public_annotations(source.tree):
        if _LOOSE.search(ast.unparse(annotation)):
            said = ast.unparse(annotation)
            text = f"`{said}` between modules; use a typed class or Mapping[str, object]"
            yield Finding(str(source.path), line, text)


def _public_annotations(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Annotations another module sees: of public functions, and of fields of public classes."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [tree.body, *(node.body for node in classes if not node.name.startswith("_"))]
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.AnnAssign):
            yield statement.lineno, statement.annotation
        elif isinstance(statement, Function) and not statement.name.startswith("_"):
            yield from _signature(statement)


def _signature(function: Function) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg) and node.annotation:
            yield node.lineno, node.annotation
    if function.returns:
        yield function.lineno, function.returns
