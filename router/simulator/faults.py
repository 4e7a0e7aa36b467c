"""Faults that can be armed at run time, and how each bends an answer that would have been fine.

Three families. *Instead* faults replace the answer. *Head* faults spoil the response head or the
connection. *Stream* faults act on the frames of the body; several may be armed together and act in
the order they were armed. A plain (not streamed) body is two frames, so they apply there too.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields
from enum import Enum, StrEnum


class Kind(StrEnum):
    """What goes wrong. In brackets the fields of `Fault` that shape it."""

    HANG = "hang"  # accepted, never answered
    STATUS = "status"  # an error status [status, retry_after, error, body]
    HTML = "html"  # an error page of some proxy [status]
    GARBAGE = "garbage"  # 200, says JSON, is not [body]
    REDIRECT = "redirect"  # 3xx to `location` [status, location]
    RESET_HEAD = "reset_head"  # TCP reset after `after` bytes of the response head
    SLOW_HEAD = "slow_head"  # nothing for `seconds`, then fine
    HUGE_HEADERS = "huge_headers"  # a header of `size` bytes
    WRONG_LENGTH = "wrong_length"  # a plain body's content-length is off by `size`
    DROP_IDLE = "drop_idle"  # the connection is dropped after the answer, without a word
    SLOW_START = "slow_start"  # head at once, first frame after `seconds`
    TRICKLE = "trickle"  # `seconds` before every frame
    RESET_AFTER = "reset_after"  # TCP reset after `after` frames
    CLOSE_AFTER = "close_after"  # connection closed after `after` frames, body unfinished
    END_AFTER = "end_after"  # body ends properly after `after` frames, the rest is missing
    STALL_AFTER = "stall_after"  # silence after `after` frames
    ERROR_EVENT = "error_event"  # an in-stream error after `after` content frames [status, error]
    BAD_LINE = "bad_line"  # one broken event after `after` content frames, the rest is fine
    EMPTY_CHOICES = "empty_choices"  # a first chunk with `choices: []`
    COMMENTS = "comments"  # a keep-alive comment before every frame
    ODD_SSE = "odd_sse"  # BOM, ping without data, empty data, id, retry, CR LF, multi-line data
    SPLIT = "split"  # `size` bytes a write; or, if 0, one cut at byte `after`


INSTEAD = frozenset(
    {Kind.HANG, Kind.STATUS, Kind.HTML, Kind.GARBAGE, Kind.REDIRECT, Kind.RESET_HEAD}
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault: kind, shape, and which requests it hits.

    `model`, `region` and `path` are substrings the request must have; `probability` is drawn from
    the seeded source of the book; `times` disarms it after so many hits.
    """

    kind: Kind
    status: int = 503
    after: int = 0
    seconds: float = 0.0
    size: int = 1
    retry_after: str = ""
    error: str = ""
    body: str = ""
    location: str = ""
    model: str = ""
    region: str = ""
    path: str = ""
    probability: float = 1.0
    times: int | None = None

    @staticmethod
    def parse(document: object) -> Fault:
        """A fault from JSON; ValueError names an unknown kind or a field of the wrong type."""
        kind = document.get("kind") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or kind not in tuple(Kind):
            raise ValueError(f"a fault is a JSON object with a `kind` of {', '.join(Kind)}")
        values: dict[str, object] = {"kind": Kind(str(kind))}
        types = {field.name: str(field.type) for field in fields(Fault)}
        for name, value in document.items():
            if name == "kind":
                continue
            if name not in types:
                raise ValueError(f"a fault has no field `{name}`, only {', '.join(types)}")
            if not _fits(types[name], value):
                raise ValueError(f"`{name}` of a fault must be a value of type `{types[name]}`")
            values[name] = value
        return Fault(**values)  # type: ignore[arg-type]  # each one was checked above


def _fits(wanted: str, value: object) -> bool:
    if isinstance(value, bool):
        return False
    if wanted == "float":
        return isinstance(value, int | float)
    if wanted.startswith("int"):
        return isinstance(value, int) or (value is None and wanted.endswith("None"))
    return wanted == "str" and isinstance(value, str)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What hits one request: at most one *instead* fault, and any others in order."""

    instead: Fault | None = None
    others: tuple[Fault, ...] = ()

    def find(self, kind: Kind) -> Fault | None:
        """The first drawn fault of a kind, if any."""
        return next((fault for fault in self.others if fault.kind is kind), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds drawn, for the record of the hit."""
        first = () if self.instead is None else (self.instead.kind.value,)
        return first + tuple(fault.kind.value for fault in self.others)


@dataclass(slots=True, eq=False)
class _Armed:
    fault: Fault
    left: int | None


