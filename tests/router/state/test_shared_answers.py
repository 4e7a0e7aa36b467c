"""Answers in a real Redis: one run among all processes, and none when it can't be asked."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import cast

import pytest
from redis.asyncio import Redis

from router.state.answers import Answer, Differs, InFlight, Spent, Unavailable
from router.state.shared import Scripts
from router.state.shared_answers import SharedAnswers

WHERE = {"process": ["self:fra1"], "retain": [], "operate": ["DE"]}
HEADERS = ((b"content-type", b"text/plain"), (b"x", b"\xff"))
MADE = Answer("req-1", "fra", WHERE, "a" * 64, 200, HEADERS, b"\x00hi")


def answers(client: object, window: float = 60.0) -> SharedAnswers:
    return SharedAnswers(cast("Scripts", client), window, timeout=5.0)


async def ended(one: SharedAnswers) -> None:
    while one._tasks:
        await asyncio.gather(*one._tasks)


async def test_one_of_many_is_carried_out(redis: Redis) -> None:
    stores = [answers(redis) for _ in range(4)]

    async def begin(number: int) -> bool:
        try:
            return await stores[number % 4].begin("k", "d", str(number), 5) is None
        except InFlight:
            return False

    assert sum(await asyncio.gather(*(begin(n) for n in range(20)))) == 1


async def test_a_request_that_ends_while_it_asks_leaves_the_key_to_the_next(redis: Redis) -> None:
    one = answers(redis)
    for turns in range(1, 9):
        asked = asyncio.create_task(one.begin("k", "d", "gone", 60))
        for _ in range(turns):
            await asyncio.sleep(0)
        if not asked.cancel():
            break
        with pytest.raises(asyncio.CancelledError):
            await asked
        await one._granting.close(5.0)
        await ended(one)
        assert await redis.keys("*") == []


async def test_another_process_gives_the_answer_byte_for_byte(redis: Redis) -> None:
    one, other = answers(redis), answers(redis)
    assert await one.begin("k", "d", "t", 5) is None
    one.keep("k", "t", MADE)
    await ended(one)
    assert await other.begin("k", "d", "t2", 5) == MADE
    with pytest.raises(Differs):
        await other.begin("k", "x", "t3", 5)
    assert 50_000 < await redis.pttl("domicile:once:{k}") <= 60_000


async def test_released_spent_and_another_holders(redis: Redis) -> None:
    one = answers(redis)
    await one.begin("k", "d", "t", 5)
    one.release("k", "stranger")
    await ended(one)
    with pytest.raises(InFlight):
        await one.begin("k", "d", "t2", 5)
    one.release("k", "t")
    await ended(one)
    assert await one.begin("k", "d", "t2", 5) is None
    one.keep("k", "t2", None)
    await ended(one)
    with pytest.raises(Spent):
        await one.begin("k", "d", "t3", 5)


async def test_what_is_on_its_way_is_kept_before_the_end(redis: Redis) -> None:
    """Else its key is another's when the lease is over, and the request runs twice."""
    one = answers(redis)
    await one.begin("k", "d", "t", 5)
    one.keep("k", "t", MADE)
    await one.close()
    assert await redis.hget("domicile:once:{k}", "s") == b"kept"


async def test_a_key_ends_with_its_lease(redis: Redis) -> None:
    one = answers(redis)
    await one.begin("k", "d", "t", 0.05)
    await asyncio.sleep(0.1)
    assert await one.begin("k", "d", "t2", 5) is None


async def test_a_redis_that_is_gone_refuses() -> None:
    client: Redis = Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=0.2)
    one = answers(client)
    with pytest.raises(Unavailable, match="ConnectionError"):
        await one.begin("k", "d", "t", 5)
    one.release("k", "t")  # nobody waits, nothing is raised
    await ended(one)
    await client.aclose()


async def test_an_answer_that_is_none_of_ours_refuses(redis: Redis) -> None:
    await redis.hset("domicile:once:{k}", mapping={"d": "d", "s": "kept", "a": "{"})
    with pytest.raises(Unavailable):
        await answers(redis).begin("k", "d", "t", 5)


async def test_a_key_that_was_taken_too_late_is_no_hostage(redis: Redis) -> None:
    """Nothing ran for it: the client's retry is carried out, not refused for a whole lease."""

    class Late:
        late = 1.0

        async def eval(self, script: str, numkeys: int, *rest: str) -> object:
            done = await redis.eval(script, numkeys, *rest)
            await asyncio.sleep(self.late)
            return done

    late = Late()
    one = SharedAnswers(cast("Scripts", late), 60.0, timeout=0.3)
    with pytest.raises(Unavailable):
        await one.begin("k", "d", "t", 300)
    late.late = 0.0
    await ended(one)
    assert await one.begin("k", "d", "t2", 5) is None


class Away:
    """A Redis that can't be asked while it is `away`."""

    def __init__(self, client: Redis) -> None:
        self.client = client
        self.away = False

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        if self.away:
            raise ConnectionError
        return await self.client.eval(script, numkeys, *rest)


@pytest.mark.parametrize("empty", [False, True])
async def test_what_ended_while_redis_was_away_does_not_run_twice(
    redis: Redis, empty: bool
) -> None:
    away = Away(redis)
    one = SharedAnswers(cast("Scripts", away), 60.0, timeout=5.0, again=0.05)
    assert await one.begin("k", "d", "t", 0.2) is None
    away.away = True
    one.keep("k", "t", MADE)
    await asyncio.sleep(0.3)  # its lease is over, nobody was told
    if empty:
        await redis.flushdb()
    away.away = False
    await ended(one)
    with pytest.raises(Spent):
        await one.begin("k", "d", "t2", 5)
    with pytest.raises(Differs):
        await one.begin("k", "other", "t3", 5)
    assert one._digests == {}


