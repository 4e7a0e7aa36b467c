"""Entries, and the lines they become.

A line is canonical JSON (RFC 8785: sorted keys, no spaces; only null, booleans, integers below
2^53, strings, arrays and objects with ASCII keys), so that its bytes are a function of its value.
Three forms share a segment, and each of them is one leaf of the tree:

    {"b":body,"k":kind,"n":nonce,"r":request id,"t":µs}         an entry
    {"i":index,"k":"intern","n":nonce,"v":value}                a value that repeats
    {"f":1,"i":index,"k":"segment","l":log,"n":nonce,"o":[[id,index],…],"p":[peak,…],"t":µs}

In a body, `{"@":i}` stands for the value of the intern line with index i, earlier in the same
segment; an object with `@` and other keys is that value with those keys added. The nonce (16 random
bytes) keeps a leaf hash from confirming a guess of its line.

Privacy is the caller's duty: declared values in clear, anything else as `keyed_digest` or not
at all.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from binascii import b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import orjson

from router.audit.errors import EntryRefused
from router.frozen import frozen, maker

if TYPE_CHECKING:
    from router.audit.form import Filled

FORMAT: Final = 1
Kind: TypeAlias = Literal[
    "decision",
    "attempt",
    "outcome",
    "refusal",
    "misdirected",
    "snapshot",
    "drift",
    "veto",
    "key",
    "administration",
    "recovery",
    "heartbeat",
]
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))
NONCE_BYTES: Final = 16
MAX_LINE: Final = 1 << 20
MAX_DEPTH: Final = 16

Json: TypeAlias = (
    "bool | int | str | Interned | Joined | Sequence[Json] | Mapping[str, Json] | None"
)

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
ID: Final = re.compile(r"[A-Za-z0-9._:-]{0,128}")
"""What an entry's id is made of."""
LATEST: Final = 1 << 32
"""Seconds since 1970 that no entry's time reaches."""
_SCALARS: Final = frozenset({str, int, bool, type(None)})


@dataclass(frozen=True, slots=True)
class Interned:
    """A value written once per segment. Make it once and keep it: its digest is then free."""

    value: Json
    fields: Mapping[str, Json] | None = field(init=False, repr=False, compare=False)
    text: bytes = field(init=False, repr=False, compare=False)
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _closed(self.value, 0, False)
        # A copy: what orjson gives keeps the room it was written in, 4 KB at least.
        text = memoryview(canonical(self.value)).tobytes()
        fields = self.value if isinstance(self.value, Mapping) else None
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "digest", sha256(text).digest())


@dataclass(frozen=True, slots=True)
class Joined:
    """An interned object with more names, none of them its own."""

    shared: Interned
    rest: Mapping[str, Json]


@frozen
class Entry:
    """One thing to record. `time` is seconds since 1970; `shared` is merged into the body, which
    may be a filled form (see `form`), and then has what is shared in it."""

    kind: Kind
    id: str
    time: float
    body: "Mapping[str, Json] | Filled"
    shared: Interned | None = None

    def get(self, name: str) -> object:
        """A field of the body, whether shared or not; None when absent."""
        if isinstance(self.body, tuple):
            return self.body.form.get(name)
        if name in self.body:
            value = self.body[name]
        else:
            shared = self.shared.fields if self.shared is not None else None
            value = shared.get(name) if shared is not None else None
        return value.value if isinstance(value, Interned) else value


make_entry = maker(Entry)


def canonical(value: Json, default: Callable[[object], object] | None = None) -> bytes:
    """Canonical JSON bytes. Raises EntryRefused for what has none."""
    try:
        return orjson.dumps(value, default, _OPTIONS)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise EntryRefused(f"the value has no canonical form: {error}") from error


def keyed_digest(key: bytes, text: str | bytes) -> str:
    """HMAC-SHA256 of client text, for the log: 43 characters of unpadded URL-safe base64."""
    raw = text.encode() if isinstance(text, str) else text
    return urlsafe_b64encode(hmac.digest(key, raw, "sha256")).rstrip(b"=").decode()


def microseconds(time: float) -> int:
    """Seconds as the integer the log holds."""
    return round(time * 1_000_000)


def stand_in(reference: Callable[[Interned], int]) -> Callable[[object], object]:
    """What `canonical` writes for an interned value; `reference` gives the index of its line."""

    def replaced(value: object) -> object:
        if isinstance(value, Interned):
            return {"@": reference(value)}
        if isinstance(value, Joined):
            return {"@": reference(value.shared), **value.rest}
        raise TypeError(type(value).__name__)

    return replaced


