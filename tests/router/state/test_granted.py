"""A grant is its request's, or given back: whenever that ends, and however the call does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from router.state.granted import Granting


class Store:
    """Grants numbers; `open` lets calls end. `back`: what was given back."""

    def __init__(self) -> None:
        self.granting = Granting[int]()
        self.open = asyncio.Event()
        self.back: list[int] = []

    async def call(self, number: int) -> int:
        await self.open.wait()
        if number < 0:
            raise ConnectionError
        return number

    def ask(self, number: int) -> Awaitable[int]:
        return self.granting.ask(self.call(number), self.back.append)


async def test_who_waits_has_it() -> None:
    store = Store()
    store.open.set()
    assert await store.ask(7) == 7
    with pytest.raises(ConnectionError):
        await store.ask(-1)
    await store.granting.close(1.0)
    assert store.back == []


@pytest.mark.parametrize("number", [7, -1])
async def test_who_has_gone_gives_it_back(number: int) -> None:
    store = Store()
    asked = asyncio.ensure_future(store.ask(number))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert store.back == []  # the call goes on: nobody knows yet what it took
    store.open.set()
    await store.granting.close(1.0)
    await asyncio.sleep(0)
    assert store.back == [number] * (number > 0)


async def test_it_is_given_back_where_the_call_ends_in_the_same_moment() -> None:
    store = Store()
    asked = asyncio.ensure_future(store.ask(7))
    await asyncio.sleep(0)
    store.open.set()
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await store.granting.close(1.0)
    await asyncio.sleep(0)
    assert store.back == [7]


async def test_the_end_waits_no_longer_than_it_is_told() -> None:
    store = Store()
    asked = asyncio.ensure_future(store.ask(7))
    await asyncio.sleep(0)
    asked.cancel()
    before = asyncio.get_running_loop().time()
    await store.granting.close(0.05)
    assert asyncio.get_running_loop().time() - before < 1.0
    store.open.set()
    await asyncio.sleep(0.01)
    assert store.back == [7]
