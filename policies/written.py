"""Boundaries and conditions as people write them, read with their place in the file.

A boundary is a text (`EU + GB`), a list (its union), or a mapping: `plus`, `and`, `minus`,
or one member (`country: GB`, `region: …`, `within: EU + CH`) with its `until`. A condition is
a mapping of attributes to values, with `all`, `any` and `not`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from policies.attributes import CANDIDATE, Declaration, nearest
from policies.conditions import AllOf, AnyOf, CandidateIs, Condition, Is, Not, negated_leaves
from policies.files import moment
from policies.timed import Algebra, Timed, always, ending
from regions.atlas import Atlas
from regions.boundaries import (
    Combined,
    Expression,
    evaluate,
    operator_term,
    parse,
    term,
    words,
)
from regions.countries import Countries
from regions.document import Document, DocumentError, Path
from regions.places import Boundary, PlaceError

S = TypeVar("S", bound=Algebra)

MEMBERS: Final = (
    "country",
    "jurisdiction",
    "region",
    "subdivision",
    "partition",
    "provider",
    "boundary",
    "within",
)
_SETS: Final = ("plus", "and", "minus")


@dataclass(slots=True)
class Errors:
    """What is wrong so far; everything is reported at once."""

    found: list[DocumentError] = field(default_factory=list)

    def add(self, document: Document, path: Path, message: str) -> None:
        """One more, at the value of `path`."""
        self.found.append(document.error(path, message))


class Refused(Exception):
    """The value at `path` has no meaning; the message says what to do."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class Sets(Generic[S]):
    """Reads sets of one axis: places, or the countries of operators.

    Args:
        meaning: the set of a word, which may be one the operator named.
        empty: what a lapsed member leaves.
    """

    def __init__(self, meaning: Callable[[str], Timed[S]], empty: S) -> None:
        self._meaning = meaning
        self._empty = empty

    def read(self, written: object, path: Path) -> Timed[S]:
        """The set that is written at `path`.

        Raises:
            Refused: it has no meaning.
        """
        if isinstance(written, str):
            return self._text(written, path)
        if isinstance(written, list) and written:
            return self._union(written, path)
        if isinstance(written, dict) and written:
            return self._mapping(written, path)
        raise Refused(path, "an empty boundary; write a word as `EU`, a list, or `plus:`")

    def _text(self, text: str, path: Path) -> Timed[S]:
        try:
            expression = parse(text)
            for name in _subtracted(expression):
                self._refuse_ends(self._meaning(name), f"`{name}`", path)
            return evaluate(expression, self._meaning)
        except PlaceError as problem:
            raise Refused(path, str(problem)) from None

    def _union(self, items: list[object], path: Path) -> Timed[S]:
        result = self.read(items[0], (*path, 0))
        for n, item in enumerate(items[1:], 1):
            result = result | self.read(item, (*path, n))
        return result

    def _mapping(self, written: Mapping[str, object], path: Path) -> Timed[S]:
        member = next((key for key in written if key in MEMBERS), None)
        known = (member, "until") if member else (*_SETS, "until")
        for key in written:
            if key not in known:
                choices = ", ".join(("until",) if member else (*_SETS, *MEMBERS))
                raise Refused((*path, key), f"`{key}` is not expected here; known: {choices}")
        result = self._member(member, written, path) if member else self._sets(written, path)
        if "until" not in written:
            return result
        return _until(result, written["until"], (*path, "until"), self._empty)

    def _member(self, key: str, written: Mapping[str, object], path: Path) -> Timed[S]:
        value = written[key]
        at = (*path, key)
        if key == "within":
            return self.read(value, at)
        if not isinstance(value, str):
            raise Refused(at, f"`{key}` needs one word")
        prefixed = key in ("partition", "provider") and ":" not in value
        word = f"{key}:{value}" if prefixed else value
        try:
            return self._meaning(word)
        except PlaceError as problem:
            raise Refused(at, str(problem)) from None

    def _sets(self, written: Mapping[str, object], path: Path) -> Timed[S]:
        parts = {key: self.read(written[key], (*path, key)) for key in _SETS if key in written}
        result = parts.get("plus", parts.get("and"))
        if result is None:
            raise Refused(path, "`minus` needs `plus`: say what it is taken from")
        if "and" in parts:
            result = result & self._intersection(written["and"], (*path, "and"))
        if "minus" in parts:
            self._refuse_ends(parts["minus"], "a member", (*path, "minus"))
            result = result - parts["minus"]
        return result

    def _intersection(self, written: object, path: Path) -> Timed[S]:
        """`and: [A, B]` is both, unlike any other list."""
        if not isinstance(written, list) or not written:
            return self.read(written, path)
        result = self.read(written[0], (*path, 0))
        for n, item in enumerate(written[1:], 1):
            result = result & self.read(item, (*path, n))
        return result

    def _refuse_ends(self, taken: Timed[S], what: str, path: Path) -> None:
        if taken.ends:
            raise Refused(
                path,
                f"{what} that is taken away has an `until`: when it lapses the rest would grow; "
                "remove the `until` or write what remains with `plus`",
            )


