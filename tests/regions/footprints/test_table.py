"""The tables know every parameter of the installed SDKs: a new one fails here.

The walk goes through a table and the SDK's request types side by side. Each member of a type
must be a key of its node; members below neutral keys must be listed under `below`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, get_args, get_type_hints

import anthropic.types.beta.message_create_params as beta_messages
import anthropic.types.message_create_params as messages
import botocore.session
import openai.types as oai
import openai.types.chat.completion_create_params as chat
import openai.types.completion_create_params as completions
import openai.types.responses.response_create_params as responses
import pytest
from pydantic import BaseModel

from regions.document import parse_as
from regions.footprints.parameters import tables
from regions.footprints.table import SURFACES, BelowFile, Node, SurfaceFile, compile_table


class Shape(Protocol):
    """A request type of some SDK."""

    @property
    def name(self) -> str: ...
    def members(self) -> Mapping[str, list[Shape]]: ...
    def kinds(self, key: str) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Typed:
    """A TypedDict of the openai or anthropic package, or a model of its answers."""

    type: Any

    @property
    def name(self) -> str:
        return str(self.type.__name__).removeprefix("Beta")

    def members(self) -> Mapping[str, list[Shape]]:
        return _members(self.type)

    def kinds(self, key: str) -> tuple[str, ...]:
        hint = _hints(self.type).get(key)
        return tuple(a for a in _leaves(hint) if isinstance(a, str))


@dataclass(frozen=True)
class Botocore:
    """A structure of a botocore service model."""

    shape: Any

    @property
    def name(self) -> str:
        return str(self.shape.name)

    def members(self) -> Mapping[str, list[Shape]]:
        return {key: list(_structures(member)) for key, member in self.shape.members.items()}

    def kinds(self, key: str) -> tuple[str, ...]:
        return ()


@cache
def _hints(type_: Any) -> Mapping[str, Any]:
    if issubclass(type_, BaseModel):
        return {key: field.annotation for key, field in type_.model_fields.items()}
    return get_type_hints(type_)


@cache
def _members(type_: Any) -> Mapping[str, list[Shape]]:
    return {key: [Typed(t) for t in _dicts(hint)] for key, hint in _hints(type_).items()}


def _leaves(hint: object) -> Iterator[object]:
    pending = [hint]
    while pending:
        item = pending.pop()
        item = getattr(item, "__value__", item)
        parts = get_args(item)
        pending.extend(parts)
        if not parts:
            yield item


def _dicts(hint: object) -> Iterator[type[Any]]:
    for leaf in _leaves(hint):
        # A client may send back what it got: the answers' models stand in requests too.
        if isinstance(leaf, type) and (hasattr(leaf, "__total__") or issubclass(leaf, BaseModel)):
            yield leaf


def _structures(shape: Any) -> Iterator[Shape]:
    while shape.type_name in ("list", "map"):
        shape = shape.member if shape.type_name == "list" else shape.value
    if shape.type_name == "structure":
        yield Botocore(shape)


def _bedrock(operation: str) -> Shape:
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    return Botocore(model.operation_model(operation).input_shape)


def _requests(surface: str) -> list[Shape]:
    typed: dict[str, list[Any]] = {
        "chat.completions": [
            chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming],
        "completions": [
            completions.CompletionCreateParamsNonStreaming,
            completions.CompletionCreateParamsStreaming],
        "embeddings": [oai.EmbeddingCreateParams],
        "responses": [
            responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming],
        "messages": [
            messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming,
            beta_messages.MessageCreateParamsNonStreaming,
            beta_messages.MessageCreateParamsStreaming],
    }  # fmt: skip
    if surface in typed:
        return [Typed(t) for t in typed[surface]]
    names = {"converse": ["Converse", "ConverseStream"],
             "invoke_model": ["InvokeModel", "InvokeModelWithResponseStream"]}  # fmt: skip
    return [_bedrock(name) for name in names[surface]]


class Walk:
    """One comparison of a table with its SDK."""

    def __init__(self, below: Mapping[str, frozenset[str]]) -> None:
        self.below = below
        self.unlisted: set[str] = set()
        self.new_below: dict[str, set[str]] = defaultdict(set)
        self.seen_below: set[str] = set()
        self._done: set[tuple[int, str, tuple[str, ...]]] = set()

    def node(self, node: Node, shape: Shape, path: str) -> None:
        members = shape.members()
        mark = (id(node), shape.name, tuple(members))
        if mark in self._done:
            return
        self._done.add(mark)
        for chosen in self._kinds(node, shape, path):
            if chosen.opaque or chosen.unknown:
                self.opaque(shape)
            else:
                self.fields(chosen, members, path)

    def fields(self, node: Node, members: Mapping[str, list[Shape]], path: str) -> None:
        for key, shapes in members.items():
            if key not in node.keys:
                self.unlisted.add(f"{path}.{key}")
                continue
            rule = node.keys[key]
            for shape in shapes:
                if rule is not None and rule.node is not None:
                    self.node(rule.node, shape, f"{path}.{key}")
                elif rule is None or not (rule.mover or rule.place or rule.unknown):
                    self.opaque(shape)

    def opaque(self, shape: Shape) -> None:
        members = shape.members()
        mark = (0, shape.name, tuple(members))
        if mark in self._done:
            return
        self._done.add(mark)
        self.seen_below.add(shape.name)
        new = set(members) - self.below.get(shape.name, frozenset())
        if new or shape.name not in self.below:
            self.new_below[shape.name] |= set(members)
        for shapes in members.values():
            for inner in shapes:
                self.opaque(inner)

    def _kinds(self, node: Node, shape: Shape, path: str) -> Iterator[Node]:
        if node.by is None:
            yield node
            return
        kinds = shape.kinds(node.by)
        if not kinds and node.default is not None:
            yield node.default
        elif not kinds:
            self.unlisted.add(f"{path}: {shape.name} without `{node.by}`")
        for kind in kinds:
            if kind in node.kinds:
                yield node.kinds[kind]
            else:
                self.unlisted.add(f"{path}[{node.by}={kind}]")


@cache
def below(surface: str) -> Mapping[str, frozenset[str]]:
    folder = files("regions.footprints").joinpath("parameters", "below")
    path = folder.joinpath(f"{surface}.yaml")
    if not path.is_file():
        return {}
    file = parse_as(path.read_bytes(), path.name, BelowFile)[1]
    assert file.surface == surface
    return {name: frozenset(keys) for name, keys in file.below.items()}


@cache
def walked(surface: str) -> Walk:
    walk = Walk(below(surface))
    for shape in _requests(surface):
        walk.node(tables()[surface].request, shape, surface)
    return walk


@pytest.mark.parametrize("surface", SURFACES)
def test_every_parameter_of_the_installed_sdk_is_in_the_table(surface: str) -> None:
    walk = walked(surface)
    assert walk.unlisted == set()
    lines = [f"  {name}: {' '.join(sorted(keys))}" for name, keys in sorted(walk.new_below.items())]
    assert not lines, "new below neutral keys; judge each, then list it:\n" + "\n".join(lines)


@pytest.mark.parametrize("surface", SURFACES)
def test_nothing_below_is_stale(surface: str) -> None:
    assert set(below(surface)) - walked(surface).seen_below == set()


@dataclass(frozen=True)
class Made:
    """A request type written down in a test."""

    fields: tuple[tuple[str, tuple[Made, ...]], ...]
    kind: str = ""
    name: str = "Made"

    def members(self) -> Mapping[str, list[Shape]]:
        return {key: list(shapes) for key, shapes in self.fields}

    def kinds(self, key: str) -> tuple[str, ...]:
        return (self.kind,) if self.kind else ()


SMALL = """
surface: s
source: none
nodes:
  request: {neutral: a, moving: {m: stored}, into: {parts: part}}
  part: {by: type, kinds: {text: {neutral: type text}}}
