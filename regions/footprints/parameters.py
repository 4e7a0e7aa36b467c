"""Examining a request: what it asks to move, and what an endpoint may not be sent.

`examine` reads a parsed body by the table of its surface (see `regions.footprints.table`),
in a loop and without trusting any type. What it finds decides the footprint; what it doesn't
know is refused by managed endpoints and passes to self-operated ones, except that a URL in it
counts as fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from regions.footprints.base import STORING, vendor_of
from regions.footprints.table import Node, Rule, Table, folded, load_tables
from regions.model import Call, Endpoint

# What parsers of URLs drop before and inside a scheme: controls, spaces, what isn't seen.
_DROPPED = r"\s\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff"
_URL = re.compile(rf"[{_DROPPED}]*[a-zA-Z][a-zA-Z0-9+.{_DROPPED}-]*:[{_DROPPED}]*[/\\]")
URL_INPUT = "url_input"
STRUCTURED = "(structured)"
# More unknown parameters than this are named together: a client can't make a call arbitrarily big.
MAX_UNKNOWN = 32
MORE = "(more)"
_MAX_PATH = 200
_MAX_NAMES = 512
_MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an endpoint can't be sent a request: a stable code and the parameter's path."""

    code: str
    parameter: str


@cache
def tables() -> Mapping[str, Table]:
    """Every surface's table; read once, never changed."""
    return load_tables()


def examine(surface: str, body: Mapping[str, object], texts: bool = False) -> Call:
    """What of a parsed body decides where its bytes go.

    Args:
        texts: its `messages` were seen to be a role and a text each, which move nothing.

    Raises:
        KeyError: no table for this surface.
    """
    found = _at_once(surface, body, texts)
    return walked(surface, body) if found is None else found


def walked(surface: str, body: Mapping[str, object]) -> Call:
    """What `examine` gives, by looking at everything."""
    look = _Look()
    look.walk(tables()[surface].request, body)
    return Call(
        surface,
        frozenset(body),
        frozenset(look.movers),
        frozenset(look.features),
        frozenset(look.unknown),
        frozenset(look.places),
    )


def _at_once(surface: str, body: Mapping[str, object], texts: bool) -> Call | None:
    """The call of a body that moves nothing, as most are; `None` if that takes a closer look.

    What its keys alone decide is worked out once for bodies of the same keys.
    """
    if len("".join(body)) > _MAX_NAMES:
        return None  # nothing that a client can make large is kept
    known = _of_keys(surface, tuple(body))
    if known is None:
        return None
    features = []
    for name, rule in known.looked_at:
        given, node = body[name], rule.node
        if rule.plain and type(given) is str and (node is None or node.by):
            continue
        if node is None:
            if not rule.only_feature:
                return None
            if given and rule.feature is not None:
                features.append(rule.feature)
        elif (
            type(given) is not list
            or not node.says
            or rule.feature
            or not ((texts and name == _MESSAGES) or not _looked_at(node, given))
        ):
            return None
    if not features:
        return known.call
    return Call(surface, known.call.parameters, features=frozenset(features))


class _Keys(NamedTuple):
    """Bodies of the same keys: the call if nothing in them matters, and what may matter."""

    call: Call
    looked_at: tuple[tuple[str, Rule], ...]


@lru_cache(1024)
def _of_keys(surface: str, names: tuple[str, ...]) -> _Keys | None:
    """`None` for keys that matter by themselves, there or not."""
    node = tables()[surface].request
    if not node.is_quiet() or not node.keys.keys() >= set(names):
        return None
    rules = [(name, node.keys[name]) for name in names]
    found = tuple((name, rule) for name, rule in rules if rule is not None)
    return _Keys(Call(surface, frozenset(names)), found)


def refusals(endpoint: Endpoint, call: Call) -> tuple[Refusal, ...]:
    """What of a call this endpoint may not be sent, in order of the parameters' names.

    A place parameter is refused unless it equals the endpoint's own setting. Parameters the
    table doesn't know are refused by managed endpoints that don't list them, by path or by
    their first name, in `allow_parameters`.
    """
    found = [
        Refusal("parameter_changes_place", name)
        for name, value in sorted(call.places)
        if not _is_own(endpoint, name, value)
    ]
    vendor = vendor_of(endpoint)
    if vendor is None or not vendor.self_operated:
        found += [
            Refusal("parameter_not_allowed", path)
            for path in sorted(call.unknown)
            if not _is_allowed(endpoint, path)
        ]
    return tuple(found)


def place_parameters(endpoint: Endpoint) -> Mapping[str, str]:
    """Client parameter → the endpoint's setting that alone may give it."""
    vendor = vendor_of(endpoint)
    return {} if vendor is None else vendor.place_parameters


def _is_own(endpoint: Endpoint, name: str, value: str) -> bool:
    setting = place_parameters(endpoint).get(name)
    return setting is not None and endpoint.settings.get(setting) == value


def _is_allowed(endpoint: Endpoint, path: str) -> bool:
    first = re.split(r"[.\[]", path, maxsplit=1)[0]
    return path in endpoint.allow_parameters or first in endpoint.allow_parameters


