"""YAML documents in which every scalar is text and every error has a place.

`NO` is Norway and `1.10` keeps its zero, because nothing here guesses types: pydantic
models turn text into numbers where a number is meant. Anchors, aliases, tags, directives,
duplicate keys and keys that aren't text are refused. Used for configuration, baseline and
rule files, catalog data and cases.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml import events
from yaml._yaml import CParser

Tree = str | list["Tree"] | dict[str, "Tree"]
Path = tuple[str | int, ...]
_Model = TypeVar("_Model", bound=BaseModel)
_Spot = tuple[int, int]

PLACEHOLDER = r"\$[{(]|\{\{"  # what a shell or a template tool would have filled in
MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 1_000_000
_SHOWN = 60


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class DocumentError(ValueError):
    """One thing wrong in a document, with its place."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(f"{mark}: {message}")
        self.mark = mark
        self.message = message


class DocumentErrors(ValueError):
    """Everything wrong in one or more documents, one error a line, in file order."""

    def __init__(self, errors: Iterable[DocumentError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda e: (e.mark, e.message)))
        super().__init__("\n".join(str(e) for e in self.errors))


@dataclass(slots=True)
class _Branch:
    """A mapping or sequence while and after it is read, beside its plain `value`."""

    spot: _Spot
    value: list[Tree] | dict[str, Tree]
    items: list[_Branch | _Spot] = field(default_factory=list)
    entries: dict[str, tuple[_Spot, _Branch | _Spot]] = field(default_factory=dict)
    key: str | None = None
    key_spot: _Spot = (0, 0)


class Document:
    """A parsed document: a plain tree of `str`, `list` and `dict`, and where each part stands."""

    __slots__ = ("_root", "name", "tree")

    def __init__(self, name: str, tree: Tree, root: _Branch | _Spot) -> None:
        self.name = name
        self.tree = tree
        self._root = root

    @classmethod
    def parse(cls, text: str | bytes, name: str, max_bytes: int = MAX_BYTES) -> Document:
        """Read one YAML document. An empty file is an empty mapping.

        Raises:
            DocumentErrors: not UTF-8, not YAML, too large, too deep, or something refused.
        """
        data = _encoded(text, name, max_bytes)
        reader = _Reader(name)
        try:
            reader.read(CParser(data))
        except yaml.MarkedYAMLError as problem:
            reader.errors.append(_syntax_error(problem, name))
        except yaml.reader.ReaderError as problem:
            reader.errors.append(_bad_character(problem, data, name))
        if reader.errors:
            raise DocumentErrors(reader.errors)
        return cls(name, reader.tree, reader.root)

    def holds(self, path: Path) -> bool:
        """Whether something is written at `path`, keys of mappings all the way."""
        found: object = self.tree
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found is not None

    def mark(self, path: Path = ()) -> Mark:
        """Where the value at `path` starts, or its nearest ancestor that exists."""
        return self._find(path)[0]

    def key_mark(self, path: Path) -> Mark:
        """Where the key of the entry at `path` stands; the value's place for a list item."""
        return self._find(path)[1]

    def error(self, path: Path, message: str) -> DocumentError:
        """An error about the value at `path`, to be collected and raised in `DocumentErrors`."""
        return DocumentError(self.mark(path), message)

    def _find(self, path: Path) -> tuple[Mark, Mark]:
        node: _Branch | _Spot = self._root
        key_spot = _spot_of(node)
        for part in path:
            found = _child(node, part)
            if found is None:
                continue  # names of union members and validators, which pydantic adds
            key_spot, node = found
        return self._at(_spot_of(node)), self._at(key_spot)

    def _at(self, spot: _Spot) -> Mark:
        return Mark(self.name, spot[0] + 1, spot[1] + 1)


def validate(document: Document, model: type[_Model]) -> _Model:
    """The document as a pydantic model.

    Raises:
        DocumentErrors: every error pydantic finds, each with its place in the file.
    """
    try:
        return model.model_validate(document.tree)
    except ValidationError as problem:
        raise DocumentErrors(
            _located(document, detail, model)
            for detail in problem.errors(include_url=False, include_context=True)
        ) from None


def parse_as(text: str | bytes, name: str, model: type[_Model]) -> tuple[Document, _Model]:
    """Parse and validate in one go; raises `DocumentErrors`."""
    document = Document.parse(text, name)
    return document, validate(document, model)


