"""Reading lines back: strict parsing, and interned values put in their places."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import orjson

from router.audit.entry import FORMAT, KINDS, canonical
from router.audit.errors import AuditError

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"
_PEAK: Final = re.compile(r"[0-9a-f]{64}")
_NONCE: Final = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]")  # 16 bytes in canonical base64
_SCALARS: Final = frozenset({str, int, bool, type(None)})


class LineInvalid(AuditError):
    """A line is not one that a log writes."""


@dataclass(frozen=True, slots=True)
class EntryLine:
    """An entry as read. `time` is in microseconds; `body` still holds `@` references."""

    kind: str
    id: str
    time: int
    body: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class InternLine:
    """A value that later lines of the same segment refer to by `index`."""

    index: int
    value: Value


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """First line of a segment: where it stands in the tree, and what was open before it."""

    log: str
    index: int
    time: int
    open: tuple[tuple[str, int], ...]
    peaks: tuple[bytes, ...]


Line: TypeAlias = EntryLine | InternLine | SegmentLine


def parse_line(raw: bytes) -> Line:
    """Parse one line, given without its newline. Raises LineInvalid unless it is canonical."""
    try:
        value: object = orjson.loads(raw)
        if not isinstance(value, dict) or canonical(value) != raw:
            raise LineInvalid("the line is not a canonical JSON object")
        return _line(value)
    except (KeyError, TypeError, ValueError, AuditError) as error:
        raise LineInvalid(f"not a line of a region log: {error}") from error


def _line(value: dict[str, Value]) -> Line:
    kind = _text(value["k"])
    _nonce(value["n"])
    if kind == "intern":
        _exactly(value, "iknv")
        return InternLine(_whole(value["i"]), value["v"])
    if kind == "segment":
        _exactly(value, "fiklnopt")
        return _segment(value)
    _exactly(value, "bknrt")
    body = value["b"]
    if kind not in KINDS or not isinstance(body, dict):
        raise LineInvalid(f"`{kind}` is not a kind of entry with a body")
    return EntryLine(kind, _text(value["r"]), _whole(value["t"]), body)


def _segment(value: dict[str, Value]) -> SegmentLine:
    if value["f"] != FORMAT:
        raise LineInvalid(f"format `{value['f']}` is newer than this reader")
    opened, peaks = value["o"], value["p"]
    if not isinstance(opened, list) or not isinstance(peaks, list):
        raise LineInvalid("a segment line lists what is open and its peaks")
    index = _whole(value["i"])
    if len(peaks) != index.bit_count():
        raise LineInvalid("the number of peaks does not fit the index")
    return SegmentLine(
        _text(value["l"]),
        index,
        _whole(value["t"]),
        tuple(_opened(item) for item in opened),
        tuple(_peak(item) for item in peaks),
    )


def _opened(item: Value) -> tuple[str, int]:
    if not isinstance(item, list) or len(item) != 2:
        raise LineInvalid("an open request is an id and an index")
    return _text(item[0]), _whole(item[1])


def _peak(item: Value) -> bytes:
    if not _PEAK.fullmatch(_text(item)):
        raise LineInvalid("a peak is 64 hexadecimal digits")
    return bytes.fromhex(_text(item))


def _exactly(value: Mapping[str, Value], names: str) -> None:
    if "".join(value) != names:
        raise LineInvalid(f"the fields are `{','.join(value)}`")


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise LineInvalid("a string is missing")
    return value


def _whole(value: Value) -> int:
    if type(value) is not int or value < 0:
        raise LineInvalid("a whole number is missing")
    return value


def _nonce(value: Value) -> None:
    if not _NONCE.fullmatch(_text(value)):
        raise LineInvalid("a nonce is 16 bytes in base64")


def references(value: Value) -> Iterator[int]:
    """Indices of the intern lines that a value with `@` needs."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "@" and type(item) is int:
                yield item
            else:
                yield from references(item)


@dataclass(slots=True)
class Interns:
    """The interned values of one segment, by index."""

    values: dict[int, Value] = field(default_factory=dict)

    def resolve(self, body: Mapping[str, Value]) -> dict[str, Value]:
        """The body with every reference replaced. Raises LineInvalid for a dangling one."""
        resolved = self._value(dict(body))
        if not isinstance(resolved, dict):
            raise LineInvalid("a body is an object")
        return resolved

    def _value(self, value: Value) -> Value:
        if type(value) in _SCALARS:
            return value
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, float):
            raise LineInvalid("the log holds no floating-point number")
        if not isinstance(value, dict):
            return value
        rest: dict[str, Value] = {k: self._value(v) for k, v in value.items() if k != "@"}
        if "@" not in value:
            return rest
        target = value["@"]
        if type(target) is not int or target not in self.values:
            raise LineInvalid(f"`@{target}` names no earlier intern line of this segment")
        shared = self.values[target]
        if not rest:
            return shared
        if not isinstance(shared, dict) or not shared.keys().isdisjoint(rest):
            raise LineInvalid(f"`@{target}` can't be merged into the object that names it")
        return {**shared, **rest}
