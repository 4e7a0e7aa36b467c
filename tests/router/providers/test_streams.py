"""Equal surfaces: bytes pass, the model's name is the one asked for, usage of ours stays ours."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.answers.framing import framed
from router.providers.base import EqualEvents, Kind
from router.providers.streams import JsonDecoder, renamed_json
from router.sse import Scanner
from router.usage import Usage
from router.usage import read as read_usage

HEAD = b'data: {"id":"c-1","object":"chat.completion.chunk","created":7,"model":"tiny","choices":['
STREAM = (
    HEAD + b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null}]}\n\n'
    + b": keep-alive\n\n"
    + HEAD + '{"index":0,"delta":{"content":"日本 \\"model\\":\\"tiny\\" 👩‍🚀 é"}}]}\n\n'.encode()
    + HEAD + b'{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\n'
    + HEAD + b'],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
    + b"data: [DONE]\n\n"
)  # fmt: skip
USAGE_EVENT = HEAD + b'],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'


def run(pieces: list[bytes], *, drops: bool = False) -> tuple[bytes, Usage | None]:
    reader = framed(EqualEvents("asked", drops), "chat.completions", ())
    frames = [frame for piece in pieces for frame in reader.feed(piece)] + reader.finish()
    counts = [read_usage(frame.usage) for frame in frames if frame.usage]
    return b"".join(frame.data for frame in frames), counts[-1] if counts else None


def expected(*, drops: bool) -> bytes:
    stream = STREAM.replace(USAGE_EVENT, b"") if drops else STREAM
    return shown(stream)


def shown(stream: bytes) -> bytes:
    """As a client gets it: a comment comes out without its blank line."""
    named = stream.replace(b'"model":"tiny","choices"', b'"model":"asked","choices"')
    return re.sub(rb"(: keep-alive)(\r\n|\n|\r){2}", rb"\1\n", named)


@pytest.mark.parametrize("drops", [False, True])
def test_every_split_in_two(drops: bool) -> None:
    for cut in range(len(STREAM) + 1):
        out, usage = run([STREAM[:cut], STREAM[cut:]], drops=drops)
        assert out == expected(drops=drops), cut
        assert usage == Usage(3, 2)


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_split(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(edges)]
    assert run(pieces, drops=True)[0] == expected(drops=True)


def test_one_byte_at_a_time() -> None:
    assert run([bytes([b]) for b in STREAM])[0] == expected(drops=False)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end: str) -> None:
    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", end.encode())
    for cut in range(0, len(stream), 7):
        out, _ = run([stream[:cut], stream[cut:]])
        assert out == shown(stream)


def test_nothing_is_dropped_that_says_more() -> None:
    """Some servers tell usage with every chunk."""
    chunk = HEAD + b'{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":1}}\n\n'
    out, _ = run([chunk], drops=True)
    assert b'"content":"x"' in out


def test_a_first_chunk_without_choices_stays() -> None:
    chunk = HEAD + b'],"usage":null}\n\n'
    out, usage = run([chunk], drops=True)
    assert out == chunk.replace(b'"tiny"', b'"asked"')
    assert usage is None


@pytest.mark.parametrize(
    "event",
    [
        b'event: response.created\ndata: {"type":"r","response":{"model":"tiny"}}\n\n',
        b'event: message_start\ndata: {"type":"message_start","message":{"model":"tiny"}}\n\n',
        b'data:{"choices":[],"model":"tiny"}\n\n',
        b'data: {"choices":[],\ndata: "model":"tiny"}\n\n',
        b'\xef\xbb\xbfdata: {"choices":[],"model":"tiny"}\n\n',
    ],
)
def test_other_shapes_are_renamed_too(event: bytes) -> None:
    out, _ = run([event])
    (event_read,) = Scanner().feed(out)
    found = orjson.loads(event_read.data)
    holder = found.get("response") or found.get("message") or found
    assert holder["model"] == "asked"
    assert (b"event: " in out) == (b"event: " in event)


def test_a_broken_event_is_left_out_and_counted() -> None:
    event = b'data: {"model": [oops\n\n'
    reader = framed(EqualEvents("asked", drops_usage=False), "chat.completions", ())
    assert reader.feed(event) == []
    assert reader.malformed == 1


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (b'{"id":"x","model":"tiny","choices":[]}', b'{"id":"x","model":"asked","choices":[]}'),
        (b'{ "model" : "t\\"iny" }', b'{ "model" : "asked" }'),
        (b'{"a":[1],"model":"tiny"}', b'{"a":[1],"model":"asked"}'),
        (b'{"object":"list"}', b'{"object":"list"}'),
    ],
)
def test_json_answers(body: bytes, made: bytes) -> None:
    assert renamed_json(body, "asked") == made


def test_logprobs_and_numbers_stay_as_they_came(through: Callable[..., bytes]) -> None:
    body = (
        b'{"model":"tiny","choices":[{"logprobs":{"content":[{"logprob":-0.10e0}]}}],"usage":null}'
    )
    decoder = JsonDecoder("asked")
    assert through(decoder, body[:9], body[9:]) == body.replace(b"tiny", b"asked")
    assert decoder.failure is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b'{"a":'])
def test_no_json_object_is_a_bad_answer(body: bytes, through: Callable[..., bytes]) -> None:
    decoder = JsonDecoder("asked")
    assert through(decoder, body) == b""
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


def test_an_answer_nested_too_deeply_to_be_written_anew_is_a_bad_one(
    through: Callable[..., bytes],
) -> None:
    decoder = JsonDecoder("asked")
    assert through(decoder, b'{"x":' + b"[" * 300 + b"]" * 300 + b',"model":"tiny"}') == b""
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


def test_usage_of_an_answer(through: Callable[..., bytes]) -> None:
    decoder = JsonDecoder("asked")
    answer: dict[str, Any] = {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    through(decoder, orjson.dumps(answer))
    assert decoder.usage == Usage(1, 2)
