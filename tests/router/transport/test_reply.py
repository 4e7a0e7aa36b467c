"""An answer on its way: time limits, giving up, and a slow reader."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from router.transport.client import HttpTransport
from router.transport.connection import Connection
from router.transport.messages import (
    Aborted,
    AnswerTimeout,
    ConnectionLost,
    Fate,
    TransportError,
)
from router.transport.reply import Reply
from tests.garbage import let_go
from tests.rawserver import (
    Line,
    RawServer,
    Script,
    ask,
    hang,
    now,
    served,
    settled,
    whole,
    within,
)


async def one_chunk(line: Line) -> None:
    """A head, a chunk, and silence."""
    await line.request()
    await line.stream_head()
    await line.part(b"one")
    await line.closed_by_peer()


async def test_an_endpoint_that_reads_nothing_times_out_as_partly_sent() -> None:
    async def script(line: Line) -> None:
        await asyncio.sleep(5)

    async with served(script) as (server, transport):
        with pytest.raises(AnswerTimeout) as caught:
            await transport.send(ask(server, b"x" * 30_000_000), within(5, first_byte=0.1))
        assert caught.value.fate is Fate.PARTLY_SENT


@pytest.mark.parametrize("limit", ["first_byte", "deadline"])
async def test_a_silent_endpoint_is_left_in_time(limit: str) -> None:
    async with served(hang) as (server, transport):
        began = now()
        times = within(0.2) if limit == "deadline" else within(9, first_byte=0.2)
        with pytest.raises(AnswerTimeout) as caught:
            await transport.send(ask(server), times)
        assert caught.value.fate is Fate.UNKNOWN
        assert 0.15 < now() - began < 1
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
        await settled(transport, 0)


async def test_a_stall_within_an_answer_is_found() -> None:
    async with served(one_chunk) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert await response.chunk(now() + 5) == b"one"
        with pytest.raises(AnswerTimeout):
            await response.chunk(now() + 0.1)
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_an_unread_answer_does_not_outlive_its_deadline() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        await transport.send(ask(server), within(0.2))
        await asyncio.wait_for(server.lines[0].gone.wait(), 2)
        await settled(transport, 0)


async def test_cancelling_a_send_closes_the_connection() -> None:
    async with served(hang) as (server, transport):
        task = asyncio.create_task(transport.send(ask(server), within(60)))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
        await settled(transport, 0)


async def test_abort_closes_the_connection_at_once() -> None:
    async with served(one_chunk) as (server, transport):
        response = await transport.send(ask(server), within(60))
        waiting = asyncio.create_task(response.chunk(now() + 60))
        assert await waiting == b"one"
        waiting = asyncio.create_task(response.chunk(now() + 60))
        await asyncio.sleep(0.02)
        response.abort()
        response.abort()
        with pytest.raises(Aborted):
            await waiting
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_a_slow_reader_holds_the_endpoint_back() -> None:
    sent = 0

    async def script(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(400):
            await line.say(b"w" * 100_000)
            sent += 100_000

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(30))
        await asyncio.sleep(0.3)
        assert sent < 20_000_000
        assert len(await whole(response, 20)) == 40_000_000


async def test_bytes_pushed_come_in_order_and_the_end_is_told() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        for part in (b"one", b"two", b"three", b""):
            await line.part(part)
            await asyncio.sleep(0.01)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(5))
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            return b"two" not in data

        assert not await response.push(take, 5, now)
        assert b"".join(taken) == b"onetwo"
        assert await response.push(take, 5, now)
        assert b"".join(taken) == b"onetwothree"
        assert await response.push(take, 5, now)


async def test_what_a_taker_raises_is_its_callers() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await asyncio.sleep(0.01)
        await line.part(b"one")
        await line.closed_by_peer()

    def take(data: bytes) -> bool:
        raise ValueError(data)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(5))
        with pytest.raises(ValueError, match="one"):
            await response.push(take, 5, now)
        response.abort()


async def test_silence_while_pushing_is_found_and_every_byte_puts_it_off() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        for _ in range(4):
            await asyncio.sleep(0.15)
            await line.part(b"x")
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(9))
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            return True

        began = now()
        with pytest.raises(AnswerTimeout):
            await response.push(take, 0.4, now)
        assert b"".join(taken) == b"xxxx"
        assert now() - began > 0.9


async def test_a_taker_that_stops_late_is_not_taken_for_a_silent_endpoint() -> None:
    """The sweeper may look between the last byte taken and the turn of who waits for it."""

    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        for part in (b"one", b"two", b"three", b""):
            await asyncio.sleep(0.1)
            await line.part(part)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(9))
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            if data == b"two":
                time.sleep(0.3)
            return data != b"two"

        assert not await response.push(take, 0.4, now)
        await asyncio.sleep(0.6)
        assert await response.push(take, 0.4, now)
        assert b"".join(taken) == b"onetwothree"


async def test_cancelling_a_push_closes_the_connection() -> None:
    async with served(one_chunk) as (server, transport):
        response = await transport.send(ask(server), within(9))
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            return True

        pushing = asyncio.create_task(response.push(take, 60, now))
        await asyncio.sleep(0.05)
        pushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pushing
        assert taken == [b"one"]
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def cut_within(line: Line) -> None:
    """A head, a chunk, and the end of the connection."""
    await line.request()
    await line.stream_head()
    await line.part(b"one")
    line.writer.close()


@pytest.mark.parametrize(
    ("script", "how"),
    [(hang, "read"), (cut_within, "read"), (cut_within, "pushed"), (cut_within, "refused")],
)
async def test_who_failed_is_kept_by_nothing(script: Script, how: str) -> None:
    """An error holds the frames that it came through, and they the answer that keeps it."""

    def take(data: bytes) -> bool:
        if how == "refused":
            raise ValueError("garbled")
        return True

    async def fail(transport: HttpTransport, server: RawServer) -> None:
        response = await transport.send(ask(server), within(5, first_byte=0.1))
        if how == "read":
            await whole(response)
        else:
            await response.push(take, 0.1, now)

    async with served(script) as (server, transport), let_go(Reply, Connection):
        for _ in range(3):
            with suppress(TransportError, ValueError):
                await fail(transport, server)
                raise AssertionError("it must fail")


async def test_an_error_is_told_again_as_it_was() -> None:
    async with served(cut_within) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert await response.chunk(now() + 5) == b"one"
        told = []
        for _ in range(2):
            with pytest.raises(ConnectionLost) as caught:
                await response.chunk(now() + 5)
            told.append(caught.value)
        first, second = told
        assert first is not second
        assert (str(first), first.fate, first.stale) == (str(second), second.fate, second.stale)
