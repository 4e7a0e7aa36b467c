"""The connections to one origin: a limit, a queue in order of arrival, and no old ones."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from router.transport.connection import Connection
from router.transport.messages import ConnectFailed

_SPREAD = 32

Dial = Callable[[Callable[[socket.socket], Connection], float], Awaitable[Connection]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one pool: connections open at once, seconds of idleness, bytes of an answer's head.

    `keep_alive` stays below the servers' usual limits (5 s in uvicorn and node), so that the
    endpoint is not the one to close first. After `age` seconds none gets another request: under
    steady load it is never idle, and would lead to where its name led when it was opened for as
    long as the router lives.
    """

    connections: int
    keep_alive: float
    head: int
    age: float = 300.0


class Pool:
    """Lends connections out. Every taken one comes back through its own callbacks.

    Args:
        dial: opens one connection made by a factory, by a loop time.
        clock: loop time, seconds.
        nudge: asks for `expire` by a loop time.
        limits: see `Limits`; further requests wait in order.
    """

    def __init__(
        self,
        dial: Dial,
        clock: Callable[[], float],
        nudge: Callable[[float], None],
        limits: Limits,
    ) -> None:
        self.open = 0
        self.created = 0
        self.draining = False
        self.used = clock()
        self._shut = False
        self._dial = dial
        self._clock = clock
        self._nudge = nudge
        self._limits = limits
        self._lent: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()

    @property
    def idle(self) -> int:
        """Connections that wait for a request."""
        return len(self._idle)

    def take(self, now: float) -> Connection | None:
        """The youngest usable idle connection at a loop time. While requests wait there is none."""
        self.used = now
        while self._idle:
            connection = self._idle.pop()
            if self._fresh(connection, now) and connection.usable():
                return connection
            connection.close()
        return None

    async def connect(self, connect: float, deadline: float) -> Connection:
        """A new connection, or one that gets free first. Raises ConnectFailed.

        `connect` is seconds for opening one, `deadline` loop time for everything.
        """
        if self.open >= self._limits.connections:
            got = await self._queue(deadline)
            if got is not None:
                if got.usable():
                    return got
                got.close()
                return await self.connect(connect, deadline)
        else:
            self.open += 1
        try:
            return await self._open(min(deadline, self._clock() + connect))
        except ConnectFailed as error:
            error.hurried = error.reason == "timeout" and self._clock() >= deadline
            raise

    async def _open(self, until: float) -> Connection:
        """The place is counted already; give it back if nothing comes of it."""
        try:
            connection = await self._dial(self._make, until)
        except BaseException:
            self._give_place()
            raise
        if self._shut:
            self._give_place()
            connection.cut()
            raise _closed()
        if connection.lost:
            self._give_place()
            raise ConnectFailed("the endpoint closed a new connection at once", "refused")
        self._lent.add(connection)
        # Those that are opened together end one after the other.
        spread = 1 - self.created % _SPREAD / (4 * _SPREAD)
        connection.until = self._clock() + self._limits.age * spread
        self.created += 1
        return connection

    def _make(self, sock: socket.socket) -> Connection:
        return Connection(sock, self.release, self._lost, self._limits.head)

    async def _queue(self, deadline: float) -> Connection | None:
        """Wait in order: a connection, or None for the right to open one."""
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                return await waiter
        except BaseException as error:
            self._leave(waiter)
            if isinstance(error, TimeoutError):
                full = ConnectFailed("no connection got free in time", "full")
                full.hurried = True
                raise full from error
            raise

    def _leave(self, waiter: asyncio.Future[Connection | None]) -> None:
        """Leaving the queue passes on what was already handed over."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            got = waiter.result()
            if got is None:
                self._give_place()
            else:
                self.release(got)

    def release(self, connection: Connection) -> None:
        """A connection whose answer has ended."""
        now = connection.idle_since = self._clock()
        if self.draining or not self._fresh(connection, now):
            connection.close()
            return
        if self._waiters and (waiter := self._next()) is not None:
            waiter.set_result(connection)
            return
        if not self._idle:  # else the sweeper comes for an older one, and looks at all
            self._nudge(now + self._limits.keep_alive)
        self._idle.append(connection)

    def _fresh(self, connection: Connection, now: float) -> bool:
        # A server that names its limit gets a second's margin.
        idle = now - connection.idle_since
        kept = idle < self._limits.keep_alive and idle < connection.keep_alive_for - 1.0
        return kept and now < connection.until

    def _next(self) -> asyncio.Future[Connection | None] | None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def _lost(self, connection: Connection) -> None:
        # One that was given up while it was being opened never had a place of its own.
        if connection not in self._lent:
            return
        self._lent.remove(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._give_place()

    def _give_place(self) -> None:
        waiter = self._next()
        if waiter is not None:
            waiter.set_result(None)
        else:
            self.open -= 1

    def expire(self, now: float) -> float:
        """Close idle connections that are too old; the loop time of the next look."""
        soonest = float("inf")
        for connection in tuple(self._idle):
            if not self._fresh(connection, now):
                self._idle.remove(connection)
                connection.close()
            else:
                soonest = min(soonest, connection.idle_since + self._limits.keep_alive)
        return soonest

    def drain(self) -> None:
        """Close what is idle; what is busy closes when its answer ends."""
        self.draining = True
        while self._idle:
            self._idle.pop().close()

    def shut(self) -> None:
        """After `drain`: who still waits for a connection gets none."""
        self._shut = True
        while (waiter := self._next()) is not None:
            waiter.set_exception(_closed())


def _closed() -> ConnectFailed:
    return ConnectFailed("this router is shutting down", "closed")
