"""An event taken for the like of another is read as it would have been."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.answers.frames import Frame
from router.answers.mould import Mould
from router.answers.readings import (
    ModelName,
    Reader,
    SseDecoder,
    read_chat,
    read_messages,
    read_responses,
)

BEFORE = b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"'
AFTER = b'"},"finish_reason":null}]}\n\n'


def learned() -> Mould:
    mould = Mould()
    mould.learn(BEFORE + b"x" + AFTER, BEFORE.replace(b'"m"', b'"asked"') + b"x" + AFTER)
    return mould


@pytest.mark.parametrize("text", ["hi", " ", "你好", "}]}", "data: x", "data:", ","])
def test_a_like_event_is_known(text: str) -> None:
    raw = text.encode()
    goes = BEFORE.replace(b'"m"', b'"asked"') + raw + AFTER
    assert learned().cast(BEFORE + raw + AFTER) == goes


@pytest.mark.parametrize("text", [b"", b'"', b"\\n", b"\\", b"\n", b"\0", b"\xff", b"\xe4"])
def test_a_text_that_could_end_itself_is_read(text: bytes) -> None:
    assert learned().cast(BEFORE + text + AFTER) is None


def test_other_events_are_read() -> None:
    ends = AFTER.replace(b"null", b'"stop"')
    assert learned().cast(BEFORE + b"x" + ends) is None
    assert learned().cast(BEFORE.replace(b"1", b"2") + b"x" + AFTER) is None
    assert learned().cast(BEFORE[:-1]) is None
    assert learned().cast(b"") is None
    assert Mould().cast(BEFORE + b"x" + AFTER) is None


def test_halves_that_overlap_are_read() -> None:
    mould = Mould()
    mould.learn(b'"text":"a","x":""', b'"text":"a","x":""')
    assert mould.cast(b'"text":"b","x":""') == b'"text":"b","x":""'
    assert mould.cast(b'"text":"","x":""') is None


def test_a_stream_without_likeness_is_not_tried_for_ever() -> None:
    mould = Mould()
    for number in range(20):
        event = b'{"n":%d,"text":"x"}' % number
        mould.learn(event, event)
    assert mould.cast(b'{"n":19,"text":"y"}') is None
    assert mould.cast(b'{"n":7,"text":"y"}') == b'{"n":7,"text":"y"}'


def fresh(reader: Reader, event: bytes) -> list[Frame]:
    return SseDecoder(reader, ModelName("asked")).feed(event)


TEXTS = st.text(max_size=8) | st.sampled_from(["", "x", 'a"b', "\\", '"content":"', "\u2028", "\n"])
ODD = st.none() | st.booleans() | st.sampled_from([{}, [], {"code": 429}, "stop"])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    """Events of all surfaces that look like each other."""
    key = draw(st.sampled_from(["content", "text", "reasoning_content", "delta", "refusal"]))
    part = {key: draw(TEXTS), **draw(st.dictionaries(st.sampled_from(["role", "text"]), TEXTS))}
    choice = {"index": 0, "delta": part, "finish_reason": draw(ODD)}
    name = draw(st.sampled_from(["response.output_text.delta", "content_block_delta", "x"]))
    extra = draw(st.dictionaries(st.sampled_from(["usage", "error", "status"]), ODD, max_size=1))
    return {"type": name, "model": draw(st.sampled_from(["m", "n"])), "choices": [choice], **extra}


@given(
    st.lists(documents(), max_size=8),
    st.sampled_from([read_chat, read_messages, read_responses]),
    st.booleans(),
    st.booleans(),
)
def test_a_stream_is_read_as_its_events_alone(
    items: list[dict[str, object]], reader: Reader, compact: bool, joined: bool
) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    events = [
        b"data: " + json.dumps(item, separators=separators, ensure_ascii=False).encode() + b"\n\n"
        for item in items
    ]
    decoder = SseDecoder(reader, ModelName("asked"))
    parts = [b"".join(events)] if joined else events
    found = [frame for part in parts for frame in decoder.feed(part)]
    assert found == [frame for event in events for frame in fresh(reader, event)]


def test_an_event_that_is_passed_on_unchanged_is_the_same_object() -> None:
    mould = Mould()
    first = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    mould.learn(first, first)
    for text in (b"b c", "é".encode()):
        other = first.replace(b'"a"', b'"' + text + b'"')
        assert mould.cast(other) is other
    for text in (b'a\\"b', b"a\nb", b"\xff", b"", b'x","y":"z'):
        assert mould.cast(first.replace(b'"a"', b'"' + text + b'"')) is None