def _until(value: Timed[S], written: object, path: Path, empty: S) -> Timed[S]:
    try:
        return value & ending(value.values[0], moment(written), empty)
    except ValueError as problem:
        raise Refused(path, str(problem)) from None


def _subtracted(expression: Expression) -> Iterator[str]:
    """Every word under the right side of a difference."""
    pending = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, Combined):
            pending.append(part.left)
            if part.sign == "-":
                yield from (word.text for word in words(part.right))
            else:
                pending.append(part.right)


def place_sets(atlas: Atlas, named: Mapping[str, Timed[Boundary]]) -> Sets[Boundary]:
    """Reads boundaries of places; `named` are the operator's own words."""

    def meaning(word: str) -> Timed[Boundary]:
        return named[word] if word in named else always(term(word, atlas, tuple(named)))

    return Sets(meaning, atlas.nowhere())


def country_sets(atlas: Atlas, named: Mapping[str, Timed[Countries]]) -> Sets[Countries]:
    """Reads sets of operators' countries; `named` those boundaries that speak of countries."""

    def meaning(word: str) -> Timed[Countries]:
        return named[word] if word in named else always(operator_term(word, atlas))

    return Sets(meaning, Countries(0))


# -- conditions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a condition may speak of: declared attributes, and words with closed values."""

    declared: Mapping[str, Declaration]
    known: Mapping[str, frozenset[str]]

    def read(self, written: object, path: Path) -> Condition:
        """The condition written at `path`; a mapping means all of its entries.

        Raises:
            Refused: it has no meaning.
        """
        if not isinstance(written, dict) or not written:
            raise Refused(path, "a condition is a mapping, as `{data_class: health}`")
        parts = tuple(self._entry(key, value, (*path, key)) for key, value in written.items())
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def rule_condition(self, when: object, unless: object, path: Path) -> Condition:
        """`when` and not `unless`, with nothing claimable under a `not`.

        Raises:
            Refused: it has no meaning, or negates what anybody may claim.
        """
        parts: list[Condition] = []
        if when is not None:
            parts.append(self._checked(self.read(when, (*path, "when")), (*path, "when")))
        if unless is not None:
            at = (*path, "unless")
            parts.append(self._checked(Not(self.read(unless, at)), at))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _checked(self, condition: Condition, path: Path) -> Condition:
        for leaf in negated_leaves(condition):
            declared = self.declared.get(leaf.attribute) if isinstance(leaf, Is) else None
            if declared is not None and declared.claimable:
                raise Refused(
                    path,
                    f"`not` and `unless` can't be over `{declared.name}`: a client could lift the "
                    f"rule by claiming a value; limit its `from` to authoritative sources",
                )
        return condition

    def _entry(self, key: str, value: object, path: Path) -> Condition:
        if key in ("all", "any"):
            return self._several(key, value, path)
        if key == "not":
            return Not(self.read(value, path))
        known = self.known.get(key)
        if known is None and key not in self.declared:
            names = {*self.declared, *self.known, "all", "any", "not"}
            raise Refused(path, f"attribute `{key}` is not declared{nearest(key, names)}")
        declared = self.declared[key].values if known is None else known
        values = frozenset(self._values(key, value, path, declared))
        return CandidateIs(key, values) if key in CANDIDATE else Is(key, values)

    def _several(self, key: str, value: object, path: Path) -> Condition:
        if not isinstance(value, list) or not value:
            raise Refused(path, f"`{key}` needs a list of conditions")
        parts = tuple(self.read(item, (*path, n)) for n, item in enumerate(value))
        return AllOf(parts) if key == "all" else AnyOf(parts)

    def _values(
        self, key: str, written: object, path: Path, declared: frozenset[str]
    ) -> Iterator[str]:
        items = written if isinstance(written, list) else [written]
        if not items:
            raise Refused(path, f"`{key}` needs a value or a list of values")
        for n, item in enumerate(items):
            at = (*path, n) if isinstance(written, list) else path
            if not isinstance(item, str):
                raise Refused(at, f"`{key}` needs a value or a list of values")
            if item not in declared:
                raise Refused(at, f"`{key}` has no value `{item}`{nearest(item, declared)}")
            yield item
