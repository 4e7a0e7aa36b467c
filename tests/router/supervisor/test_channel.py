"""The channel between a supervisor and a worker: questions both ways, and what its end tells."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from router.errors import RequestError
from router.supervisor.channel import Answering, Channel, Gone, over


async def nothing(message: object) -> object:
    raise AssertionError(message)


@asynccontextmanager
async def pair(one: Answering = nothing, two: Answering = nothing) -> AsyncIterator[list[Channel]]:
    channels = [
        await over(side, answer)
        for side, answer in zip(socket.socketpair(), (one, two), strict=True)
    ]
    running = [asyncio.create_task(channel.run()) for channel in channels]
    try:
        yield channels
    finally:
        for channel in channels:
            channel.close()
        await asyncio.gather(*running)


async def doubled(message: object) -> object:
    assert isinstance(message, int)
    await asyncio.sleep(0.02 if message < 5 else 0)
    return message * 2


async def test_both_sides_ask_and_answers_come_in_any_order() -> None:
    async with pair(doubled, doubled) as (one, two):
        asked = [one.ask(number, int) for number in range(10)]
        asked += [two.ask(number, int) for number in range(10)]
        assert await asyncio.gather(*asked) == [n * 2 for n in range(10)] * 2


async def test_a_large_message_is_whole() -> None:
    async def echo(message: object) -> object:
        return message

    large = b"x" * (8 << 20)
    async with pair(two=echo) as (one, _):
        assert await one.ask(large, bytes) == large


async def test_a_refusal_keeps_its_code_and_any_other_error_its_words() -> None:
    async def refuse(message: object) -> object:
        if message == "typed":
            raise RequestError("log_unavailable", "the disk is full", retry_after=5.0)
        raise ZeroDivisionError("by nought")

    async with pair(two=refuse) as (one, _):
        with pytest.raises(RequestError) as typed:
            await one.ask("typed", str)
        assert (typed.value.code, typed.value.retry_after) == ("log_unavailable", 5.0)
        with pytest.raises(RequestError, match="ZeroDivisionError: by nought"):
            await one.ask("other", str)


async def test_an_answer_of_another_kind_is_none() -> None:
    async with pair(two=doubled) as (one, _):
        with pytest.raises(TypeError, match="`int` was answered with int"):
            await one.ask(7, str)


async def test_whoever_waits_hears_of_the_end() -> None:
    waiting = asyncio.Event()

    async def never(message: object) -> object:
        waiting.set()
        return await asyncio.Event().wait()

    async with pair(two=never) as (one, two):
        asked = asyncio.create_task(one.ask("x", str))
        await waiting.wait()
        two.close()
        with pytest.raises(Gone, match="ended"):
            await asked
        with pytest.raises(Gone, match="nobody is there"):
            await one.ask("x", str)


async def test_patience_ends() -> None:
    async def slow(message: object) -> object:
        await asyncio.sleep(0.1)
        return "late"

    async with pair(two=slow) as (one, _):
        with pytest.raises(Gone, match="no answer to `str`"):
            await one.ask("x", str, 0.01)
        await asyncio.sleep(0.15)  # what comes late harms nothing
        assert await one.ask("x", str) == "late"
