"""An exchange in front of another: everything passes, and a body's bytes are seen as they go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from hashlib import sha256

from router.inbound.exchange import Exchange, Headers, RequestHead


class Passed:
    """See `Exchange`. What it is for is told by `seen`."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def seen(self, data: bytes) -> None:
        """Bytes of the answer's body, before they go on."""

    @property
    def head(self) -> RequestHead:
        """See `Exchange`."""
        return self._exchange.head

    @property
    def gone(self) -> bool:
        """See `Exchange`."""
        return self._exchange.gone

    @property
    def started(self) -> bool:
        """See `Exchange`."""
        return self._exchange.started

    def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """See `Exchange`."""
        return self._exchange.chunks(limit)

    async def body(self, limit: int) -> bytes:
        """See `Exchange`."""
        return await self._exchange.body(limit)

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """See `Exchange`."""
        return self._exchange.on_gone(callback)

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        await self._exchange.start(status, headers)

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        self.seen(data)
        await self._exchange.write(data)

    async def end(self, data: bytes = b"") -> None:
        """See `Exchange`."""
        self.seen(data)
        await self._exchange.end(data)


class Digested(Passed):
    """Keeps the SHA-256 of the body that the client is given, streamed or whole."""

    __slots__ = ("_hash",)

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._hash = sha256()

    def seen(self, data: bytes) -> None:
        """See `Passed`."""
        self._hash.update(data)

    def digest(self) -> bytes:
        """32 bytes, of what went on so far."""
        return self._hash.digest()
