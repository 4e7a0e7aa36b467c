"""What keeps a stream from being idle: pieces of its answer, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from router.answers.readings import SseDecoder, read_chat
from router.opening import open_stream
from router.relay import Pace, chat_error, relay
from tests.exchanges import FakeExchange, PromptExchange
from tests.rawserver import Line, ask, now, within
from tests.router.test_relay import DONE, HEADERS, STOP, run, token, upstream


@pytest.fixture(params=[FakeExchange, PromptExchange], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[FakeExchange]:
    """Everything holds for both ways: chunk by chunk, and in the turn in which they come."""
    made: type[FakeExchange] = request.param
    monkeypatch.setattr("tests.router.test_relay.FakeExchange", made)
    return made


SIGNS = {
    "comments": b": ping - 12:00:01\r\n\r\n",
    "comments without a blank line": b": keep-alive\n",
    "pings": b'event: ping\ndata: {"type": "ping"}\n\n',
    "events without data": b"event: ping\nid: 7\nretry: 3000\ndata:\n\n",
    "blank lines": b"\n",
}


@pytest.mark.parametrize("name", sorted(SIGNS))
async def test_signs_of_life_alone_are_no_pieces_of_an_answer(name: str) -> None:
    """What stands before an engine writes them while that stands still: the stream is idle."""
    ended = asyncio.Event()

    async def say(line: Line) -> None:
        await line.part(token())
        try:
            while True:
                await line.part(SIGNS[name])
                await asyncio.sleep(0.05)
        finally:
            ended.set()

    async with asyncio.timeout(5):
        exchange, done = await run(say, idle=0.4)
        await ended.wait()
    assert (done.complete, done.failure, done.events > 0) == (False, "timeout", True)
    assert exchange.sent.endswith(chat_error("timeout"))


@pytest.mark.parametrize("name", sorted(SIGNS))
async def test_signs_of_life_between_pieces_take_no_time_from_them(name: str) -> None:
    async def say(line: Line) -> None:
        for _ in range(4):
            await line.part(token())
            for _ in range(6):
                await line.part(SIGNS[name])
                await asyncio.sleep(0.05)
        await line.part(STOP + DONE)
        await line.part(b"")

    exchange, done = await run(say, idle=1.0)
    assert (done.complete, done.failure) == (True, None)
    assert exchange.sent.count(b'"x"') == 4


async def test_a_long_event_in_many_pieces_is_not_idle() -> None:
    async def say(line: Line) -> None:
        for byte in token() + STOP + DONE:
            await line.part(bytes((byte,)))
            await asyncio.sleep(0.002)
        await line.part(b"")

    _, done = await run(say, idle=0.25)
    assert (done.complete, done.failure) == (True, None)


async def test_the_end_is_soon_where_a_blank_line_told_of_the_last_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It comes by itself, as a sign of life would, and the event before it is whole with it."""
    monkeypatch.setattr("router.relay._TAIL", 0.2)

    async def say(line: Line) -> None:
        for part in (token(), STOP[:-1], STOP[-1:]):
            await line.part(part)
            await asyncio.sleep(0.05)
        await line.closed_by_peer()

    async with asyncio.timeout(5):
        _, done = await run(say, idle=20.0)
    assert (done.complete, done.failure) == (True, None)


async def test_reasons_to_stop_beside_each_piece_are_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some servers write one on every chunk. A pause after any was the end of a whole answer."""
    monkeypatch.setattr("router.relay._TAIL", 0.1)
    piece = token().replace(b'"finish_reason": null', b'"finish_reason": "stop"')
    assert piece != token()

    async def say(line: Line) -> None:
        for part in (piece, piece, token(), DONE, b""):
            await line.part(part)
            await asyncio.sleep(0.4)

    async with asyncio.timeout(5):
        exchange, done = await run(say, idle=2.0)
    assert (done.complete, done.failure) == (True, None)
    assert exchange.sent.count(b'"content"') == 3

    async def stall(line: Line) -> None:
        for part in (piece, token(), token()):
            await line.part(part)
            await asyncio.sleep(0.02)
        await line.closed_by_peer()

    async with asyncio.timeout(5):
        _, done = await run(stall, idle=0.4)
    assert (done.complete, done.failure) == (False, "timeout")


async def test_one_beside_the_last_piece_ends_a_stream_that_nothing_else_ends() -> None:
    piece = token().replace(b'"finish_reason": null', b'"finish_reason": "stop"')

    async def say(line: Line) -> None:
        await line.part(token() + piece)
        await line.closed_by_peer()

    async with asyncio.timeout(5):
        _, done = await run(say, idle=0.4)
    assert (done.complete, done.failure) == (True, None)


@pytest.mark.parametrize("stopped", [True, False])
async def test_a_deadline_that_comes_after_the_last_reason_to_stop_breaks_nothing(
    stopped: bool, kind: type[FakeExchange]
) -> None:
    """All of the answer had come; only the connection was left open."""

    async def say(line: Line) -> None:
        await line.part(token() + (STOP if stopped else b""))
        await line.closed_by_peer()

    exchange = kind()
    async with upstream(say) as (server, transport):
        until = now() + 0.5
        response = await transport.send(ask(server), within(0.5))
        opened = await open_stream(response, SseDecoder(read_chat), until, now)
        done = await relay(exchange, opened, HEADERS, Pace(20.0, until), now)
    assert (done.complete, done.failure) == ((True, None) if stopped else (False, "deadline"))
    assert exchange.sent.endswith(chat_error("deadline")) is not stopped
