"""The one scanner of event streams, by the rules of the HTML standard (section 9.2.6).

It works on bytes: no character is ever decoded alone, so that one cut between two packets stays
whole. What it gives out are the bytes that came, event by event, with four exceptions: a
byte order mark, events without data, blank lines between events, and an end split from its event
are made so that no client's parser sees an event that isn't one. In particular a comment goes out
without the blank line after it, because some clients take comment and blank line for an event.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
# Possessive: a CR LF must not be taken apart into two line ends.
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
EVENT_LIMIT = 8 * 1024 * 1024
# Comments, blank lines, fields without data, Anthropic's pings. Possessive: it is read once.
_ALIVE = re.compile(
    rb"(?>(?>:[^\r\n]*+|(?>event|id|retry):[^\r\n]*+"
    rb"|data:[ ]?(?>\{\s*+\"type\":\s*+\"ping\"\s*+\})?)?+(?>\r\n|\n|\r))*+"
)


class Event(NamedTuple):
    """One event: its bytes with the blank line, its data (lines joined by LF), its name.

    A comment has no data, and its bytes end with the line.
    """

    raw: bytes
    data: bytes
    name: bytes = b""


def only_alive(data: bytes) -> bool:
    """Whether bytes of a stream say that its connection lives, and nothing of its answer: whatever
    stands before an engine writes them too while that stands still."""
    return _ALIVE.fullmatch(data) is not None


class EventTooLarge(ValueError):
    """An event without an end within the limit."""


class Scanner:
    """Cuts a stream of bytes into events; `limit` bytes per event."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._begun = False

    @property
    def begun(self) -> bytearray:
        """The start of an event that waits for its end, empty for none; always the same object."""
        return self._pending

    def feed(self, data: bytes) -> list[Event]:
        """The events that are whole after these bytes. Raises EventTooLarge."""
        if not self._pending and data.endswith(b"\n\n") and b"\r" not in data:
            return self._whole(data)
        return self._scan(data)

    def finish(self) -> list[Event]:
        """At the end of the stream: an event whose blank line is missing is given one."""
        rest = bytes(self._pending)
        self._pending.clear()
        if not rest:
            return []
        if not _BLANK.search(rest, max(0, len(rest) - 4)):
            rest += b"\n" if rest.endswith((b"\r", b"\n")) else b"\n\n"
        return self._events([rest])

    def _whole(self, data: bytes) -> list[Event]:
        """The usual case: a packet of whole events."""
        blocks = data.split(b"\n\n")
        blocks.pop()
        events = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                self._begun = True
                if len(block) > 6:
                    events.append(Event(block + b"\n\n", block[6:]))
            else:
                events += self._events([block + b"\n\n"])
        return events

    def _scan(self, data: bytes) -> list[Event]:
        """A packet that cuts an event, or that has other line ends."""
        pending = self._pending
        start = max(0, len(pending) - 3)
        pending += data
        blocks, begin = [], 0
        for blank in _BLANK.finditer(pending, start):
            end = blank.end()
            # A last CR may be the first half of a CR LF that is still on its way.
            if end == len(pending) and blank.group() in (b"\r\n\r", b"\n\r"):
                break
            blocks.append(bytes(pending[begin:end]))
            begin = end
        del pending[:begin]
        if len(pending) > self._limit:
            raise EventTooLarge(f"an event is above {self._limit} bytes")
        return self._events(blocks) if blocks else []

    def _events(self, blocks: list[bytes]) -> list[Event]:
        events = []
        for block in blocks:
            event = _read(self._open(block).lstrip(b"\r\n"))
            if event is not None:
                events.append(event)
        return events

    def _open(self, block: bytes) -> bytes:
        """Only the stream's very first bytes can be a byte order mark."""
        begun, self._begun = self._begun, True
        return block if begun else block.removeprefix(_BOM)


def _read(block: bytes) -> Event | None:
    """The event of a block of lines, a comment, or None when there is nothing to pass on."""
    data: list[bytes] = []
    comments: list[bytes] = []
    name = b""
    for line in _LINE_END.split(block):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
        elif line.startswith(b":"):
            comments.append(line)
    joined = b"\n".join(data)
    if joined.strip(b"\n"):
        return Event(block, joined, name)
    return Event(b"\n".join(comments) + b"\n", b"") if comments else None
