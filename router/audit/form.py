"""Forms: bodies that many entries have in common, checked and encoded once.

A form is a body with holes. It is checked as any body is, and its text is kept for a segment; what
an entry adds is whole numbers and texts that were encoded before, so the line of a filled form is
put together in one step. It is the line that the same body would have had without a form.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from router.audit.entry import (
    ID,
    LATEST,
    MAX_LINE,
    Entry,
    Interned,
    Joined,
    Json,
    Kind,
    canonical,
    check_body,
    check_head,
    sized,
)
from router.audit.errors import EntryRefused

_LIMIT: Final = 1 << 53
_MARK: Final = "\0"
_MARKED: Final = b'"\\u0000"'


class Quoted(bytes):
    """The canonical JSON of a value, made by `quoted` or `listed`."""


class Hole:
    """A place that a form leaves open, for values of one type."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind


NUMBER: Final = Hole(int)
"""A whole number that is not negative."""
TEXT: Final = Hole(Quoted)
"""A `Quoted` text."""
INTERNED: Final = Hole(Interned)
"""A value that is written once per segment."""
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


def quoted(value: Json) -> Quoted:
    """A value's canonical JSON. Raises EntryRefused for what has none."""
    check_body({"value": value})
    return Quoted(canonical(value))


def word(text: str) -> Quoted:
    """The canonical JSON of letters, digits, `_` and `-`. Raises EntryRefused for others."""
    if not _WORD.fullmatch(text):
        raise EntryRefused("a word has letters, digits, `_` and `-` only")
    return Quoted(b'"%b"' % text.encode())


class Filled(NamedTuple):
    """A form with what fills its holes, in the order in which they stand in the text."""

    form: "Form"
    values: tuple[int | Quoted | Interned, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One body for many entries; `shared` is merged into it, as an entry's is.

    Raises EntryRefused for what no entry could hold.
    """

    kind: Kind
    body: Mapping[str, object]
    shared: Interned | None = None

    def __post_init__(self) -> None:
        body, shared = _without_holes(self.body), self.shared
        if not isinstance(body, dict):
            raise EntryRefused("a form is an object")
        check_head(Entry(self.kind, "", 0.0, body, shared))
        check_body(body)

    def get(self, name: str) -> object:
        """A field that is no hole, as `Entry.get` gives it."""
        if name in self.body:
            value = self.body[name]
        else:
            fields = None if self.shared is None else self.shared.fields
            value = None if fields is None else fields.get(name)
        return value.value if isinstance(value, Interned) else value

    def template(self, reference: Callable[[Interned], int]) -> tuple[bytes, tuple[type, ...]]:
        """The line's text for one segment, with a place for each hole, the nonce, the id and the
        time; and the types that fill the holes."""
        kinds: list[type] = []

        def replaced(value: object) -> object:
            if isinstance(value, Interned):
                return {"@": reference(value)}
            if isinstance(value, Joined):
                return {"@": reference(value.shared), **value.rest}
            if isinstance(value, Hole):
                kinds.append(value.kind)
                return _MARK
            raise TypeError(type(value).__name__)

        body: dict[str, object] = dict(self.body)
        if self.shared is not None:
            body["@"] = reference(self.shared)
        text = canonical(body, replaced)  # type: ignore[arg-type]  # holes are replaced
        parts = text.replace(b"%", b"%%").split(_MARKED)
        if len(parts) != len(kinds) + 1:
            raise EntryRefused("a form's text holds a null character")
        filled = parts[0]
        for kind, part in zip(kinds, parts[1:], strict=True):
            filled += _PLACES[kind] + part
        whole = b'{"b":%b,"k":"%b","n":"%%b","r":"%%b","t":%%d}' % (filled, self.kind.encode())
        return whole, tuple(kinds)


class Forms:
    """The texts of forms in one segment. `reference` gives the index of an interned value's line,
    and writes that line if it is not there yet; `admit` refuses a form that may not be written."""

    __slots__ = ("_admit", "_known", "_reference")

    def __init__(
        self,
        reference: Callable[[Interned], int],
        admit: Callable[[Form], None] = lambda form: None,
    ) -> None:
        self._reference = reference
        self._admit = admit
        self._known: dict[Form, _Template] = {}

    def clear(self) -> None:
        """A new segment begins: indices in it are others."""
        self._known.clear()

    def line(self, entry: Entry, filled: Filled, nonce: bytes) -> bytes:
        """The line of an entry whose body is a filled form; `nonce` as text.

        Raises EntryRefused.
        """
        form, values = filled
        known = self._known.get(form)
        if known is None:
            known = self._opened(form)
        id_, time = entry.id, entry.time
        if not (ID.fullmatch(id_) and 0 <= time < LATEST):
            check_head(entry)
        if form.kind != entry.kind or tuple(map(type, values)) != known.kinds:
            raise EntryRefused("the form is another kind's, or is filled with something else")
        told: list[Any] = [*values, nonce, id_.encode(), round(time * 1_000_000)]
        for at in known.interned:
            told[at] = self._reference(told[at])
        numbers = known.numbers
        if numbers is not None:
            found = numbers(values)
            if min(found) < 0 or max(found) >= _LIMIT:
                raise EntryRefused(f"`{found}` are not whole numbers that the log holds")
        line = known.text % tuple(told)
        return line if len(line) <= MAX_LINE else sized(line)

    def _opened(self, form: Form) -> "_Template":
        self._admit(form)
        if len(self._known) >= _KEPT:
            self._known.clear()
        made = self._known[form] = _Template(*form.template(self._reference))
        return made


class _Template:
    """A form's text in one segment, the types that fill it, and which of them need a look: where
    what is interned stands, and what takes the numbers out."""

    __slots__ = ("interned", "kinds", "numbers", "text")

    def __init__(self, text: bytes, kinds: tuple[type, ...]) -> None:
        self.text = text
        self.kinds = kinds
        self.interned = tuple(at for at, kind in enumerate(kinds) if kind is Interned)
        counted = [at for at, kind in enumerate(kinds) if kind is int]
        # One number taken twice: of one alone it would be no tuple.
        self.numbers = itemgetter(counted[0], *counted) if counted else None


_KEPT: Final = 4096
_PLACES: Final = {int: b"%d", Quoted: b"%b", Interned: b'{"@":%d}'}


def _without_holes(value: object) -> object:
    """The same with a number in each hole, to be checked as any body is."""
    if isinstance(value, Hole):
        return 0
    if isinstance(value, Joined):
        rest: Any = _without_holes(value.rest)
        return Joined(value.shared, rest)
    if isinstance(value, dict):
        return {name: _without_holes(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_holes(one) for one in value]
    return value
