"""One answer on its way in: what the reader has not taken yet, and how it ended.

It is apart from its connection, so that a connection may carry the next request while the last
reader still has bytes to take: answers can't cross.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from router.transport.messages import (
    Aborted,
    AnswerTimeout,
    Clock,
    Fate,
    Headers,
    Pushing,
    TransportError,
)

# A reader this far behind stops its endpoint; it starts again when half is taken.
HIGH_WATER = 256 * 1024


class Line(Protocol):
    """What a reply asks of its connection."""

    def pause(self) -> None:
        """Stop reading from the endpoint."""
        ...

    def resume(self) -> None:
        """Read on."""
        ...

    def cut(self) -> None:
        """Close at once, without waiting for anything."""
        ...

    def fate(self) -> Fate:
        """How far the request got."""
        ...


class Watch(Protocol):
    """What a reply asks of the sweeper."""

    def nudge(self, expires: float) -> None:
        """Somebody waits until `expires` (loop time)."""
        ...

    def forget(self, reply: Reply) -> None:
        """This reply has ended."""
        ...


class Reply(Pushing):
    """The transport's `OutboundResponse`. One reader at a time.

    Attributes:
        expires: loop time at which the sweeper looks at it; `inf` between reads, but never later
            than the deadline.
    """

    __slots__ = (
        "_broke",
        "_clock",
        "_deadline",
        "_done",
        "_error",
        "_heard",
        "_heard_before",
        "_idle",
        "_line",
        "_more",
        "_parts",
        "_paused",
        "_size",
        "_take",
        "_waiter",
        "_watch",
        "expires",
        "headers",
        "status",
    )

    def __init__(self, line: Line, deadline: float, first_by: float, watch: Watch) -> None:
        self.status: int = 0
        self.headers: Headers = ()
        self.expires = min(deadline, first_by)
        self._line = line
        self._deadline = deadline
        self._watch = watch
        self._parts: list[bytes] = []
        self._size = 0
        self._done = False
        self._paused = False
        self._error: TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._take: Callable[[bytes], bool] | None = None
        self._more = False
        self._broke: Exception | None = None
        self._idle = 0.0
        self._heard = self._heard_before = 0.0
        self._clock: Clock = float

    # reader's side

    async def head(self) -> None:
        """Wait for status and headers. Raises TransportError."""
        first_by = self.expires
        while not self.status:
            await self._wait(first_by)
        self.expires = self._deadline

    async def chunk(self, until: float) -> bytes:
        """See `OutboundResponse.chunk`."""
        while not self._parts:
            if self._done and self._error is None:
                return b""
            await self._wait(until)
        parts = self._parts
        taken = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self._size = 0
        if self._paused:
            self._paused = False
            self._line.resume()
        return taken

    async def _wait(self, until: float) -> None:
        if self._error is not None:
            raise self._error.again()
        self.expires = expires = min(until, self._deadline)
        self._watch.nudge(expires)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._waiter = None
            self.expires = self._deadline

    async def push(self, take: Callable[[bytes], bool], idle: float, clock: Clock) -> bool:
        """See `Pushing`."""
        if self._parts and not take(await self.chunk(clock() + idle)):
            return False
        self._more, self._broke = True, None
        self._idle, self._clock, self._take = idle, clock, take
        try:
            while self._more and not self._done:
                self._heard = clock()
                await self._wait(self._heard + idle)
        finally:
            self._take = None
        if self._broke is not None:
            raise self._taken(self._broke)
        if self._error is not None and self._more:
            raise self._error.again()
        return self._more

    def unheard(self) -> None:
        """See `Pushing`."""
        self._heard = self._heard_before

    def _taken(self, broke: Exception) -> Exception:
        """What the reader's own `take` raised; not kept, see `AttemptFailed.again`."""
        self._broke = None
        return broke

    def abort(self) -> None:
        """See `OutboundResponse.abort`."""
        self._parts = []
        given_up = Aborted("the answer was given up", Fate.UNKNOWN)
        if not self._done:
            self.fail(given_up)
            self._line.cut()
        elif self._error is None:
            # Its connection may carry another request already; what was not read is gone.
            self._error = given_up

    # connection's side

    @property
    def done(self) -> bool:
        """Whether the connection has nothing more to give to it."""
        return self._done

    def open(self, status: int, headers: Headers) -> None:
        """The head has come."""
        self.status = status
        self.headers = headers
        if self._waiter is not None:
            self._wake()

    def feed(self, data: bytes) -> None:
        """Bytes of the body have come."""
        take = self._take
        if take is not None:
            # Only noted: the sweeper works out what it puts off, once for many.
            self._heard_before, self._heard = self._heard, self._clock()
            try:
                if take(data):
                    return
            except Exception as error:  # noqa: BLE001 - the reader's own, raised to it
                self._broke = error
            self._more = False
            self._take = None
            self.expires = self._deadline
            self._wake()
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER and not self._paused:
            self._paused = True
            self._line.pause()
        if self._waiter is not None:
            self._wake()

    def finish(self) -> None:
        """The body ended cleanly."""
        self._done = True
        self._paused = False
        self._watch.forget(self)
        if self._waiter is not None:
            self._wake()

    def fail(self, error: TransportError) -> None:
        """It ended with an error; what came before can still be read."""
        if not self._done:
            self._done = True
            self._error = error
            self._watch.forget(self)
            self._wake()

    def expire(self) -> None:
        """Its time is over, says the sweeper; unless bytes were pushed meanwhile."""
        if self._take is not None:
            expires = min(self._heard + self._idle, self._deadline)
            if expires > self.expires:
                self.expires = expires
                return
        if not self._done:
            what = "no answer" if not self.status else "no more of the answer"
            fate = self._line.fate()
            error = AnswerTimeout(f"{what} came in time", fate)
            error.hurried = self.expires >= self._deadline
            self.fail(error)
            self._line.cut()

    def _wake(self) -> None:
        # Once: what else comes in the same read finds nobody to wake.
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
