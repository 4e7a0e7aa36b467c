"""Strings that must stand in no file: registry hosts, paths of one machine, secrets.

The patterns have a character class in each name, so that this file passes its own check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from house.tree import Finding, Tree

PATTERNS = {
    "a package registry's host": (
        rb"p[y]pi\.org|pythonh[o]sted\.org|registry\.n[p]mjs|n[p]mjs\.org|d[e]b\.debian\.org"
    ),
    "a path of one machine": rb"(?<![\w.~${}-])/(w[o]rk|f[a]rm|r[o]ot)/[\w.]",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE K[E]Y-----\s*\n?[A-Za-z0-9+/=]{16}",
    "an AWS access key": rb"\b(AK[I]A|AS[I]A)[0-9A-Z]{16}\b",
    "an API key": rb"\bs[k]-(proj-|ant-)?[A-Za-z0-9]{32,}\b|\bgh[p]_[A-Za-z0-9]{36}\b",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def findings(tree: Tree) -> Iterator[Finding]:
    """Every forbidden string in every file of `tree`, binary ones too."""
    for path in tree.files:
        yield from scan(str(path), (tree.root / path).read_bytes())


def scan(path: str, content: bytes) -> Iterator[Finding]:
    """Forbidden strings in one file; the finding never repeats the string."""
    for name, pattern in _COMPILED.items():
        for match in pattern.finditer(content):
            yield Finding(path, content.count(b"\n", 0, match.start()) + 1, f"holds {name}")
