"""An answer is held back until it is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from router.answers.readings import ModelName, SseDecoder, WholeReading, read_chat, read_responses
from router.opening import (
    BadAnswer,
    EmptyAnswer,
    OpenedStream,
    OpenedWhole,
    StatusRefused,
    StreamFailed,
    fate_of,
    open_stream,
    open_whole,
)
from router.transport.messages import (
    AnswerTimeout,
    AnswerTooLarge,
    AttemptFailed,
    ConnectionLost,
    Fate,
    GarbledAnswer,
    OutboundResponse,
)
from tests.rawserver import Line, RawServer, ask, now, served, within

NO_CHOICES = b'data: {"choices":[]}\n\n'
ROLE = b'data: {"model":"served","choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
TEXT = b'data: {"model":"served","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
STOP = b'data: {"model":"served","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
LIMITED = b'data: {"error":{"message":"slow down","type":"rate_limit_error","code":429}}\n\n'

Say = Callable[[Line], Awaitable[None]]


@asynccontextmanager
async def answering(say: Say) -> AsyncIterator[tuple[RawServer, OutboundResponse]]:
    """The head of an answer that `say` writes; the connection is seen to its end."""

    async def script(line: Line) -> None:
        await line.request()
        await say(line)

    async with served(script) as (server, transport):
        yield server, await transport.send(ask(server), within(10))


def streaming(*parts: bytes, end: bool = True, wait: bool = False) -> Say:
    async def say(line: Line) -> None:
        await line.stream_head()
        for part in parts:
            await line.part(part)
            await asyncio.sleep(0.002)
        if wait:
            await line.closed_by_peer()
        elif end:
            await line.part(b"")

    return say


def saying(head: bytes, body: bytes) -> Say:
    async def say(line: Line) -> None:
        await line.say(b"HTTP/1.1 " + head + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    return say


async def stream(say: Say, seconds: float = 5.0, limit: int = 100_000) -> OpenedStream:
    async with answering(say) as (_, response):
        decoder = SseDecoder(read_chat, ModelName("asked"))
        return await open_stream(response, decoder, now() + seconds, now, limit)


async def whole(say: Say, limit: int = 100_000) -> OpenedWhole:
    async with answering(say) as (_, response):
        decode = WholeReading(read_chat, ModelName("asked"))
        return await open_whole(response, decode, now() + 5, now, limit)


async def test_lifecycle_events_wait_for_the_first_content() -> None:
    opened = await stream(streaming(ROLE, b": ping\n\n", ROLE, TEXT, wait=True))
    assert opened.status == 200
    data = b"".join(frame.data for frame in opened.held)
    assert data == ((ROLE + b": ping\n" + ROLE + TEXT).replace(b"served", b"asked"))
    assert [frame.content for frame in opened.held] == [False, False, False, True]


async def test_an_end_with_a_reason_is_an_answer() -> None:
    opened = await stream(streaming(ROLE, STOP, DONE))
    assert opened.held[-1].finish


NOT_AN_ANSWER: dict[str, tuple[Say, type[AttemptFailed]]] = {
    # streaming-01: the lifecycle only, then a close
    "closed after its start": (streaming(ROLE, end=False), ConnectionLost),
    # streaming-08: empty choices, then a close
    "closed after empty choices": (
        streaming(b'data: {"choices":[]}\n\n', end=False),
        ConnectionLost,
    ),
    # streaming-09: an error within the stream
    "limited": (streaming(ROLE, LIMITED, wait=True), StreamFailed),
    "limited at once": (streaming(LIMITED), StreamFailed),
    "an error and content in one read": (streaming(ROLE + LIMITED + TEXT), StreamFailed),
    # streaming-02: an empty success
    "nothing": (streaming(), EmptyAnswer),
    "done only": (streaming(DONE), EmptyAnswer),
    "start and done": (streaming(ROLE, DONE, wait=True), EmptyAnswer),
    "comments only": (streaming(b": a\n\n: b\n\n"), EmptyAnswer),
    # streaming-14: events without data
    "empty events": (streaming(b"event: ping\n\ndata:\n\nretry: 1\n\n"), EmptyAnswer),
    "broken json only": (streaming(b'data: {"choi\n\n'), EmptyAnswer),
    "json instead": (saying(b"200 OK\r\ncontent-type: application/json", b"{}"), BadAnswer),
    "json error instead": (
        saying(b"200 OK\r\ncontent-type: application/json", b'{"error":{"code":429}}'),
        StreamFailed,
    ),
    "html": (saying(b"200 OK\r\ncontent-type: text/html", b"<html>"), BadAnswer),
    "no type": (saying(b"200 OK", TEXT), BadAnswer),
    "compressed": (
        saying(b"200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip", b"x"),
        BadAnswer,
    ),
    "refused": (saying(b"503 X\r\ncontent-type: text/plain", b"full"), StatusRefused),
    "redirected": (saying(b"302 Found\r\nlocation: http://x/", b""), StatusRefused),
    "garbled": (streaming(b"data: x", b"", end=False), EmptyAnswer),
}


@pytest.mark.parametrize("name", sorted(NOT_AN_ANSWER))
async def test_what_is_no_answer_is_a_failure_to_try_again(name: str) -> None:
    say, kind = NOT_AN_ANSWER[name]
    with pytest.raises(kind):
        await stream(say)


async def test_an_in_stream_limit_is_known_as_one() -> None:
    with pytest.raises(StreamFailed) as caught:
        await stream(streaming(ROLE, LIMITED))
    assert (caught.value.status, caught.value.fate) == (429, Fate.REFUSED)
    assert caught.value.error.kind == "rate_limit_error"
    assert "slow down" not in str(caught.value)


async def test_a_failed_response_is_a_failure() -> None:
    """streaming-02: the responses surface ends with a failed event and no text."""
    events = (
        b'event: response.created\ndata: {"type":"response.created","response":{}}\n\n'
        b'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed",'
        b'"error":{"code":"server_error","message":"m"}}}\n\n'
    )
    async with answering(streaming(events)) as (_, response):
        with pytest.raises(StreamFailed) as caught:
            await open_stream(response, SseDecoder(read_responses), now() + 5, now)
    assert caught.value.status == 500


async def test_a_late_first_content_is_given_up() -> None:
    """disconnect and timeouts: comments don't count as an answer, and the endpoint is cut off."""

    async def say(line: Line) -> None:
        await line.stream_head()
        for _ in range(40):
            await line.part(b": ping\n\n")
            await asyncio.sleep(0.02)

    async with answering(say) as (server, response):
        began = now()
        with pytest.raises(AnswerTimeout):
            await open_stream(response, SseDecoder(read_chat), now() + 0.2, now)
        assert now() - began < 0.6
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_an_endless_preamble_is_given_up() -> None:
    with pytest.raises(BadAnswer):
        await stream(streaming(*([ROLE * 10] * 20), wait=True), limit=10_000)


