"""Answers kept in one process: bounded, and never forgotten before their time."""

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest

from router.state.answers import (
    Answer,
    Differs,
    InFlight,
    MemoryAnswers,
    NoAnswers,
    Spent,
    Unavailable,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def made(body: bytes = b"hello") -> Answer:
    return Answer("req-1", "fra", {}, "", 200, ((b"content-type", b"text/plain"),), body)


def store(clock: Clock, most: int = 10, size: int = 100) -> MemoryAnswers:
    return MemoryAnswers(clock, 60.0, most, size)


async def test_a_key_is_open_then_answered_then_forgotten() -> None:
    clock = Clock()
    one = store(clock)
    assert await one.begin("k", "d", "t", 5) is None
    with pytest.raises(InFlight):
        await one.begin("k", "d", "t2", 5)
    one.keep("k", "t", made())
    assert await one.begin("k", "d", "t3", 5) == made()
    with pytest.raises(Differs):
        await one.begin("k", "other", "t4", 5)
    clock.now = 60.1
    assert await one.begin("k", "other", "t5", 5) is None


async def test_a_released_key_is_free_and_only_its_holder_releases_it() -> None:
    one = store(Clock())
    await one.begin("k", "d", "t", 5)
    one.release("k", "somebody else")
    one.keep("k", "somebody else", made())
    with pytest.raises(InFlight):
        await one.begin("k", "d", "t2", 5)
    one.release("k", "t")
    assert await one.begin("k", "d", "t2", 5) is None


async def test_a_holder_that_died_frees_it_by_its_lease() -> None:
    clock = Clock()
    one = store(clock)
    await one.begin("k", "d", "t", 5)
    clock.now = 5.1
    assert await one.begin("k", "d", "t2", 5) is None
    one.keep("k", "t", made())  # too late: it is another's
    with pytest.raises(InFlight):
        await one.begin("k", "d", "t3", 5)


async def test_old_answers_lose_their_bytes_and_not_their_keys() -> None:
    one = store(Clock(), size=100)
    for name in "abc":
        await one.begin(name, "d", name, 5)
        one.keep(name, name, made(b"x" * 45))
    with pytest.raises(Spent):
        await one.begin("a", "d", "t", 5)
    assert await one.begin("b", "d", "t", 5) == made(b"x" * 45)
    assert await one.begin("c", "d", "t", 5) == made(b"x" * 45)


async def test_whoever_keeps_most_loses_answers_first() -> None:
    one = store(Clock(), most=1000, size=100)
    await one.begin("mine", "d", "t", 5, "clinic")
    one.keep("mine", "t", made(b"x" * 45))
    for number in range(50):
        await one.begin(str(number), "d", "t", 5, "hog")
        one.keep(str(number), "t", made(b"y" * 30))
        assert one._kept == sum(one._sizes.values()) <= 100
    assert await one.begin("mine", "d", "t", 5, "clinic") == made(b"x" * 45)
    assert await one.begin("49", "d", "t", 5, "hog") == made(b"y" * 30)
    with pytest.raises(Spent):
        await one.begin("47", "d", "t", 5, "hog")
    # An answer without a byte counts for nothing, and goes with its key.
    await one.begin("empty", "d", "t", 5, "late")
    one.keep("empty", "t", made(b""))
    assert one._kept == 75


async def test_too_many_keys_are_refused_until_some_end() -> None:
    clock = Clock()
    one = store(clock, most=2)
    await one.begin("a", "d", "a", 5)
    await one.begin("b", "d", "b", 50)
    with pytest.raises(Unavailable, match="2 idempotency keys"):
        await one.begin("c", "d", "c", 5)
    clock.now = 6
    assert await one.begin("c", "d", "c", 5) is None


async def test_whoever_takes_all_it_can_leaves_room_for_others() -> None:
    clock = Clock()
    one = store(clock, most=90)

    async def taken(owner: str) -> int:
        for number in range(200):
            try:
                await one.begin(f"{owner}{number}", "d", owner, 5, owner)
            except Unavailable:
                return number
        return 200

    assert [await taken(owner) for owner in ("hog", "another", "late")] == [72, 15, 3]
    assert len(one._held) == 90
    for number in range(50):
        one.release(f"hog{number}", "hog")
    assert await one.begin("fourth", "d", "t", 5, "fourth") is None
    clock.now = 6
    await one.begin("last", "d", "t", 5, "hog")
    assert sum(one._owned.values()) == len(one._held)


async def test_what_never_ended_is_no_longer_its_owners_part() -> None:
    clock = Clock()
    one = store(clock, most=10)
    for number in range(8):
        await one.begin(str(number), "d", "t", 5, "hog")
    with pytest.raises(Unavailable, match="8 idempotency keys are in use, and 2 left"):
        await one.begin("more", "d", "t", 5, "hog")
    clock.now = 6
    assert await one.begin("more", "d", "t", 5, "hog") is None


async def test_what_is_counted_stays_right() -> None:
    clock = Clock()
    one = store(clock, size=1000)
    for turn in range(5):
        await one.begin("k", "d", str(turn), 5)
        one.keep("k", str(turn), made(b"x" * 45))
        assert one._kept == 45
        clock.now += 61


async def test_nothing_is_kept_where_nothing_is_shared() -> None:
    one = NoAnswers()
    with pytest.raises(Unavailable, match=r"state\.redis"):
        await one.begin("k", "d", "t", 5)
    one.keep("k", "t", None)
    one.release("k", "t")


async def test_a_request_costs_no_more_where_many_keys_are_kept() -> None:
    clock = Clock()
    one, took = store(clock, most=20_000, size=8_000), list[float]()
    for number in range(16_000):
        if number % 1000 == 0:
            took.append(process_time())
        await one.begin(str(number), "d", "t", 5)
        one.keep(str(number), "t", made(b"x"))
    took = [later - before for before, later in pairwise([*took, process_time()])]
    assert min(took[-4:]) < 12 * min(took[:4])
    began = process_time()
    for _ in range(1000):
        with pytest.raises(Unavailable):
            await one.begin("one more", "d", "t", 5)
    assert process_time() - began < 12 * min(took[:4])
    clock.now = 60.1
    assert await one.begin("one more", "d", "t", 5) is None
    assert (len(one._held), one._kept) == (1, 0)
