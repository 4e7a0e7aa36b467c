"""Providers' bytes as frames: content, failure and usage survive the joining."""

from __future__ import annotations

from router.answers.framing import Framed, FramedWhole, framed, reader_of, stream_error
from router.answers.readings import read_chat, read_messages
from router.providers.base import EqualEvents, Failure, Kind
from router.usage import Usage
from router.usage import read as read_usage

SSE = ((b"content-type", b"text/event-stream; charset=utf-8"),)
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'


class Passing:
    """A decoder that passes bytes and may fail after them."""

    content_type = "text/event-stream"

    def __init__(self, failure: Failure | None = None) -> None:
        self.usage: Usage | None = None
        self.failure: Failure | None = None
        self._failure = failure

    def feed(self, data: bytes) -> bytes:
        self.failure = self._failure
        return data

    def finish(self) -> bytes:
        self.usage = Usage(3, 2)
        return b""


def test_bytes_become_frames() -> None:
    framed = Framed(Passing(), "chat.completions", SSE)
    assert framed.media_type == b"text/event-stream"
    assert [f.data for f in framed.feed(EVENT[:9])] == []
    frames = framed.feed(EVENT[9:])
    assert [(f.data, f.content) for f in frames] == [(EVENT, True)]
    assert framed.malformed == 0


def test_usage_rides_on_the_last_frame() -> None:
    framed = Framed(Passing(), "chat.completions", SSE)
    framed.feed(EVENT[:-1])
    frames = framed.finish()
    assert frames[-1].usage == {"prompt_tokens": 3, "completion_tokens": 2}


def test_a_failure_is_an_error_frame_after_the_content() -> None:
    failure = Failure(Kind.LOAD, "busy", 200, "throttlingException")
    framed = Framed(Passing(failure), "chat.completions", SSE)
    frames = framed.feed(EVENT)
    assert frames[0].content
    assert frames[1].error == stream_error(failure)
    assert framed.failure is failure
    assert stream_error(failure).status == 429


def test_a_whole_answer() -> None:
    whole = FramedWhole(Passing(), "chat.completions")
    frame = whole(b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}')
    assert (frame.content, frame.finish, whole.failure) == (True, True, None)
    failing = FramedWhole(Passing(Failure(Kind.BAD_ANSWER, "no json")), "chat.completions")
    assert failing(b"{}").error is not None


def test_readers() -> None:
    assert reader_of("chat.completions") is read_chat
    assert reader_of("messages") is read_messages


def test_an_equal_surface_is_read_in_one_step() -> None:
    event = (
        b'data: {"id":"x","object":"chat.completion.chunk","model":"served","choices":'
        b'[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n'
    )
    usage = (
        b'data: {"model":"served","choices":[],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    )
    whole = b"".join(event % text for text in (b"a", b'\\"b', b"c", b"d")) + usage
    whole += b"data: [DONE]\n\n"
    for size in (1, 7, 50, len(whole)):
        reader = framed(EqualEvents("asked", drops_usage=True), "chat.completions", ())
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        frames = [frame for piece in pieces for frame in reader.feed(piece)]
        frames += reader.finish()
        shown = whole.replace(usage, b"").replace(b"served", b"asked")
        assert b"".join(frame.data for frame in frames) == shown
        assert frames[-1].done
        assert [read_usage(frame.usage) for frame in frames if frame.usage] == [Usage(3, 2)]
