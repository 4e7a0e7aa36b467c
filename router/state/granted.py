"""What a call to Redis grants is its request's, or given back where that has gone meanwhile.

A call that is broken off may have been carried out, and nobody would know what it took. So it goes
on by itself when its request ends, for as long as it may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

T = TypeVar("T")


class Granting(Generic[T]):
    """Calls of one store that take something for a request."""

    def __init__(self) -> None:
        self._left: set[asyncio.Future[T]] = set()

    async def ask(self, call: Coroutine[object, object, T], give_back: Callable[[T], None]) -> T:
        """What a call gives.

        Args:
            give_back: gets it instead where the request is cancelled first; is not called where
                the call raises, for then nothing was granted.
        """
        asked = asyncio.ensure_future(call)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            self._left.add(asked)
            asked.add_done_callback(lambda _: self._ended(asked, give_back))
            raise

    def _ended(self, asked: asyncio.Future[T], give_back: Callable[[T], None]) -> None:
        self._left.discard(asked)
        if not asked.cancelled() and asked.exception() is None:
            give_back(asked.result())

    async def close(self, patience: float) -> None:
        """Wait for what is on its way, so many seconds at most."""
        if self._left:
            await asyncio.wait(self._left, timeout=patience)
