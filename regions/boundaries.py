"""The words and the little expression language of boundaries.

`EU + GB - self:lab1`, `partition:aws-us-gov`, `(EEA + CH) & provider:azure`: the command
line takes expressions, policies build theirs from the same words. `&` binds closer than
`+` and `-`, which are read from left to right. A minus needs spaces around it, since
`CA-QC` and `aws:eu-west-1` are words. An unknown word is an error, never an empty set.

The `operate` axis speaks of countries only: `operators("EU + CH", atlas)`, `any - US`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from regions.atlas import Atlas
from regions.countries import ISO_3166_1, Countries
from regions.places import Boundary, PlaceError

MAX_LENGTH = 20_000
MAX_NESTING = 40
_TOKEN = re.compile(r"\s*(?:(?P<word>[\w.:/][\w.:/-]*)|(?P<sign>[-+&()]))")
_SUBDIVISION = re.compile(r"^[A-Z]{2}-[A-Z0-9]{1,3}$")
# What people write when they mean a word; keys are lower case, without signs.
_MEANT = {
    "europeanunion": "EU",
    "eu27": "EU",
    "europe": "EU",
    "europeaneconomicarea": "EEA",
    "unitedkingdom": "UK",
    "greatbritain": "UK",
    "england": "UK",
    "switzerland": "CH",
    "unitedstates": "US",
    "america": "US",
    "usa": "US",
    "germany": "DE",
    "france": "FR",
    "canada": "CA",
    "greece": "GR",
    "el": "GR",  # the European Union's own code
    "global": "worldwide",
    "world": "worldwide",
    "anywhere": "worldwide",
    "any": "worldwide",
    "all": "worldwide",
}


class BoundaryError(PlaceError):
    """A boundary expression that can't be read; `column` counts from 1, 0 if not known."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an expression, and the column it starts in."""

    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Combined:
    """Two expressions with `+`, `-` or `&` between them."""

    sign: str
    left: Expression
    right: Expression


Expression = Word | Combined


class _Algebra(Protocol):
    def __or__(self, other: Self, /) -> Self: ...
    def __and__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


_Set = TypeVar("_Set", bound=_Algebra)


def boundary(text: str, atlas: Atlas, names: Mapping[str, Boundary] | None = None) -> Boundary:
    """The boundary an expression means.

    Args:
        names: boundaries the operator named, usable as words beside the built-in ones.

    Raises:
        BoundaryError: not an expression, or a word that isn't known.
    """
    named = names or {}

    def meaning(word: str) -> Boundary:
        return named[word] if word in named else term(word, atlas, tuple(named))

    return evaluate(parse(text), meaning)


def operators(text: str, atlas: Atlas) -> Countries:
    """The countries an expression of the `operate` axis means; `any` is unbounded.

    Raises:
        BoundaryError: not an expression, or a word that isn't a country or jurisdiction.
    """
    return evaluate(parse(text), lambda word: operator_term(word, atlas))


def term(word: str, atlas: Atlas, names: tuple[str, ...] = ()) -> Boundary:
    """The boundary a single built-in word means; `names` only improve the suggestion.

    Raises:
        BoundaryError: the word isn't known; the message suggests known ones.
    """
    found = _place_term(word, atlas)
    if found is None:
        raise BoundaryError(_unknown(word, known_words(atlas) | set(names)))
    return found


def operator_term(word: str, atlas: Atlas) -> Countries:
    """The countries a single word means: a code, a jurisdiction, or `any`.

    Raises:
        BoundaryError: another word.
    """
    if word in ("any", "worldwide"):
        return Countries.any()
    codes = atlas.jurisdictions.get(word, {word} if word in ISO_3166_1 else None)
    if codes is not None:
        return Countries.of(codes, atlas.territories_of(codes))
    if ":" in word or _SUBDIVISION.match(word):
        raise BoundaryError(f"`{word}` is a place; operators are bounded by countries, as `EU`")
    raise BoundaryError(_unknown(word, {*ISO_3166_1, *atlas.jurisdictions, "any"}))


def is_reserved(name: str, atlas: Atlas) -> bool:
    """Whether a name is, in whatever case, a built-in word, so that nothing else may take it."""
    upper = name.upper()
    return (
        ":" in name
        or name.lower() in ("any", "worldwide", "nothing")
        or upper in atlas.jurisdictions
        or upper in ISO_3166_1
        or upper in atlas.subdivisions
    )


def known_words(atlas: Atlas) -> set[str]:
    """Every built-in word."""
    return {
        "worldwide",
        *atlas.jurisdictions,
        *ISO_3166_1,
        *atlas.subdivisions,
        *(r.id for r in atlas.regions),
        *(f"partition:{p.name}" for p in atlas.partitions),
        *(f"provider:{p.provider}" for p in atlas.partitions),
    }