async def test_what_comes_late_takes_nobody_s_key(redis: Redis) -> None:
    away = Away(redis)
    one, other = SharedAnswers(cast("Scripts", away), 60.0, again=0.05), answers(redis)
    assert await one.begin("k", "d", "t", 0.1) is None
    away.away = True
    one.keep("k", "t", MADE)
    await asyncio.sleep(0.2)
    assert await other.begin("k", "d", "t2", 60) is None
    away.away = False
    await ended(one)
    with pytest.raises(InFlight):
        await other.begin("k", "d", "t3", 5)


async def test_an_end_that_can_t_be_written_keeps_no_router_from_ending(redis: Redis) -> None:
    away = Away(redis)
    one = SharedAnswers(cast("Scripts", away), 60.0, timeout=0.05, again=5.0)
    await one.begin("k", "d", "t", 5)
    away.away = True
    one.keep("k", "t", MADE)
    await asyncio.wait_for(one.close(), 2)
    await asyncio.sleep(0)
    assert not [task for task in one._tasks if not task.cancelling()]


class Overtaken(Away):
    """A Redis where a call whose answer nobody waits for is carried out after all later ones."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client)
        self.slow = True
        self.running: list[asyncio.Task[object]] = []

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        if not self.slow:
            return await super().eval(script, numkeys, *rest)
        self.slow = False

        async def carry_out() -> object:
            await asyncio.sleep(0.3)
            return await self.client.eval(script, numkeys, *rest)

        self.running.append(asyncio.create_task(carry_out()))
        return await asyncio.shield(self.running[-1])


async def certain(one: SharedAnswers) -> None:
    assert one._freeing is not None
    await asyncio.wait_for(asyncio.shield(one._freeing), 5)
    assert one._doubts == {}


async def test_a_call_that_is_overtaken_by_what_undoes_it_holds_no_key(redis: Redis) -> None:
    """For a whole lease its client would be told that the first request runs."""
    redis_ = Overtaken(redis)
    one = SharedAnswers(cast("Scripts", redis_), 60.0, timeout=0.1, again=0.4)
    with pytest.raises(Unavailable):
        await one.begin("k", "d", "t", 300)
    await ended(one)
    assert await redis.keys("*") == []
    await asyncio.gather(*redis_.running)
    assert await redis.keys("*") != []  # it came late, for nobody
    await certain(one)
    assert await one.begin("k", "d", "t2", 5) is None
    await one.close()


@pytest.mark.parametrize("began", [False, True])
async def test_a_key_of_a_request_that_did_not_run_is_free_once_redis_is_back(
    redis: Redis, began: bool
) -> None:
    """However long Redis was away: the request was refused, or failed, with nothing carried out."""
    away = Away(redis)
    one, other = SharedAnswers(cast("Scripts", away), 60.0, timeout=0.1, again=0.1), answers(redis)
    if began:
        assert await one.begin("k", "d", "t", 300) is None
        away.away = True
        one.release("k", "t")
    else:
        assert await other.begin("k", "d", "t", 300) is None  # it did arrive
        away.away = True
        with pytest.raises(Unavailable):
            await one.begin("k", "d", "t", 300)
    await ended(one)
    with pytest.raises(InFlight):
        await other.begin("k", "d", "t2", 5)
    away.away = False
    await certain(one)
    assert await other.begin("k", "d", "t2", 5) is None
    await one.close()


async def test_doubts_are_bounded_and_end(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.state.shared_answers.DOUBTS", 5)
    away = Away(redis)
    away.away = True
    one = SharedAnswers(cast("Scripts", away), 60.0, timeout=0.1, again=0.05)
    for number in range(20):
        with pytest.raises(Unavailable):
            await one.begin(f"k{number}", "d", str(number), 0.5)
        assert len(one._doubts) <= 5
    await ended(one)
    await certain(one)
    for number in range(3):
        with pytest.raises(Unavailable):
            await one.begin("k", "d", f"more{number}", 300)
    await one.close()
    await asyncio.sleep(0)
    assert one._freeing is not None
    assert one._freeing.cancelled()


class Nowhere:
    """A Redis that refuses every connection at once; `asked`: when, and for which token."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str]] = []
        self.often = asyncio.Event()

    async def eval(self, script: str, numkeys: int, *rest: str) -> object:
        self.asked.append((asyncio.get_running_loop().time(), rest[1]))
        if len(self.asked) == 8:
            self.often.set()
        raise ConnectionError


async def test_a_redis_that_is_away_is_asked_for_a_few_doubts_at_a_time_each_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten thousand of them were tried one after the other, without a pause, while it was away."""
    monkeypatch.setattr("router.state.shared_answers.AT_ONCE", 2)
    nowhere = Nowhere()
    one = SharedAnswers(cast("Scripts", nowhere), 60.0, timeout=1.0, again=0.05)
    tokens = [str(number) for number in range(6)]
    for token in tokens:
        one._doubt("k" + token, token, 300)
    await asyncio.wait_for(nowhere.often.wait(), 10)
    await one.close()
    assert [token for _, token in nowhere.asked[:8]] == [*tokens, *tokens[:2]]
    at = [when for when, _ in nowhere.asked[:8:2]]
    assert all(after - before > 0.04 for before, after in pairwise(at))