class FaultBook:
    """The armed faults of one simulated service."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._armed: list[_Armed] = []

    @property
    def armed(self) -> tuple[Fault, ...]:
        """The faults armed now, oldest first."""
        return tuple(armed.fault for armed in self._armed)

    def arm(self, fault: Fault) -> None:
        """Add a fault."""
        self._armed.append(_Armed(fault, fault.times))

    def clear(self, kind: Kind | None = None) -> None:
        """Disarm all faults, or those of one kind."""
        self._armed = [
            armed for armed in self._armed if kind is not None and armed.fault.kind is not kind
        ]

    def draw(self, *, model: str = "", region: str = "", path: str = "") -> Drawn:
        """Which faults hit a request; counts `times` down."""
        instead: Fault | None = None
        others: list[Fault] = []
        for armed in list(self._armed):
            fault = armed.fault
            replaces = fault.kind in INSTEAD
            if not self._hits(fault, model, region, path) or (replaces and instead is not None):
                continue
            if replaces:
                instead = fault
            else:
                others.append(fault)
            self._count(armed)
        return Drawn(instead, tuple(others))

    def _hits(self, fault: Fault, model: str, region: str, path: str) -> bool:
        if not (fault.model in model and fault.region in region and fault.path in path):
            return False
        return fault.probability >= 1.0 or self._rng.random() < fault.probability

    def _count(self, armed: _Armed) -> None:
        if armed.left is not None:
            armed.left -= 1
            if armed.left <= 0:
                self._armed.remove(armed)


class Part(Enum):
    """What a frame of an answer is."""

    START = "start"
    CONTENT = "content"
    FINISH = "finish"
    USAGE = "usage"
    END = "end"


class Cut(Enum):
    """How a body stops before its end."""

    RESET = "reset"
    CLOSE = "close"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Frame:
    """Some bytes of a body, and what they are."""

    data: bytes
    part: Part


Frames = AsyncGenerator[Frame | Cut, None]
Sleep = Callable[[float], Awaitable[None]]
ErrorFrame = Callable[[Fault], bytes]


def distort(frames: Frames, drawn: Drawn, sleep: Sleep, error_frame: ErrorFrame) -> Frames:
    """The frames as the drawn stream faults make them; `error_frame` speaks the dialect's error."""
    for fault in drawn.others:
        frames = _bend(frames, fault, sleep, error_frame)
    return frames


def _bend(frames: Frames, fault: Fault, sleep: Sleep, error_frame: ErrorFrame) -> Frames:
    match fault.kind:
        case Kind.SLOW_START | Kind.TRICKLE:
            return _slow(frames, fault, sleep)
        case Kind.RESET_AFTER | Kind.CLOSE_AFTER | Kind.STALL_AFTER | Kind.END_AFTER:
            return _cut(frames, fault)
        case Kind.ERROR_EVENT:
            return _insert(frames, fault.after, error_frame(fault), last=True)
        case Kind.BAD_LINE:
            return _insert(frames, fault.after, b'data: {"id": "broken", "choi\n\n', last=False)
        case Kind.EMPTY_CHOICES:
            return _insert(frames, -1, _EMPTY_CHOICES, last=False)
        case Kind.COMMENTS:
            return _comment(frames)
        case Kind.ODD_SSE:
            return _odd(frames)
        case Kind.SPLIT:
            return _split(frames, fault)
        case _:
            return frames


_EMPTY_CHOICES = (
    b'data: {"id":"","object":"chat.completion.chunk","created":0,"model":"","choices":[],'
    b'"prompt_filter_results":[]}\n\n'
)
_CUTS = {
    Kind.RESET_AFTER: Cut.RESET,
    Kind.CLOSE_AFTER: Cut.CLOSE,
    Kind.STALL_AFTER: Cut.HANG,
}


async def _slow(frames: Frames, fault: Fault, sleep: Sleep) -> Frames:
    first = True
    async with aclosing(frames):
        async for frame in frames:
            if first or fault.kind is Kind.TRICKLE:
                await sleep(fault.seconds)
            first = False
            yield frame


async def _cut(frames: Frames, fault: Fault) -> Frames:
    left = fault.after
    async with aclosing(frames):
        while left > 0 and (frame := await anext(frames, None)) is not None:
            yield frame
            left -= 1
    if (cut := _CUTS.get(fault.kind)) is not None:
        yield cut


async def _insert(frames: Frames, after: int, data: bytes, *, last: bool) -> Frames:
    """Put `data` after so many content frames (-1: before everything); `last` ends there."""
    content = min(0, after)
    inserted = False
    async with aclosing(frames):
        async for frame in frames:
            part = frame.part if isinstance(frame, Frame) else None
            if not inserted and content == after and (part is not Part.START or after < 0):
                inserted = True
                yield Frame(data, Part.CONTENT)
                if last:
                    return
            yield frame
            content += part is Part.CONTENT


async def _comment(frames: Frames) -> Frames:
    async with aclosing(frames):
        async for frame in frames:
            yield Frame(b": keep-alive\n\n", Part.START)
            yield frame


async def _odd(frames: Frames) -> Frames:
    yield Frame(
        b"\xef\xbb\xbf: hello\nretry: 3000\n\nevent: ping\n\ndata:\n\nid: 7\n\n", Part.START
    )
    number = 0
    async with aclosing(frames):
        async for frame in frames:
            if isinstance(frame, Frame) and frame.data.startswith(b"data: {"):
                number += 1
                data = frame.data.replace(b',"', b',\ndata: "', 1)  # JSON allows a newline there
                frame = Frame(data.replace(b"\n", b"\r\n") if number % 2 else data, frame.part)
            yield frame


async def _split(frames: Frames, fault: Fault) -> Frames:
    offset = 0
    async with aclosing(frames):
        async for frame in frames:
            if isinstance(frame, Cut):
                yield frame
                continue
            for piece in _pieces(frame.data, fault, offset):
                yield Frame(piece, frame.part)
            offset += len(frame.data)


def _pieces(data: bytes, fault: Fault, offset: int) -> list[bytes]:
    if fault.size > 0:
        return [data[at : at + fault.size] for at in range(0, len(data), fault.size)]
    cut = fault.after - offset
    return [data[:cut], data[cut:]] if 0 < cut < len(data) else [data]