def _place_term(word: str, atlas: Atlas) -> Boundary | None:
    kind, _, rest = word.partition(":")
    try:
        if kind == "partition":
            return atlas.partition(rest)
        if kind == "provider":
            return atlas.provider(rest)
        if rest:
            return atlas.one_region(word)
    except PlaceError:
        return None
    if word == "worldwide":
        return atlas.worldwide()
    if word in atlas.jurisdictions:
        return atlas.jurisdiction(word)
    if word in atlas.subdivisions:
        return atlas.subdivision(word)
    return atlas.country(word) if word in ISO_3166_1 else None


# -- reading -----------------------------------------------------------------------------


def parse(text: str) -> Expression:
    """The expression in `text`.

    Raises:
        BoundaryError: not an expression.
    """
    if len(text) > MAX_LENGTH:
        raise BoundaryError(f"the boundary has {len(text)} characters; name parts of it instead")
    return _Parser(text).whole()


def evaluate(expression: Expression, meaning: Callable[[str], _Set]) -> _Set:
    """The set an expression means, given what its words mean."""
    if isinstance(expression, Word):
        try:
            return meaning(expression.text)
        except BoundaryError as problem:
            raise BoundaryError(str(problem), expression.column) from None
    # A long chain is deep on the left: walked in a loop, not by recursion.
    chain: list[Combined] = []
    first: Expression = expression
    while isinstance(first, Combined):
        chain.append(first)
        first = first.left
    result = evaluate(first, meaning)
    for link in reversed(chain):
        result = _combine(link.sign, result, evaluate(link.right, meaning))
    return result


def words(expression: Expression) -> Iterator[Word]:
    """Every word of an expression."""
    pending: list[Expression] = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, Word):
            yield part
        else:
            pending += [part.right, part.left]


def _combine(sign: str, left: _Set, right: _Set) -> _Set:
    if sign == "+":
        return left | right
    return left & right if sign == "&" else left - right


class _Parser:
    """Recursive descent over `sum = product {(+|-) product}`, `product = atom {& atom}`."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Expression:
        if not self._tokens:
            raise BoundaryError("an empty boundary; write a word as `EU`", 1)
        result = self._sum()
        left_over = self._peek()
        if left_over is not None:
            raise BoundaryError(f"`{left_over.text}` is not expected here", left_over.column)
        return result

    def _sum(self) -> Expression:
        result = self._product()
        while (token := self._peek()) is not None and token.text in ("+", "-"):
            self._next += 1
            result = Combined(token.text, result, self._product())
        return result

    def _product(self) -> Expression:
        result = self._atom()
        while (token := self._peek()) is not None and token.text == "&":
            self._next += 1
            result = Combined("&", result, self._atom())
        return result

    def _atom(self) -> Expression:
        token = self._peek()
        if token is None:
            last = self._tokens[-1]
            raise BoundaryError(f"a word is missing after `{last.text}`", last.column)
        self._next += 1
        if token.text == "(":
            return self._nested(token)
        if token.text in ("+", "-", "&", ")"):
            raise BoundaryError(f"a word is missing before `{token.text}`", token.column)
        return token

    def _nested(self, opening: Word) -> Expression:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise BoundaryError("too many parentheses; name parts instead", opening.column)
        inner = self._sum()
        closing = self._peek()
        if closing is None or closing.text != ")":
            raise BoundaryError("`(` is never closed; add `)`", opening.column)
        self._next += 1
        self._depth -= 1
        return inner

    def _peek(self) -> Word | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None


def _tokens(text: str) -> list[Word]:
    found: list[Word] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            bad = text[position:].lstrip()[:1]
            column = text.index(bad, position) + 1
            raise BoundaryError(f"`{bad}` has no meaning in a boundary", column)
        kind = match.lastgroup or "word"
        found.append(Word(match.group(kind), match.start(kind) + 1))
        position = match.end()
    return found


# -- suggestions -------------------------------------------------------------------------


def _unknown(word: str, known: set[str]) -> str:
    shown = word if len(word) <= 60 else word[:59] + "…"
    hints = _suggestions(word, known)
    if hints:
        return f"`{shown}` is not known; did you mean {' or '.join(f'`{h}`' for h in hints)}?"
    return f"`{shown}` is not known; see `domicile regions list` for the words there are"


def _suggestions(word: str, known: set[str]) -> list[str]:
    if len(word) > 60:
        return []
    parts = word.split("-")
    if len(parts) == 2 and all(p in known for p in parts):
        return [f"{parts[0]} - {parts[1]}", f"{parts[0]} + {parts[1]}"]
    bare = re.sub(r"[-_ ]?only$", "", word.lower())
    meant = _MEANT.get(re.sub(r"[^a-z0-9]", "", bare))
    by_case = {k.lower(): k for k in sorted(known)}
    same = [by_case[bare]] if bare in by_case else []
    by_code = [k for k in sorted(known) if k.partition(":")[2] == bare and not k.startswith("p")]
    close = [by_case[c] for c in difflib.get_close_matches(bare, by_case, n=2, cutoff=0.8)]
    hints = [*same, *([meant] if meant in known else []), *by_code, *close]
    return list(dict.fromkeys(hints))[:3]
