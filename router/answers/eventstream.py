"""AWS event streams (`application/vnd.amazon.eventstream`), decoded as they come.

A message is: total length, length of headers, CRC of these eight bytes, headers, payload, CRC of
all before it; numbers are big-endian. Source: the event stream encoding in AWS's
"Amazon Transcribe Developer Guide" and smithy.io's specification of the format, with limits of
128 KiB of headers and 24 MiB of payload.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

MEDIA_TYPE = b"application/vnd.amazon.eventstream"
_PRELUDE = struct.Struct("!III")
_FRAME = 16  # prelude and trailing CRC
_HEADERS_LIMIT = 128 * 1024
_PAYLOAD_LIMIT = 24 * 1024 * 1024
# Header value types of a fixed size: true, false, byte, short, int, long, timestamp, uuid.
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _STRING = 6, 7


class EventStreamError(ValueError):
    """Bytes that are not an event stream."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `headers` holds those that are strings; others are skipped."""

    headers: Mapping[str, str]
    payload: bytes

    @property
    def kind(self) -> str:
        """`event`, `exception` (modelled) or `error` (not modelled)."""
        return self.headers.get(":message-type", "event")

    @property
    def name(self) -> str:
        """The event's, exception's or error's own name."""
        for key in (":event-type", ":exception-type", ":error-code"):
            if key in self.headers:
                return self.headers[key]
        return ""


class MessageScanner:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are whole after these bytes. Raises EventStreamError."""
        pending = self._pending
        pending += data
        messages, begin = [], 0
        while len(pending) - begin >= _PRELUDE.size:
            total, headers = _prelude(pending, begin)
            if len(pending) - begin < total:
                break
            messages.append(_message(bytes(pending[begin : begin + total]), headers))
            begin += total
        del pending[:begin]
        return messages

    def finish(self) -> None:
        """At the end of the stream. Raises EventStreamError if a message was cut."""
        if self._pending:
            raise EventStreamError("the event stream ended within a message")


def _prelude(pending: bytearray, begin: int) -> tuple[int, int]:
    total, headers, checksum = _PRELUDE.unpack_from(pending, begin)
    if zlib.crc32(pending[begin : begin + 8]) != checksum:
        raise EventStreamError("the checksum of a message's lengths is wrong")
    if headers > _HEADERS_LIMIT or not _FRAME + headers <= total <= (
        _FRAME + headers + _PAYLOAD_LIMIT
    ):
        raise EventStreamError("the length of a message is out of bounds")
    return total, headers


def _message(raw: bytes, headers: int) -> Message:
    if zlib.crc32(raw[:-4]) != int.from_bytes(raw[-4:], "big"):
        raise EventStreamError("the checksum of a message is wrong")
    end = _PRELUDE.size + headers
    try:
        return Message(_headers(raw[_PRELUDE.size : end]), raw[end:-4])
    except (IndexError, UnicodeDecodeError) as error:
        raise EventStreamError("the headers of a message can't be read") from error


def _headers(raw: bytes) -> Mapping[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(raw):
        name, at = _take(raw, at + 1, raw[at])
        kind, at = raw[at], at + 1
        if kind in (_BYTES, _STRING):
            length, at = _take(raw, at, 2)
            value, at = _take(raw, at, int.from_bytes(length, "big"))
            if kind == _STRING:
                found[name.decode()] = value.decode()
        elif kind in _FIXED:
            _, at = _take(raw, at, _FIXED[kind])
        else:
            raise EventStreamError(f"header type {kind} is not known")
    return found


def _take(raw: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(raw):
        raise IndexError
    return raw[at : at + size], at + size
