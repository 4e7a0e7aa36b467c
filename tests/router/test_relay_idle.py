"""What keeps a stream from being idle: pieces of its answer, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from router.relay import chat_error
from tests.exchanges import FakeExchange, PromptExchange
from tests.rawserver import Line
from tests.router.test_relay import DONE, STOP, run, token


@pytest.fixture(params=[FakeExchange, PromptExchange], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds for both ways: chunk by chunk, and in the turn in which they come."""
    monkeypatch.setattr("tests.router.test_relay.FakeExchange", request.param)


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