# -- reading -----------------------------------------------------------------------------


class _Reader:
    """Turns parser events into a tree; collects what is refused instead of stopping."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.errors: list[DocumentError] = []
        self.tree: Tree = {}
        self.root: _Branch | _Spot = _Branch((0, 0), {})
        self._stack: list[_Branch] = []
        self._documents = 0
        self._nodes = 0

    def read(self, parser: CParser) -> None:
        while True:
            event: Any = parser.get_event()
            kind = type(event)
            if kind is events.ScalarEvent:
                self._scalar(event)
            elif kind is events.MappingStartEvent or kind is events.SequenceStartEvent:
                if not self._open(event, {} if kind is events.MappingStartEvent else []):
                    return
            elif kind is events.MappingEndEvent or kind is events.SequenceEndEvent:
                self._stack.pop()
            elif kind is events.AliasEvent:
                self._refuse(event, f"alias `*{event.anchor}` is refused; write the value out")
                self._place("", _spot(event))
            elif kind is events.DocumentStartEvent:
                self._document(event)
            elif kind is events.StreamEndEvent:
                return

    def _document(self, event: Any) -> None:
        self._documents += 1
        if event.version or event.tags:
            self._refuse(event, "a `%` directive is refused; remove it")
        if self._documents > 1:
            self._refuse(event, "a second document begins here; use one file for each")

    def _scalar(self, event: Any) -> None:
        if event.tag is not None:
            self._refuse(event, f"tag `{event.tag}` is refused; every scalar is text")
        self._check_anchor(event)
        self._place(event.value, _spot(event))

    def _open(self, event: Any, value: list[Tree] | dict[str, Tree]) -> bool:
        if event.tag is not None:
            self._refuse(event, f"tag `{event.tag}` is refused; remove it")
        self._check_anchor(event)
        if len(self._stack) >= MAX_DEPTH or self._nodes > MAX_NODES:
            limit = f"{MAX_DEPTH} levels deep" if self._nodes <= MAX_NODES else f"{MAX_NODES} parts"
            self._refuse(event, f"the document is more than {limit}; split it")
            return False
        branch = _Branch(_spot(event), value)
        self._place(value, branch)
        self._stack.append(branch)
        return True

    def _check_anchor(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse(event, f"anchor `&{event.anchor}` is refused; write the value twice")

    def _place(self, value: Tree, node: _Branch | _Spot) -> None:
        self._nodes += 1
        if not self._stack:
            if self._documents == 1:
                self.tree, self.root = value, node
            return
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
            parent.items.append(node)
        elif parent.key is None:
            self._set_key(parent, value, node)
        else:
            parent.value[parent.key] = value
            parent.entries[parent.key] = (parent.key_spot, node)
            parent.key = None

    def _set_key(self, parent: _Branch, value: Tree, node: _Branch | _Spot) -> None:
        spot = _spot_of(node)
        if not isinstance(value, str):
            self.errors.append(DocumentError(self._mark(spot), "a key must be plain text"))
            value = ""
        elif value in parent.entries:
            first = self._mark(parent.entries[value][0])
            message = f"key `{_shown(value)}` stands twice; the first is at line {first.line}"
            self.errors.append(DocumentError(self._mark(spot), message))
        parent.key, parent.key_spot = value, spot

    def _refuse(self, event: Any, message: str) -> None:
        self.errors.append(DocumentError(self._mark(_spot(event)), message))

    def _mark(self, spot: _Spot) -> Mark:
        return Mark(self.name, spot[0] + 1, spot[1] + 1)


def _spot(event: Any) -> _Spot:
    mark = event.start_mark
    return (mark.line, mark.column)


def _spot_of(node: _Branch | _Spot) -> _Spot:
    return node.spot if isinstance(node, _Branch) else node


def _child(node: _Branch | _Spot, part: str | int) -> tuple[_Spot, _Branch | _Spot] | None:
    if not isinstance(node, _Branch):
        return None
    if isinstance(part, str):
        return node.entries.get(part)
    if 0 <= part < len(node.items):
        item = node.items[part]
        return _spot_of(item), item
    return None


def _encoded(text: str | bytes, name: str, max_bytes: int) -> bytes:
    try:
        data = text.encode() if isinstance(text, str) else text
        data.decode()
    except UnicodeEncodeError as problem:
        lone = DocumentError(Mark(name, 1, problem.start + 1), "not text: a lone surrogate")
        raise DocumentErrors([lone]) from None
    except UnicodeDecodeError as problem:
        mark = _mark_of_byte(problem.object, problem.start, name)
        raise DocumentErrors([DocumentError(mark, "not UTF-8; save the file as UTF-8")]) from None
    if len(data) > max_bytes:
        message = f"the file has {len(data)} bytes, more than {max_bytes}; split it"
        raise DocumentErrors([DocumentError(Mark(name, 1, 1), message)])
    return data.removeprefix(b"\xef\xbb\xbf")


def _mark_of_byte(data: bytes, index: int, name: str) -> Mark:
    before = data[:index]
    start = before.rfind(b"\n") + 1
    column = len(before[start:].decode(errors="replace")) + 1
    return Mark(name, before.count(b"\n") + 1, column)


def _syntax_error(problem: yaml.MarkedYAMLError, name: str) -> DocumentError:
    mark = problem.problem_mark or problem.context_mark
    place = Mark(name, mark.line + 1, mark.column + 1) if mark else Mark(name, 1, 1)
    reason = ", ".join(part for part in (problem.context, problem.problem) if part)
    return DocumentError(place, f"not YAML: {reason}")


def _bad_character(problem: yaml.reader.ReaderError, data: bytes, name: str) -> DocumentError:
    mark = _mark_of_byte(data, int(problem.position), name)
    return DocumentError(mark, f"not YAML: {problem.reason}")


# -- pydantic's errors -------------------------------------------------------------------


def _located(document: Document, detail: ErrorDetails, model: type[BaseModel]) -> DocumentError:
    path: Path = detail["loc"]
    where = _readable(document.tree, path, keep_last=detail["type"] == "missing")
    prefix = f"`{where}`: " if where else ""
    if detail["type"] == "extra_forbidden":
        hint = _key_hint(str(path[-1]), _keys_at(model, path[:-1]))
        return DocumentError(document.key_mark(path), f"unknown key `{where}`{hint}")
    if path and path[-1] == "[key]":
        return DocumentError(document.key_mark(path[:-1]), prefix + _message(detail))
    return DocumentError(document.mark(path), prefix + _message(detail))


def _key_hint(key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    listed = ", ".join(f"`{name}`" for name in known)
    return f"; known keys: {listed}" if known else "; remove it"


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is missing; add it"
    text = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    text = text[:1].lower() + text[1:]
    given = detail["input"]
    if isinstance(given, str) and f"`{given}`" not in text:
        return f"{text}, not `{_shown(given)}`"
    return text


def _readable(tree: Tree, path: Path, keep_last: bool) -> str:
    """The path without what pydantic adds: names of union members, validators, `[key]`."""
    shown: list[str] = []
    node: object = tree
    for n, part in enumerate(path):
        below = _below(node, part)
        if below is not None:
            node = below
        elif n < len(path) - 1 or not keep_last:
            continue
        shown.append(str(part))
    return _shown(".".join(shown))


def _below(node: object, part: str | int) -> object:
    if isinstance(node, dict):
        return node.get(part)
    if isinstance(node, list) and isinstance(part, int) and part < len(node):
        return node[part]
    return None


def _keys_at(model: type[BaseModel], path: Path) -> Sequence[str]:
    """The keys a model has at a path, where its annotations tell; else nothing."""
    current: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int) or current is None:
            continue
        found = _field_named(current, part)
        if found is not None:
            current = _model_within(found)
    return () if current is None else [f.alias or n for n, f in current.model_fields.items()]


def _field_named(model: type[BaseModel], key: str) -> object:
    fields: Mapping[str, Any] = model.model_fields
    for name, known in fields.items():
        if key in (name, known.alias):
            return known.annotation
    return None


def _model_within(annotation: object) -> type[BaseModel] | None:
    """The one model inside an annotation as `dict[str, Model]`; `None` for none or several."""
    pending, models = [annotation], set[type[BaseModel]]()
    while pending:
        item = pending.pop()
        if isinstance(item, type) and issubclass(item, BaseModel):
            models.add(item)
        pending.extend(getattr(item, "__args__", ()))
    return models.pop() if len(models) == 1 else None


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
