"""Every command line that documents and helps show is one that there is, with options it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from router.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def joined(text: str) -> Iterator[str]:
    """Its lines, those that end with a backslash together with the next."""
    yield from re.sub(r"\\\n\s*", "", text).splitlines()


def written(text: str) -> Iterator[str]:
    """The lines of blocks and helps that call the command, and what stands in backquotes."""
    for line in joined(text):
        if found := re.match(r"\s*(?:\$ )?(domicile [a-z].*?)(?:\s+#.*)?$", line):
            yield found[1]
    yield from re.findall(r"`(domicile [a-z-]+[^`…\[]*)`", text)


def parsed(line: str) -> str:
    """The command it calls. Raises UsageError for one that there isn't, or its options."""
    words = shlex.split(re.split(r" [|>&]|&$", line)[0])[1:]
    command: click.Command = main
    path = ["domicile"]
    while isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
        path.append(command.name or "")
        if not words:
            break
    if not isinstance(command, click.Group):
        command.make_parser(click.Context(command)).parse_args(list(words))
    return " ".join(path)


def helps(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from helps(found, f"{path} {name}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_in_a_document(page: Path) -> None:
    for line in written(page.read_text(encoding="utf-8")):
        assert parsed(line).startswith("domicile "), line


def test_in_a_help() -> None:
    lines = [one for _, command in helps(main, "domicile") for one in written(command.help or "")]
    assert len(lines) > 80
    for line in lines:
        assert parsed(line).startswith("domicile "), line


LEAVES = {path: one for path, one in helps(main, "domicile") if not isinstance(one, click.Group)}


@pytest.mark.parametrize("path", LEAVES)
def test_each_help_is_whole(path: str) -> None:
    """What a call means to a script, and how one looks that needs more than its name."""
    command = LEAVES[path]
    shown, needed = command.help or "", [one for one in command.params if one.required]
    assert "Exit codes: 0 " in shown
    assert not needed or any(parsed(line) == path for line in written(shown))
    for one in command.params:
        assert not isinstance(one, click.Option) or one.help or one.hidden, one.name


def test_what_is_none_is_seen() -> None:
    for line in (
        "domicile forecast",
        "domicile check --lively",
        "domicile audit verify log --again",
    ):
        with pytest.raises(click.UsageError):
            parsed(line)
