"""A client of Redis whose connections are made apart from any request's short wait.

A request waits 25 ms for its reply. To connect, greet, and learn a cluster's slots takes longer on
a busy machine or over a distance; broken off with its request and begun anew by the next one, it
would never come to an end. So it is done once for all who wait, and goes on when they have gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from router.state.shared import Scripts

PATIENCE: Final = 10.0
"""Seconds for a connection, and what is asked before it can be used: nobody waits so long."""


class Ready:
    """See `Scripts`.

    Args:
        client: what is asked.
        connect: connects it; once again after each call that failed or was broken off.
    """

    def __init__(self, client: Scripts, connect: Callable[[], Awaitable[object]]) -> None:
        self._client = client
        self._connect = connect
        self._connecting: asyncio.Future[None] | None = None
        self._well = False

    async def eval(self, script: str, numkeys: int, *keys_and_args: str) -> object:
        """See `Scripts`."""
        return await self._asked(lambda: self._client.eval(script, numkeys, *keys_and_args))

    async def zrem(self, name: str, *values: str) -> object:
        """See `Scripts`."""
        return await self._asked(lambda: self._client.zrem(name, *values))

    async def _asked(self, call: Callable[[], Awaitable[object]]) -> object:
        if not self._well:
            await self._connected()
        try:
            return await call()
        except BaseException:
            self._well = False
            raise

    async def _connected(self) -> None:
        known = self._connecting
        if known is None or known.done():
            known = self._connecting = asyncio.ensure_future(self._connects())
            known.add_done_callback(_looked_at)
        await asyncio.shield(known)

    async def _connects(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._connect()
        self._well = True


def _looked_at(done: asyncio.Future[None]) -> None:
    """Whoever waited has heard of its failure; perhaps nobody does any more."""
    if not done.cancelled():
        done.exception()