async def test_an_endless_event_is_given_up() -> None:
    async with answering(streaming(b"data: " + b"x" * 5000, wait=True)) as (_, response):
        with pytest.raises(BadAnswer):
            await open_stream(response, SseDecoder(read_chat, limit=1000), now() + 5, now)


async def test_a_cancelled_opening_cuts_the_endpoint_off() -> None:
    """disconnect-02: the client leaves while the first token is waited for."""
    async with answering(streaming(ROLE, wait=True)) as (server, response):
        opening = asyncio.create_task(open_stream(response, SseDecoder(read_chat), now() + 60, now))
        await asyncio.sleep(0.05)
        opening.cancel()
        await asyncio.wait([opening])
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


ANSWER = (
    b'{"model":"served","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1}}'
)
JSON = b"200 OK\r\ncontent-type: application/json; charset=utf-8"


async def test_a_whole_answer() -> None:
    opened = await whole(saying(JSON, ANSWER))
    assert opened.frame.data == ANSWER.replace(b"served", b"asked")
    assert opened.frame.usage == {"prompt_tokens": 1}


WHOLE: dict[str, tuple[Say, type[AttemptFailed]]] = {
    "html": (saying(b"200 OK\r\ncontent-type: text/html", b"<html>"), BadAnswer),
    "html as json": (saying(JSON, b"<html>"), BadAnswer),
    "cut json": (saying(JSON, ANSWER[:-4]), BadAnswer),
    "a list": (saying(JSON, b"[]"), BadAnswer),
    "nothing": (saying(JSON, b""), BadAnswer),
    "no choices": (saying(JSON, b'{"choices":[]}'), EmptyAnswer),
    "an error": (saying(JSON, b'{"error":{"message":"m","code":503}}'), StreamFailed),
    "events": (saying(b"200 OK\r\ncontent-type: text/event-stream", TEXT), BadAnswer),
    "too large": (saying(JSON, ANSWER + b" " * 200_000), AnswerTooLarge),
    "garbled": (streaming(end=False), BadAnswer),
}