def entry_line(
    entry: Entry,
    nonce: bytes,
    reference: Callable[[Interned], int],
    interned: Callable[[object], object],
) -> bytes:
    """The line of an entry. `nonce` as text, see `nonce_text`; `interned` as `stand_in` makes it
    of `reference`."""
    check_head(entry)
    body = entry.body
    if isinstance(body, tuple):
        raise EntryRefused("a filled form has a line of its own")
    check_body(body)
    if entry.shared is not None:
        body = {**body, "@": reference(entry.shared)}

    # Kind, nonce and id need no escaping, and the names are in order: this is canonical.
    return sized(
        b'{"b":%b,"k":"%b","n":"%b","r":"%b","t":%d}'
        % (
            canonical(body, interned),
            entry.kind.encode(),
            nonce,
            entry.id.encode(),
            microseconds(entry.time),
        )
    )


def intern_line(index: int, value: Interned, nonce: bytes) -> bytes:
    """The line that holds an interned value; `nonce` as text."""
    return sized(b'{"i":%d,"k":"intern","n":"%b","v":%b}' % (index, nonce, value.text))


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """What a segment needs from the ones before it, so that it can be read alone."""

    log: str
    index: int
    time: float
    open: Sequence[tuple[str, int]]
    nonce: bytes

    def line(self, peaks: Iterable[bytes]) -> bytes:
        """The first line of the segment, given the peaks of the tree before it."""
        still_open: list[Json] = [[id_, index] for id_, index in self.open]
        return canonical(
            {
                "f": FORMAT,
                "i": self.index,
                "k": "segment",
                "l": self.log,
                "n": self.nonce.decode(),
                "o": still_open,
                "p": [peak.hex() for peak in peaks],
                "t": microseconds(self.time),
            }
        )


def nonce_text(nonce: bytes) -> bytes:
    """A 16-byte nonce as the 22 characters that lines hold."""
    if len(nonce) != NONCE_BYTES:
        raise EntryRefused(f"a nonce has {NONCE_BYTES} bytes")
    return b2a_base64(nonce, newline=False)[:22]


def sized(line: bytes) -> bytes:
    """The line, unless it is too long."""
    if len(line) > MAX_LINE:
        raise EntryRefused(f"the entry has {len(line)} bytes; the limit is {MAX_LINE}")
    return line


def check_head(entry: Entry) -> None:
    """Refuse a kind, an id, a time or a shared value that no line may have."""
    if entry.kind not in KINDS:
        raise EntryRefused(f"`{entry.kind}` is not a kind of entry")
    if not ID.fullmatch(entry.id):
        raise EntryRefused("a request id has at most 128 letters, digits and `._:-`")
    if not 0 <= entry.time < LATEST:
        raise EntryRefused(f"`{entry.time}` is not a time in seconds since 1970")
    shared = entry.shared
    if (
        shared is not None
        and not isinstance(entry.body, tuple)
        and (shared.fields is None or not shared.fields.keys().isdisjoint(entry.body))
    ):
        raise EntryRefused("`shared` is an object with none of the names of the body")


def check_body(body: Mapping[str, object]) -> None:
    """Refuse a body that is not closed JSON; interned values may stand in it."""
    _closed_object(body, 0, True)


def _closed(value: object, depth: int, nested: bool) -> None:
    """Refuse whatever is not a closed JSON value. Exact types only: no subclass, no float."""
    if depth > MAX_DEPTH:
        raise EntryRefused(f"the body is nested deeper than {MAX_DEPTH}")
    kind = type(value)
    if kind is dict:
        _closed_object(value, depth, nested)  # type: ignore[arg-type]
    elif kind is list or kind is tuple:
        _closed_items(value, depth, nested)  # type: ignore[arg-type]
    elif nested and kind is Joined:
        _joined(value, depth)  # type: ignore[arg-type]
    elif kind not in _SCALARS and not (nested and kind is Interned):
        raise EntryRefused(f"the log holds no `{kind.__name__}` here")


def _joined(value: Joined, depth: int) -> None:
    fields = value.shared.fields
    if fields is None or not fields.keys().isdisjoint(value.rest) or not value.rest:
        raise EntryRefused("what is joined to an object are other names than its own")
    _closed_object(value.rest, depth, True)


def _closed_object(value: Mapping[str, object], depth: int, nested: bool) -> None:
    try:
        named = "".join(value).isascii() and "@" not in value
    except TypeError:
        named = False
    if not named:
        raise EntryRefused("names are strings of ASCII other than `@`")
    _closed_items(value.values(), depth, nested)


def _closed_items(items: Collection[object], depth: int, nested: bool) -> None:
    if not _SCALARS.issuperset(map(type, items)):
        for item in items:
            if type(item) not in _SCALARS:
                _closed(item, depth + 1, nested)
