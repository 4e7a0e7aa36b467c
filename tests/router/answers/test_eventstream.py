"""The AWS event stream decoder against botocore's."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from router.answers.eventstream import EventStreamError, Message, MessageScanner

VALUES: dict[str, tuple[int, bytes]] = {
    "yes": (0, b""),
    "no": (1, b""),
    "byte": (2, b"\x01"),
    "short": (3, b"\x01\x02"),
    "int": (4, b"\0\0\0\x01"),
    "long": (5, b"\0" * 8),
    "bytes": (6, b"\0\x03abc"),
    "time": (8, b"\0" * 8),
    "uuid": (9, b"\x07" * 16),
}


def text(value: str) -> tuple[int, bytes]:
    raw = value.encode()
    return 7, struct.pack("!H", len(raw)) + raw


def message(headers: dict[str, tuple[int, bytes]], payload: bytes) -> bytes:
    block = b"".join(
        bytes([len(name.encode())]) + name.encode() + bytes([kind]) + value
        for name, (kind, value) in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    body = prelude + struct.pack("!I", zlib.crc32(prelude)) + block + payload
    return body + struct.pack("!I", zlib.crc32(body))


def delta(words: str) -> bytes:
    headers = {":message-type": text("event"), ":event-type": text("contentBlockDelta")}
    return message(headers, b'{"delta":{"text":"%b"}}' % words.encode())


def test_events_exceptions_and_errors_are_told_apart() -> None:
    stream = (
        delta("hi")
        + message(
            {":message-type": text("exception"), ":exception-type": text("throttlingException")},
            b'{"message":"slow down"}',
        )
        + message({":message-type": text("error"), ":error-code": text("InternalError")}, b"")
    )
    found = MessageScanner().feed(stream)
    assert [(item.kind, item.name) for item in found] == [
        ("event", "contentBlockDelta"),
        ("exception", "throttlingException"),
        ("error", "InternalError"),
    ]
    assert found[1].payload == b'{"message":"slow down"}'


def test_every_split_gives_the_same_messages() -> None:
    stream = delta("你好") + message({**VALUES, ":event-type": text("x")}, b"") + delta("👩‍👧")
    whole = MessageScanner().feed(stream)
    assert len(whole) == 3
    for cut in range(len(stream) + 1):
        scanner = MessageScanner()
        assert scanner.feed(stream[:cut]) + scanner.feed(stream[cut:]) == whole
        scanner.finish()
    scanner = MessageScanner()
    assert [m for at in range(len(stream)) for m in scanner.feed(stream[at : at + 1])] == whole


def test_a_cut_end_is_an_error() -> None:
    scanner = MessageScanner()
    scanner.feed(delta("x")[:-1])
    with pytest.raises(EventStreamError):
        scanner.finish()


def read_whole(stream: bytes) -> list[Message]:
    scanner = MessageScanner()
    found = scanner.feed(stream)
    scanner.finish()
    return found


def test_any_flipped_byte_is_found() -> None:
    stream = delta("hello")
    for at in range(len(stream)):
        broken = bytearray(stream)
        broken[at] ^= 0x10
        with pytest.raises(EventStreamError):
            read_whole(bytes(broken))


@pytest.mark.parametrize(
    ("total", "headers"), [(15, 0), (0, 0), (100, 200_000), (40_000_000, 0), (20, 10)]
)
def test_lengths_out_of_bounds_are_refused_before_they_are_waited_for(
    total: int, headers: int
) -> None:
    prelude = struct.pack("!II", total, headers)
    with pytest.raises(EventStreamError):
        MessageScanner().feed(prelude + struct.pack("!I", zlib.crc32(prelude)))


@pytest.mark.parametrize(
    "headers", [{"x": (10, b"")}, {"x": (7, b"\0\x09ab")}, {"x": (7, b"\0\x01\xff")}]
)
def test_headers_that_lie_are_refused(headers: dict[str, tuple[int, bytes]]) -> None:
    with pytest.raises(EventStreamError):
        MessageScanner().feed(message(headers, b""))


def test_html_is_not_an_event_stream() -> None:
    with pytest.raises(EventStreamError):
        MessageScanner().feed(b"<html><body>502 Bad Gateway</body></html>")


def judged(stream: bytes) -> list[Message]:
    """What botocore makes of it."""
    buffer: Any = EventStreamBuffer()
    buffer.add_data(stream)
    return [
        Message({k: v for k, v in item.headers.items() if isinstance(v, str)}, item.payload)
        for item in buffer
    ]


NAMES = st.text("abc:-", min_size=1, max_size=8)
HEADERS = st.one_of(st.text(max_size=12).map(text), st.sampled_from(sorted(VALUES.values())))


@given(st.lists(st.tuples(st.dictionaries(NAMES, HEADERS, max_size=4), st.binary(max_size=40))))
def test_botocore_reads_the_same(items: list[tuple[dict[str, tuple[int, bytes]], bytes]]) -> None:
    stream = b"".join(message(headers, payload) for headers, payload in items)
    assert MessageScanner().feed(stream) == judged(stream)
