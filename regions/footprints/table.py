"""The parameter table: what each part of a request does to where its bytes go.

One YAML file a surface, in `regions/footprints/parameters/`. A file describes the request as
nodes. Each key of a node is

- `neutral`: no bytes move because of it, whatever it holds; not looked into;
- `moving`: a value that says something (an object, if only `{}`; else not null, false or empty)
  has the named mover;
- `links`: as moving, unless the value is a `data:` URL, which carries its bytes with it;
- `carried`: bytes in the request itself: nothing moves, unless a URL stands where they belong;
- `places`: a place parameter: its value is kept, to be compared with the endpoint's own;
- `unknown`: known to exist, but not what it moves: treated like a key nobody listed;
- `into`: leads to another node, through lists of any depth.

A node `by: KEY` is chosen among `kinds` by the value of that key (`default` when it is
absent); a kind is a node, `neutral` (an opaque whole) or `unknown`; one that isn't listed is
unknown, and moves what `otherwise` says. `always` are neutral keys of every kind. `absent`
names movers of keys that a request leaves out. `text` is the mover of a plain string where a
node is expected. The files in `parameters/below/` list, by the SDK's type, what lies under
neutral keys: they do nothing at run time, and make a new parameter there fail a test.

A key that nobody listed and that differs from a listed one only in case or in what joins its
words (`Inference_Geo`) does what that one does: a lenient server takes it for it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from regions.document import parse_as
from regions.facts import Words

_File = TypeVar("_File", bound=BaseModel)
_JOINTS: Final = re.compile(r"[\W_]+")
SURFACES = (
    "chat.completions",
    "completions",
    "converse",
    "embeddings",
    "invoke_model",
    "messages",
    "responses",
)


class NodeRow(BaseModel):
    """One node as its file writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    neutral: Words = ()
    moving: dict[str, str] = Field(default_factory=dict)
    links: dict[str, str] = Field(default_factory=dict)
    carried: Words = ()
    places: Words = ()
    unknown: Words = ()
    into: dict[str, str] = Field(default_factory=dict)
    unless: dict[str, str] = Field(default_factory=dict)
    absent: dict[str, str] = Field(default_factory=dict)
    features: dict[str, str] = Field(default_factory=dict)
    feature: str | None = None
    mover: str | None = None
    text: str | None = None
    by: str | None = None
    always: Words = ()
    default: str | None = None
    otherwise: str | None = None
    kinds: dict[str, str | NodeRow] = Field(default_factory=dict)


class SurfaceFile(BaseModel):
    """One surface's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    surface: str
    source: str
    nodes: dict[str, NodeRow]


class BelowFile(BaseModel):
    """One surface's file in `below/`: SDK type → its members, each judged to move nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    surface: str
    source: str
    below: dict[str, Words]


class PlacesFile(BaseModel):
    """`places.yaml`: place parameters of every surface's request node."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    places: Words


@dataclass(slots=True)
class Rule:
    """What one key does, when not simply neutral; `plain`: nothing, when the value is text."""

    mover: str | None = None
    link: bool = False
    carried: bool = False
    place: bool = False
    unknown: bool = False
    unless: str | None = None
    feature: str | None = None
    node: Node | None = None
    plain: bool = False

    @property
    def only_feature(self) -> bool:
        """Whether the answer's kind is all that hangs on it."""
        moves = self.link or self.carried or self.place or self.unknown or self.mover is not None
        return not moves and self.node is None and self.feature is not None


@dataclass(slots=True)
class Node:
    """A compiled node; `keys` maps a neutral key to `None`, `near` what is left of a key that
    isn't neutral (see `folded`) to its rule.

    `says`: an object of it that is a role and a text moves nothing, whatever they say.
    """

    name: str
    keys: dict[str, Rule | None] = field(default_factory=dict)
    near: dict[str, Rule] = field(default_factory=dict)
    by: str | None = None
    kinds: dict[str, Node] = field(default_factory=dict)
    default: Node | None = None
    otherwise: str | None = None
    absent: tuple[tuple[str, str], ...] = ()
    feature: str | None = None
    mover: str | None = None
    text: str | None = None
    opaque: bool = False
    unknown: bool = False
    says: bool = False

    def passes(self, key: str) -> bool:
        """Whether a text under a key moves nothing."""
        rule = self.keys.get(key, _UNLISTED)
        return rule is None or (rule.plain and (rule.node is None or bool(rule.node.by)))

    def is_quiet(self) -> bool:
        """Whether nothing in it depends on more than what its keys hold."""
        kinds = self.by is not None or self.opaque or self.unknown
        return not (kinds or self.absent or self.mover or self.feature)


