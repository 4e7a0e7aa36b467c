"""Documents tell the truth about files and commands.

1. a relative link of a Markdown file leads to a file that is there
2. `./run X` in a document names a command that `run` has
3. `domicile X` in a code block or in backticks names a command that answers `--help`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from house.effects import python
from house.tree import Finding, Tree

_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)")
_RUN = re.compile(r"\./run ([a-z0-9]+)")
_COMMAND = re.compile(
    r"(?:^\s*(?:\$ )?|`|\./\.venv/bin/|&& )domicile ((?:[a-z]+)(?: [a-z]+)?)", re.MULTILINE
)
_LABEL = re.compile(r"^    ([a-z0-9|]+)[^()\n]*\)", re.MULTILINE)
_MAIN = "import sys; from router.cli.main import main; sys.argv[0] = 'domicile'; main()"


def findings(tree: Tree) -> Iterator[Finding]:
    """Dead links and unknown commands in every Markdown file."""
    known = run_commands((tree.root / "run").read_text(encoding="utf-8"))
    answers = cache(lambda words: answers_help(tree, words))
    for path in tree.files:
        if path.suffix != ".md":
            continue
        text = (tree.root / path).read_text(encoding="utf-8")
        yield from dead_links(tree.root, path, text)
        for match in _RUN.finditer(text):
            if match[1] not in known:
                yield _at(path, text, match, f"`./run {match[1]}` is no command of run")
        for match in _COMMAND.finditer(text):
            if not any(answers(words) for words in readings(match[1])):
                yield _at(path, text, match, f"`domicile {match[1]}` does not answer --help")


def dead_links(root: Path, path: PurePosixPath, text: str) -> Iterator[Finding]:
    """Relative links that lead nowhere."""
    for match in _LINK.finditer(text):
        target = root / path.parent / match[1].split("#")[0]
        if not target.exists():
            yield _at(path, text, match, f"links to `{match[1]}`, which is not there")


def run_commands(script: str) -> set[str]:
    """The labels of the last `case` of `run`."""
    body = script[script.rindex("case $command in") :]
    return {name for match in _LABEL.finditer(body) for name in match[1].split("|")}


def readings(words: str) -> list[tuple[str, ...]]:
    """`keys new` may be a command and its subcommand, or a command and an argument."""
    first, *rest = words.split()
    return [(first, *rest), (first,)] if rest else [(first,)]


def answers_help(tree: Tree, words: tuple[str, ...]) -> bool:
    """Whether `domicile WORDS --help` exits 0."""
    return python(tree, "-c", _MAIN, *words, "--help").returncode == 0


def _at(path: PurePosixPath, text: str, match: re.Match[str], said: str) -> Finding:
    return Finding(str(path), text.count("\n", 0, match.start()) + 1, said)
