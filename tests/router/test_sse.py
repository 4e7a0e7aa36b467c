"""The scanner against the HTML standard's rules, at every split."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.sse import Event, EventTooLarge, Scanner, only_alive

TEXT = "你好 👩‍👩‍👧 é\u0301 ﷽"
STREAM = f'data: {{"a":"{TEXT}"}}\n\ndata: {{"b":"{TEXT}"}}\n\ndata: [DONE]\n\n'.encode()


def scan(*parts: bytes) -> list[Event]:
    scanner = Scanner()
    events = [event for part in parts for event in scanner.feed(part)]
    return events + scanner.finish()


def raw(*parts: bytes) -> bytes:
    return b"".join(event.raw for event in scan(*parts))


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_bytes_out_are_bytes_in_for_every_split(ends: bytes) -> None:
    """streaming-15: characters of several bytes, cut at every offset, and byte by byte."""
    stream = STREAM.replace(b"\n", ends)
    for cut in range(len(stream) + 1):
        assert raw(stream[:cut], stream[cut:]) == stream
    assert raw(*(stream[at : at + 1] for at in range(len(stream)))) == stream
    assert len(scan(*(stream[at : at + 1] for at in range(len(stream))))) == 3


def test_events_come_out_as_soon_as_they_are_whole() -> None:
    for ends in (b"\n", b"\r"):
        scanner = Scanner()
        assert scanner.feed(b"data: x" + ends) == []
        assert [event.data for event in scanner.feed(ends)] == [b"x"]
    scanner = Scanner()
    assert [event.data for event in scanner.feed(b"data: x\r\n\r\n")] == [b"x"]


CASES = {
    "one line": (b"data: x\n\n", [(b"", b"x")]),
    "no space": (b"data:x\n\n", [(b"", b"x")]),
    "one space only": (b"data:  x\n\n", [(b"", b" x")]),
    "many lines": (b"data: a\ndata: b\ndata\n\n", [(b"", b"a\nb\n")]),
    "a name": (b"event: ping\ndata: {}\n\n", [(b"ping", b"{}")]),
    "the last name": (b"event: a\nevent: b\ndata: 1\n\n", [(b"b", b"1")]),
    "id and retry": (b"id: 7\nretry: 10\ndata: x\n\n", [(b"", b"x")]),
    "unknown fields": (b"foo: bar\ndata: x\nbaz\n\n", [(b"", b"x")]),
    "carriage returns": (b"data: a\rdata: b\r\rdata: c\r\r", [(b"", b"a\nb"), (b"", b"c")]),
    "mixed ends": (b"data: a\r\ndata: b\n\r\ndata: c\r\n\n", [(b"", b"a\nb"), (b"", b"c")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: x\n\n", [(b"", b"x")]),
    "a mark later": (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [(b"", b"x")]),
    "no data": (b"event: ping\n\nid: 3\n\nretry: 9\n\ndata: x\n\n", [(b"", b"x")]),
    "empty data": (b"data\n\ndata:\n\ndata: \n\ndata:\ndata:\n\ndata: x\n\n", [(b"", b"x")]),
    "blank lines": (b"\n\n\n\ndata: x\n\n\n\n\n", [(b"", b"x")]),
    "a comment": (b": hello\n\ndata: x\n\n", [(b"", b""), (b"", b"x")]),
    "a comment inside": (b": hello\ndata: x\n\n", [(b"", b"x")]),
    "no end": (b"data: x\n\ndata: y", [(b"", b"x"), (b"", b"y")]),
    "half an end": (b"data: y\n", [(b"", b"y")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_rules_of_the_standard(name: str) -> None:
    """streaming-14, at every split."""
    stream, expected = CASES[name]
    for cut in range(len(stream) + 1):
        events = scan(stream[:cut], stream[cut:])
        assert [(event.name, event.data) for event in events] == expected, cut


def test_no_mark_comes_out() -> None:
    assert raw(b"\xef\xbb\xbfdata: x\n\n") == b"data: x\n\n"
    assert raw(b"\xef", b"\xbb", b"\xbfdata: x\n\n") == b"data: x\n\n"


def test_a_comment_comes_out_without_a_blank_line() -> None:
    """streaming-12: some clients take a comment and a blank line for an empty event."""
    assert raw(b"id: 1\ndata: x\n\n: ping\n\n: pong\r\n\r\ndata: y\n\n") == (
        b"id: 1\ndata: x\n\n: ping\n: pong\ndata: y\n\n"
    )


def test_an_unended_event_is_given_its_end() -> None:
    assert raw(b"data: x") == b"data: x\n\n"
    assert raw(b"data: x\n") == b"data: x\n\n"
    assert raw(b"data: x\r\n\r") == b"data: x\r\n\r"


def test_an_endless_event_is_refused() -> None:
    scanner = Scanner(limit=1000)
    for _ in range(9):
        assert scanner.feed(b"data: " + b"x" * 100) == []
    with pytest.raises(EventTooLarge):
        scanner.feed(b"data: " + b"x" * 100)


LINES = st.sampled_from(
    [b"data: x", b"data:", b"data", b": c", b":", b"event: e", b"id: 1", b"retry: 2", b"", b"foo"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def reference(stream: bytes) -> list[bytes]:
    """The standard's algorithm, word by word, without its last and unended block."""
    out, data = [], b""
    for line in re.split(rb"\r\n|\n|\r", stream)[:-1]:
        if not line:
            if data.strip(b"\n"):
                out.append(data[:-1])
            data = b""
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            data += value.removeprefix(b" ") + b"\n"
    return out


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.lists(st.integers(0, 80), max_size=6))
def test_any_stream_at_any_split_is_read_as_by_the_standard(
    lines: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(line + end for line, end in lines) + b"data: last\n\n"
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    parts = [stream[a:b] for a, b in pairwise(places)]
    events = [event for event in scan(*parts) if event.data]
    assert [event.data for event in events] == reference(stream)
    # What comes out is read the same way by the next reader, and none of its events are empty.
    again = b"".join(event.raw for event in scan(*parts))
    assert reference(again) == reference(stream)
    assert not empty_events(again)


def empty_events(stream: bytes) -> bool:
    """Whether a client that keeps an event's id would see an event without data."""
    data = False
    for line in re.split(rb"\r\n|\n|\r", stream)[:-1]:
        if not line:
            if not data:
                return True
            data = False
        elif line.startswith(b"data"):
            data = True
    return False


ALIVE = [
    b"", b"\n", b"\r\n\r\n", b": x\n\n", b":\r", b": a\n: b\n\n: c\n\n", b"event: ping\n\n",
    b"id: 7\nretry: 5\n\n", b"data:\n\n", b"data: \n\n", b'event: ping\ndata: {"type":"ping"}\n\n',
    b'data: { "type": "ping" }\r\n\r\n',
]  # fmt: skip
PIECES = [
    b"data: x\n\n", b": x\n\ndata: {}\n\n", b'data: {"cho', b'ices":[]}\n\n', b"data: [DONE]\n\n",
    b'data: {"type":"ping","x":1}\n\n', b": half a comm", b"x\n", b"\x00\x00\x01\x9b",
]  # fmt: skip


@pytest.mark.parametrize("data", ALIVE)
def test_signs_of_life_hold_nothing_of_an_answer(data: bytes) -> None:
    assert only_alive(data)
    assert not any(
        event.data not in (b"", b" ") and b"ping" not in event.data for event in scan(data)
    )


@pytest.mark.parametrize("data", PIECES)
def test_anything_else_may_be_a_piece_of_an_answer(data: bytes) -> None:
    assert not only_alive(data)


def test_signs_of_life_are_told_in_one_pass() -> None:
    began = time.process_time()
    only_alive(b": x\n" * 100_000 + b"y")
    only_alive(b"\r" * 400_000 + b"y")
    only_alive(b'data: {"type":' * 30_000)
    assert time.process_time() - began < 1.0
