"""Attributes: what is known about a request, by whom it was said, and whether that is all.

An attribute is a set of values plus `closed`. Authoritative sources (key, token, tenant,
app, operator) unite, replace the default and close the attribute; a default closes it too.
Claims (header, body, classifier) add values and never close. A classifier that did not
finish opens every attribute it may supply.

| `a: v`    | closed | open    |
|-----------|--------|---------|
| v in set  | TRUE   | TRUE    |
| v not in  | FALSE  | UNKNOWN |
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from regions.countries import ISO_3166_1

AUTHORITATIVE: Final = frozenset({"key", "token", "tenant", "app", "operator"})
CLAIMED: Final = frozenset({"header", "body"})
CLASSIFIER: Final = "classifier:"
EVERYONE: Final = AUTHORITATIVE | CLAIMED
HEADER: Final = "x-domicile-attr-"

BUILT_IN: Final = frozenset({"tenant", "app", "purpose"})
CANDIDATE: Final = frozenset({"served_model", "provider", "tier"})
WORDS: Final = frozenset({"all", "any", "not", "otherwise"})
FORMATS: Final[Mapping[str, frozenset[str]]] = {"country": frozenset(ISO_3166_1)}


class AttributeRefused(ValueError):
    """A value that can't be accepted; the request is answered 400 with `code`."""

    code = "attribute_refused"


class AttributeUnknown(AttributeRefused):
    """An undeclared attribute, or a value its declaration doesn't list."""

    code = "attribute_unknown"


class AttributeNotYours(AttributeRefused):
    """A value from a source that the attribute's `from` doesn't name."""

    code = "attribute_not_yours"


class Truth(IntEnum):
    """Kleene's three values: `and` is `min`, `or` is `max`, `not t` is `2 - t`."""

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2


UNKNOWN: Final = Truth.UNKNOWN


class State(NamedTuple):
    """The values an attribute has, and whether these are all (`closed`)."""

    values: frozenset[str] = frozenset()
    closed: bool = False

    def has_any(self, wanted: frozenset[str]) -> Truth:
        """Whether one of `wanted` is among the values: the table on top of this file."""
        if not self.values.isdisjoint(wanted):
            return Truth.TRUE
        return Truth.FALSE if self.closed else Truth.UNKNOWN


OPEN: Final = State()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the baseline says of one attribute.

    `values` is its closed vocabulary (for `format: country` all of ISO 3166-1), `default`
    the operator's statement of what silence means, `sources` who may supply it.
    """

    name: str
    values: frozenset[str]
    default: frozenset[str] = frozenset()
    sources: frozenset[str] = EVERYONE
    format: str | None = None

    @property
    def claimable(self) -> bool:
        """Whether a header, a body or a classifier may add values."""
        return any(not is_authoritative(source) for source in self.sources)

    @property
    def how_to_send(self) -> str:
        """One sentence for a refusal that silence caused."""
        header = HEADER + self.name
        choices = self.format or ", ".join(sorted(self.values))
        if "header" in self.sources:
            return f"send `{header}: <value>` ({choices})"
        if "app" in self.sources:
            return f"let an app trusted for `{self.name}` send `{header}: <value>` ({choices})"
        return f"have `{self.name}` set by {' or '.join(sorted(self.sources))} ({choices})"


@dataclass(frozen=True, slots=True)
class Supplied:
    """Values of one attribute as one source gave them: `key`, `header`, `classifier:pii`, …"""

    name: str
    values: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Attributes:
    """The state of every declared attribute, with the origin of each value."""

    states: Mapping[str, State] = field(default_factory=dict)
    origins: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> State:
        return self.states.get(name, OPEN)

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)


def is_authoritative(source: str) -> bool:
    """Whether this source's word closes an attribute."""
    return source in AUTHORITATIVE


def gather(
    declared: Mapping[str, Declaration],
    supplied: Iterable[Supplied],
    trusted: frozenset[str] = frozenset(),
    opened: Iterable[str] = (),
) -> Attributes:
    """The state of every declared attribute, once everybody has spoken.

    Args:
        declared: the policy's declarations by name.
        supplied: what every source said, in any order.
        trusted: names the calling app is trusted for: its header and body count as `app`.
        opened: attributes a classifier may supply and did not finish looking for.

    Raises:
        AttributeRefused: an undeclared name or value, or a source that may not supply it.
    """
    said = admitted(declared, supplied, trusted)
    wide = frozenset(opened)
    states = {n: _state(d, said.get(n, ()), n in wide) for n, d in declared.items()}
    origins = {n: frozenset((v, s.source) for s in by for v in s.values) for n, by in said.items()}
    return Attributes(states, origins)


def admitted(
    declared: Mapping[str, Declaration], supplied: Iterable[Supplied], trusted: frozenset[str]
) -> dict[str, tuple[Supplied, ...]]:
    """Everything that was said, by attribute, checked against the declarations.

    Raises:
        AttributeRefused: an undeclared name or value, or a source that may not supply it.
    """
    said: dict[str, tuple[Supplied, ...]] = {}
    for one in supplied:
        checked = _checked(declared, one, trusted)
        said[one.name] = (*said.get(one.name, ()), checked)
    return said


def _state(declaration: Declaration, said: tuple[Supplied, ...], opened: bool) -> State:
    known = frozenset(v for s in said if is_authoritative(s.source) for v in s.values)
    claimed = frozenset(v for s in said if not is_authoritative(s.source) for v in s.values)
    settled = known or declaration.default
    return State(settled | claimed, closed=bool(settled) and not opened)


def _checked(
    declared: Mapping[str, Declaration], one: Supplied, trusted: frozenset[str]
) -> Supplied:
    declaration = declared.get(one.name)
    if declaration is None:
        raise AttributeUnknown(
            f"attribute `{one.name}` is not declared{nearest(one.name, declared)}"
        )
    source = "app" if one.source in CLAIMED and one.name in trusted else one.source
    if source not in declaration.sources:
        allowed = ", ".join(sorted(declaration.sources))
        raise AttributeNotYours(
            f"attribute `{one.name}` can't come from `{source}`; it is accepted from {allowed}"
        )
    if not one.values:
        raise AttributeUnknown(f"attribute `{one.name}` was sent without a readable value")
    for value in one.values:
        if value not in declaration.values:
            raise AttributeUnknown(
                # The value is the sender's own text: it is never repeated.
                f"attribute `{one.name}` has no such value{nearest(value, declaration.values)}"
            )
    return Supplied(one.name, one.values, source)


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` when a known word is near, else the choices when they are few."""
    choices = sorted(known)
    close = difflib.get_close_matches(word[:64], choices, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; use one of {', '.join(choices)}" if 0 < len(choices) <= 12 else ""