@pytest.mark.parametrize("name", sorted(WHOLE))
async def test_what_is_no_whole_answer(name: str) -> None:
    say, kind = WHOLE[name]
    with pytest.raises(kind):
        await whole(say)


async def test_a_cut_body_is_a_loss() -> None:
    async def say(line: Line) -> None:
        await line.say(b"HTTP/1.1 " + JSON + b"\r\ncontent-length: 999\r\n\r\n" + ANSWER)

    with pytest.raises(ConnectionLost):
        await whole(say)


async def test_a_garbled_body_is_known_as_one() -> None:
    async def say(line: Line) -> None:
        await line.stream_head()
        await line.say(b"zz\r\n")

    with pytest.raises(GarbledAnswer):
        await stream(say)


@pytest.mark.parametrize("kind", [b"text/html", b"text/plain", b"application/json"])
async def test_an_error_keeps_its_status_and_words(kind: bytes) -> None:
    """balancing-05: HTML or plain text in an error is no parse failure."""
    say = saying(b"422 X\r\nretry-after: 3\r\ncontent-type: " + kind, b"<b>no</b>")
    for opening in (stream, whole):
        with pytest.raises(StatusRefused) as caught:
            await opening(say)
        refused = caught.value
        assert (refused.status, refused.body) == (422, b"<b>no</b>")
        assert (b"retry-after", b"3") in refused.headers
        assert refused.fate is Fate.REFUSED
        assert "no" not in str(refused).split()


async def test_an_endless_or_broken_error_body_hides_no_status() -> None:
    async def endless(line: Line) -> None:
        await line.say(b"HTTP/1.1 500 X\r\n\r\n" + b"e" * 300_000)
        await line.closed_by_peer()

    async def broken(line: Line) -> None:
        await line.say(b"HTTP/1.1 500 X\r\ncontent-length: 99\r\n\r\nsome")
        line.reset()

    with pytest.raises(StatusRefused) as caught:
        await stream(endless)
    assert len(caught.value.body) == 65536
    with pytest.raises(StatusRefused) as caught:
        await stream(broken)
    assert caught.value.fate is Fate.UNKNOWN


async def test_a_stalled_error_body_has_its_own_short_time() -> None:
    async def say(line: Line) -> None:
        await line.say(b"HTTP/1.1 429 X\r\ncontent-length: 99\r\n\r\nsome")
        await line.closed_by_peer()

    with pytest.raises(StatusRefused) as caught:
        await stream(say, seconds=0.2)
    assert caught.value.body == b"some"


def test_fates_of_statuses() -> None:
    refused = [400, 401, 404, 409, 413, 422, 429, 503, 529]
    assert {fate_of(status) for status in refused} == {Fate.REFUSED}
    unknown = [302, 408, 424, 499, 500, 502, 504, 520, 522, 524]
    assert {fate_of(status) for status in unknown} == {Fate.UNKNOWN}