"""


@pytest.mark.parametrize(
    ("shape", "unlisted", "new_below"),
    [
        (Made((("a", ()), ("m", ()))), set(), set()),
        (Made((("b", ()),)), {"s.b"}, set()),
        (Made((("parts", (Made((("text", ()),), "text"),)),)), set(), set()),
        (Made((("parts", (Made((("url", ()),), "text"),)),)), {"s.parts.url"}, set()),
        (Made((("parts", (Made((), "video"),)),)), {"s.parts[type=video]"}, set()),
        (Made((("parts", (Made(()),)),)), {"s.parts: Made without `type`"}, set()),
        (Made((("a", (Made((("deep", ()),), name="Deep"),)),)), set(), {"Deep"}),
        (Made((("m", (Made((("deep", ()),), name="Deep"),)),)), set(), set()),
    ],
)
def test_a_new_parameter_anywhere_is_found(
    shape: Made, unlisted: set[str], new_below: set[str]
) -> None:
    table = compile_table(parse_as(SMALL, "small", SurfaceFile)[1])
    walk = Walk({})
    walk.node(table.request, shape, "s")
    assert walk.unlisted == unlisted
    assert set(walk.new_below) == new_below


def test_a_node_that_leads_nowhere_is_an_error() -> None:
    text = "{surface: s, source: x, nodes: {request: {into: {a: gone}}}}"
    with pytest.raises(ValueError, match="`s` has no node `gone`"):
        compile_table(parse_as(text, "f", SurfaceFile)[1])
