"""A request that the router makes itself, and its answer, kept in memory: an `Exchange`.

No client waits for it and no byte of it is written anywhere; it walks the same twelve steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from router.inbound.exchange import Headers, RequestHead

LIMIT: Final = 1 << 20
"""Bytes of an answer that are kept; a longer one counts as none."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back: status, headers by lower-case name, and the body."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class InwardExchange:
    """See `router.inbound.exchange.Exchange`; nobody leaves it before the answer is there."""

    __slots__ = ("_answer", "_body", "_headers", "_size", "_status", "head")

    def __init__(self, path: str, headers: Headers, body: bytes) -> None:
        self.head = RequestHead("POST", path, b"", headers)
        self._body = body
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._answer: list[bytes] = []
        self._size = 0

    @property
    def gone(self) -> bool:
        """Never."""
        return False

    @property
    def started(self) -> bool:
        """See `Exchange`."""
        return self._status != 0

    @property
    def answered(self) -> Answered | None:
        """The whole answer; `None` before it has begun, or when it is above LIMIT."""
        if not self._status or self._size > LIMIT:
            return None
        return Answered(self._status, self._headers, b"".join(self._answer))

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """See `Exchange`; the body was below the limit when it came."""
        yield self._body

    async def body(self, limit: int) -> bytes:
        """See `Exchange`."""
        return self._body

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """Nothing is ever called."""
        return None

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        self._status = status
        self._headers = dict(headers)

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        self._size += len(data)
        if self._size <= LIMIT:
            self._answer.append(data)

    async def end(self, data: bytes = b"") -> None:
        """See `Exchange`."""
        await self.write(data)
