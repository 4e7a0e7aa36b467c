"""Somebody else's YAML, each value with its line.

`regions.document` refuses anchors, merges and unknown keys, since its files are ours. A file
that another program accepts is read here as that program reads it; every scalar stays text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from router.config import ConfigError

MAX_BYTES = 8 << 20
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Marked:
    """A value and its line, counted from 1."""

    # Its own repr would write out every alias again.
    node: yaml.Node = field(repr=False)

    @property
    def line(self) -> int:
        """The line it starts in."""
        line: int = self.node.start_mark.line
        return line + 1

    @property
    def text(self) -> str | None:
        """A scalar's text; `None` for null, a list or a mapping."""
        if not isinstance(self.node, yaml.ScalarNode):
            return None
        plain = self.node.style is None
        value = str(self.node.value)
        return None if plain and value in _NULLS else value

    @property
    def entries(self) -> tuple[Marked, ...]:
        """A list's entries; none of anything else."""
        is_list = isinstance(self.node, yaml.SequenceNode)
        return tuple(Marked(node) for node in self.node.value) if is_list else ()

    @property
    def pairs(self) -> Iterator[tuple[str, Marked]]:
        """A mapping's keys with their values, merged ones after its own; none of anything else."""
        return _pairs(self.node)

    def at(self, *path: str) -> Marked | None:
        """The value below these keys, or `None` when there is none."""
        found: Marked | None = self
        for name in path:
            found = next((v for k, v in found.pairs if k == name), None) if found else None
        return found

    def text_at(self, *path: str) -> str | None:
        """The scalar below these keys."""
        found = self.at(*path)
        return found.text if found is not None else None


def _pairs(root: yaml.Node) -> Iterator[tuple[str, Marked]]:
    """Own keys first. Each mapping is merged once, so that merges of merges stay few."""
    pending, seen = [root], {id(root)}
    while pending:
        node = pending.pop(0)
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.value != "<<":
                yield str(key.value), Marked(value)
                continue
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            fresh = {id(one): one for one in merged if id(one) not in seen}
            seen.update(fresh)
            pending += fresh.values()


def read_marked(content: bytes, name: str) -> Marked:
    """The document in `content`.

    Raises:
        ConfigError: it is too large, empty, or not YAML; the message says where.
    """
    if len(content) > MAX_BYTES:
        raise ConfigError(f"`{name}` has {len(content)} bytes; at most {MAX_BYTES} are read")
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigError(f"{name}{where}: {problem}; give a file that can be loaded") from None
    except (UnicodeDecodeError, RecursionError):
        raise ConfigError(f"`{name}` can't be read as YAML in UTF-8") from None
    if root is None:
        raise ConfigError(f"`{name}` is empty; give a LiteLLM configuration with a `model_list`")
    return Marked(root)