class _Look:
    """One walk over one body; a stack instead of recursion, since bodies may be deep."""

    __slots__ = ("_stack", "features", "movers", "places", "unknown")

    def __init__(self) -> None:
        self.movers: set[str] = set()
        self.features: set[str] = set()
        self.unknown: set[str] = set()
        self.places: set[tuple[str, str]] = set()
        self._stack: list[tuple[Node, object, str]] = []

    def walk(self, node: Node, body: object) -> None:
        stack = self._stack
        stack.append((node, body, ""))
        while stack:
            node, value, path = stack.pop()
            if isinstance(value, dict):
                if node.by is not None or node.opaque or node.feature is not None:
                    self._kind(node, value, path)
                else:
                    self._fields(node, value, path)
            elif isinstance(value, list):
                stack += [(node, item, path) for item in _looked_at(node, value)]
            elif isinstance(value, str) and node.text is not None:
                self._link(node.text, value)
            elif isinstance(value, str) and value and node.by and node.otherwise is not None:
                self._kind(node, {node.by: value}, path)  # a lenient server reads it as the kind

    def _kind(self, node: Node, value: dict[str, object], path: str) -> None:
        chosen = node if node.by is None else self._choose(node, value, path)
        if chosen is None:
            return
        if chosen.mover is not None:
            self.movers.add(chosen.mover)
        if chosen.feature is not None:
            self.features.add(chosen.feature)
        if not chosen.opaque:
            self._fields(chosen, value, path)

    def _fields(self, node: Node, value: dict[str, object], path: str) -> None:
        keys = node.keys
        for name, given in value.items():
            rule = keys.get(name, _UNLISTED)
            if rule is None:
                continue
            if rule is _UNLISTED:
                self._unlisted(node, name, given, path)
                continue
            if rule.plain and type(given) is str and (rule.node is None or rule.node.by):
                continue
            self._apply(rule, name, given, path)
        for name, mover in node.absent:
            if value.get(name) is None:
                self.movers.add(mover)

    def _unlisted(self, node: Node, name: str, given: object, path: str) -> None:
        """Unknown; and what a key does that it is another spelling of."""
        near = node.near.get(folded(name)) if len(name) <= _MAX_PATH else None
        if near is not None:
            self._apply(near, name, given, path)
        self._not_known(_below(path, name), given)

    def _apply(self, rule: Rule, name: str, given: object, path: str) -> None:
        if rule.feature is not None and given:
            self.features.add(rule.feature)
        if rule.node is not None:
            if rule.node.by is None and rule.node.text is None:
                self._misplaced(given)
            self._stack.append((rule.node, given, _below(path, name)))
        elif rule.link:
            self._link(rule.mover or URL_INPUT, given)
        elif rule.mover is not None:
            self._moved(rule.mover, rule, given)
        elif rule.carried:
            if _holds_url(given):
                self.movers.add(URL_INPUT)
        elif rule.place:
            self.places.add((name, _text(given)))
        elif rule.unknown:
            self._not_known(_below(path, name), given)

    def _moved(self, mover: str, rule: Rule, given: object) -> None:
        if not (given or isinstance(given, dict)) or given == rule.unless:
            return  # an empty object turns on what it has no options for: `web_search_options: {}`
        self.movers.add(mover)
        # What is only stored stays in place; but an id that is a link is fetched as one.
        if mover in STORING and _holds_url(given):
            self.movers.add(URL_INPUT)

    def _misplaced(self, given: object) -> None:
        """A text where an object belongs: a lenient server may read it as a link."""
        items = given if isinstance(given, list) else (given,)
        for item in items:
            if isinstance(item, str) and _holds_url(item):
                self.movers.add(URL_INPUT)

    def _choose(self, node: Node, value: dict[str, object], path: str) -> Node | None:
        """The kind of an object, or `None` when it isn't known; then the whole is unknown."""
        kind = value.get(node.by or "")
        if kind is None and node.default is not None:
            return node.default
        chosen = node.kinds.get(kind) if isinstance(kind, str) else None
        if chosen is None or chosen.unknown:
            shown = kind if isinstance(kind, str) and len(kind) <= 60 else "?"
            if node.otherwise is not None:
                self.movers.add(node.otherwise)
            self._not_known(f"{path}[{node.by}={shown}]", value)
            return None
        return chosen

    def _link(self, mover: str, value: object) -> None:
        if isinstance(value, str) and value[:5].lower() == "data:":
            return
        if value:
            self.movers.add(mover)

    def _not_known(self, path: str, value: object) -> None:
        self.unknown.add(path if len(self.unknown) < MAX_UNKNOWN else MORE)
        if _holds_url(value):
            self.movers.add(URL_INPUT)


_UNLISTED = Rule(unknown=True)


def _looked_at(node: Node, items: list[object]) -> list[object]:
    """The items but for messages that are a role and a text, which move nothing."""
    if not node.says:
        return items
    return [
        item
        for item in items
        if not (
            type(item) is dict
            and len(item) == 2
            and type(item.get("content")) is str
            and type(item.get("role")) is str
        )
    ]


def _below(path: str, name: str) -> str:
    """The path of a key; a path that is long already stays as it is, however deep it goes."""
    if len(path) > _MAX_PATH:
        return path
    shown = name if len(name) <= _MAX_PATH else name[:_MAX_PATH] + "…"
    return f"{path}.{shown}" if path else shown


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int | float) else STRUCTURED


def _holds_url(value: object) -> bool:
    """Whether a URL stands anywhere in a value nobody knows the meaning of."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if _URL.match(item):
                return True
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False
