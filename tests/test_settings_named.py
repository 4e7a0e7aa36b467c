"""Documents name settings by the paths that `domicile.yaml` has, from its top."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from router.config import Config

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+)(?:: [^`]*)?`")
FILES = {"log.key", "keys.yaml"}
"""What is called like a setting and is a file."""


def sections(kind: object) -> Iterator[type[BaseModel]]:
    """The sections that a setting may hold: itself, or what is in its list or choice."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from sections(part)


def is_setting(path: str, within: type[BaseModel] = Config) -> bool:
    """Whether a path leads to a setting."""
    name, _, rest = path.partition(".")
    names = {field.alias or key: field for key, field in within.model_fields.items()}
    if name not in names:
        return False
    return not rest or any(is_setting(rest, one) for one in sections(names[name].annotation))


def inner(within: type[BaseModel] = Config) -> Iterator[str]:
    """Names of sections within sections."""
    for field in within.model_fields.values():
        for section in sections(field.annotation):
            for name, own in section.model_fields.items():
                if any(sections(own.annotation)):
                    yield name
            yield from inner(section)


def mistaken(text: str) -> Iterator[str]:
    """Paths that begin as a setting's would, and lead to none."""
    begins = {*Config.model_fields, *inner()}
    for path in NAMED.findall(text):
        module = ROOT / f"{path.replace('.', '/')}.py"
        is_file = module.exists() or path in FILES
        if path.partition(".")[0] in begins and not is_file and not is_setting(path):
            yield path


@pytest.mark.parametrize("file", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=str)
def test_every_setting_is_named_by_its_whole_path(file: Path) -> None:
    assert list(mistaken(file.read_text())) == []


def test_what_leads_nowhere_is_seen() -> None:
    text = (
        "`router.limits.queue` `limits.queue` `router.limits.que` `log.seal.local: release` "
        "`router.decisions.field` `state.timeout` `who.priority` `seal.local` `log.key`"
    )
    assert list(mistaken(text)) == ["limits.queue", "router.limits.que", "seal.local"]
