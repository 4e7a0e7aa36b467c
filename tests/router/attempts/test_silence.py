"""Silence is measured against what is usual, and ended on request."""

from __future__ import annotations

import asyncio

import pytest

from router.attempts.silence import ENOUGH, KEPT, LEAST, UNKNOWN, Patience, Silence
from router.transport.messages import AnswerTimeout, Fate


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def heard(silence: Silence, clock: Clock, seconds: float, stream: bool = True) -> None:
    with Patience(silence, "a", stream, clock()):
        clock.now += seconds


async def test_what_is_usual_is_the_99th_percentile_of_the_last() -> None:
    clock = Clock()
    silence = Silence(clock)
    for number in range(ENOUGH):
        assert silence.usual("a", True) == UNKNOWN
        await heard(silence, clock, 1 + number / 10)
    assert silence.usual("a", True) == pytest.approx(1.4)
    for _ in range(KEPT):
        await heard(silence, clock, 0.5)
    assert silence.usual("a", True) == pytest.approx(0.5)
    assert silence.usual("a", False) == UNKNOWN
    assert silence.quickest("a") == pytest.approx(0.5)


async def test_a_failed_attempt_teaches_nothing() -> None:
    clock = Clock()
    silence = Silence(clock)
    for _ in range(ENOUGH):
        with pytest.raises(ValueError, match="no"), Patience(silence, "a", True, clock()):
            raise ValueError("no")
    assert silence.usual("a", True) == UNKNOWN
    assert silence.heard("a") == float("-inf")


async def test_who_waits_longer_than_usual_is_suspected_until_content_comes() -> None:
    clock = Clock()
    silence = Silence(clock)
    for _ in range(ENOUGH):
        await heard(silence, clock, 0.0)
    with Patience(silence, "a", True, clock()):
        clock.now += LEAST + 0.1
        assert list(silence.suspects(0.2)) == []
        clock.now += 0.2
        assert list(silence.suspects(0.2)) == ["a"]
        await heard(silence, clock, 0.0)
        assert list(silence.suspects(0.2)) == []
    assert list(silence.suspects(0.0)) == []


async def test_a_long_prompt_explains_silence_for_so_long_and_no_longer() -> None:
    """Not even where another as long has just come: an engine that stands still would else be
    suspected of nothing as long as clients go on asking."""
    clock = Clock()
    silence = Silence(clock)
    for _ in range(ENOUGH):
        await heard(silence, clock, 0.0)

    def pace(_: str) -> float:
        return 0.001

    with Patience(silence, "a", True, clock(), 20_000):
        clock.now += 19
        assert list(silence.suspects(0.2)) == ["a"]
        assert list(silence.suspects(0.2, pace)) == []
        with Patience(silence, "a", True, clock(), 20_000), Patience(silence, "a", False, clock()):
            assert silence.computes("a", pace("a"))
            clock.now += 2
            assert not silence.computes("a", pace("a"))
            assert list(silence.suspects(0.2, pace)) == ["a"]
    assert not silence.computes("a", pace("a"))


async def test_ending_the_wait_is_a_timeout_of_unknown_fate() -> None:
    clock = asyncio.get_running_loop().time
    silence = Silence(clock)

    async def attempt() -> None:
        with Patience(silence, "a", True, clock()):
            await asyncio.sleep(30)

    tasks = [asyncio.create_task(attempt()) for _ in range(3)]
    await asyncio.sleep(0)
    assert silence.end("b") == 0
    assert silence.end("a") == 3
    for task in tasks:
        with pytest.raises(AnswerTimeout) as error:
            await task
        assert error.value.fate is Fate.UNKNOWN
    assert silence.end("a") == 0


async def test_a_cancellation_of_somebody_else_stays_one() -> None:
    clock = asyncio.get_running_loop().time
    silence = Silence(clock)

    async def attempt() -> None:
        with Patience(silence, "a", True, clock()):
            await asyncio.sleep(30)

    task = asyncio.create_task(attempt())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_is_gone_is_forgotten() -> None:
    clock = Clock()
    silence = Silence(clock)
    for _ in range(ENOUGH):
        await heard(silence, clock, 0.0)
    silence.forget(frozenset())
    assert silence.usual("a", True) == UNKNOWN
    assert silence.heard("a") == float("-inf")