_UNLISTED = Rule(unknown=True)


@dataclass(frozen=True, slots=True)
class Table:
    """One surface's nodes, from the request down."""

    surface: str
    request: Node


def load_tables() -> dict[str, Table]:
    """Every surface's table, from package data.

    Raises:
        DocumentErrors: a file that can't be read.
        ValueError: a node that leads to one that doesn't exist.
    """
    places = _read("places", PlacesFile).places
    return {name: compile_table(_read(name, SurfaceFile), places) for name in SURFACES}


def compile_table(file: SurfaceFile, places: tuple[str, ...] = ()) -> Table:
    """The compiled form of one file; `places` are added to its request node."""
    compiler = _Compiler(file)
    request = compiler.node("request")
    for name in places:
        request.keys.setdefault(name, Rule(place=True))
    _fold(request)
    for node in compiler.nodes:
        node.says = node.is_quiet() and node.passes("role") and node.passes("content")
    return Table(file.surface, request)


def folded(key: str) -> str:
    """A key without case, compatibility forms and what joins words."""
    return _JOINTS.sub("", unicodedata.normalize("NFKC", key).casefold())


def _fold(node: Node) -> None:
    node.near = {folded(key): rule for key, rule in node.keys.items() if rule is not None}


def _read(name: str, model: type[_File]) -> _File:
    path = f"{name}.yaml"
    content = files("regions.footprints").joinpath("parameters", path).read_bytes()
    return parse_as(content, f"regions/footprints/parameters/{path}", model)[1]


class _Compiler:
    """Builds each named node once, so that nodes may lead to themselves."""

    def __init__(self, file: SurfaceFile) -> None:
        self._file = file
        self._done: dict[str, Node] = {
            "neutral": Node("neutral", opaque=True),
            "unknown": Node("unknown", unknown=True),
        }

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._done.values())

    def node(self, name: str) -> Node:
        if name not in self._done:
            row = self._file.nodes.get(name)
            if row is None:
                raise ValueError(f"`{self._file.surface}` has no node `{name}`")
            node = self._done[name] = Node(name)
            self._fill(node, row)
        return self._done[name]

    def _fill(self, node: Node, row: NodeRow, always: tuple[str, ...] = ()) -> None:
        node.feature, node.mover, node.text = row.feature, row.mover, row.text
        node.by, node.absent = row.by, tuple(row.absent.items())
        node.otherwise = row.otherwise
        node.opaque = row.mover is not None
        node.keys.update(self._keys(row))
        node.keys.update(dict.fromkeys(always))
        _fold(node)
        for kind, target in row.kinds.items():
            node.kinds[kind] = self._kind(f"{node.name}.{kind}", target, row.always)
        if row.default is not None:
            found = node.kinds.get(row.default)
            node.default = found if found is not None else self.node(row.default)

    def _kind(self, name: str, target: str | NodeRow, always: tuple[str, ...]) -> Node:
        if isinstance(target, str):
            return self.node(target)
        node = Node(name)
        self._fill(node, target, always)
        return node

    def _keys(self, row: NodeRow) -> Iterator[tuple[str, Rule | None]]:
        for key in row.neutral:
            feature = row.features.get(key)
            yield key, Rule(feature=feature) if feature else None
        for key, mover in row.moving.items():
            yield key, Rule(mover, unless=row.unless.get(key), feature=row.features.get(key))
        for key, mover in row.links.items():
            yield key, Rule(mover, link=True, feature=row.features.get(key))
        for key in row.carried:
            yield key, Rule(carried=True, feature=row.features.get(key))
        for key in row.places:
            yield key, Rule(place=True)
        for key in row.unknown:
            yield key, Rule(unknown=True)
        for key, target in row.into.items():
            node, feature = self.node(target), row.features.get(key)
            plain = self._file.nodes[target].text is None and feature is None
            yield key, Rule(node=node, feature=feature, plain=plain)
