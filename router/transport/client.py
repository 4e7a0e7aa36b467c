"""The transport that goes out: pools per origin, one sweeper for all time limits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass

from router.transport.connection import HEAD_LIMIT, Connection
from router.transport.dial import Dialer, Resolver, SystemResolver
from router.transport.messages import (
    ConnectFailed,
    ConnectionLost,
    Origin,
    OutboundRequest,
    Timeouts,
)
from router.transport.pool import Limits, Pool
from router.transport.reply import Reply
from router.transport.wire import encode_head

# The sweeper looks at most this often: a time limit is kept to this precision, in seconds.
TICK = 0.05
UNUSED = 600.0
"""Seconds after which a pool without connections is forgotten: a late request to a replica that is
gone, or a probe of one, makes a pool that nobody drains any more."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Connections of one transport: open now (idle ones too), idle now, ever created."""

    open: int
    idle: int
    created: int


class HttpTransport:
    """`Transport` over HTTP/1.1 with keep-alive; belongs to one event loop.

    No redirect is followed, no environment variable is read, and the host of each request is its
    origin's.

    Args:
        resolver: names to addresses; the system's by default.
        limit: connections per origin.
        keep_alive: seconds an idle connection may be reused.
        age: seconds any connection may be.
        head_limit: bytes of an answer's head.
        clock: loop time in seconds; the running loop's by default.
    """

    def __init__(
        self,
        resolver: Resolver | None = None,
        *,
        limit: int = 1024,
        keep_alive: float = 4.0,
        age: float = 300.0,
        head_limit: int = HEAD_LIMIT,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._dialer = Dialer(resolver or SystemResolver())
        self._limit = limit
        self._keep_alive = keep_alive
        self._age = age
        self._head_limit = head_limit
        self._clock = clock
        self._pools: dict[Origin, Pool] = {}
        self._parting: list[Pool] = []
        self._live: set[Reply] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next_sweep = float("inf")
        self._closed = False
        self._quiet: asyncio.Future[None] | None = None

    def _now(self) -> float:
        if self._clock is None:
            # Not at the start: a transport may be made before its loop runs.
            self._clock = asyncio.get_running_loop().time
        return self._clock()

    @property
    def counts(self) -> Counts:
        """What is open, idle and was ever created."""
        pools = [*self._pools.values(), *self._parting]
        return Counts(
            sum(pool.open for pool in pools),
            sum(pool.idle for pool in pools),
            sum(pool.created for pool in pools),
        )

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> Reply:
        """See `Transport.send`."""
        head = encode_head(request)
        if self._closed:
            raise ConnectFailed("this router is shutting down", "closed")
        now = self._now()
        if timeouts.deadline <= now:
            late = ConnectFailed("the deadline passed before the request was sent", "timeout")
            late.hurried = True
            raise late
        pool = self._pool(request.origin)
        connection = pool.take(now)
        if connection is None:
            connection = await pool.connect(timeouts.connect, timeouts.deadline)
            now = self._now()
        reply = self._written(connection, head, request, timeouts, now)
        try:
            await reply.head()
        except ConnectionLost as error:
            if not (error.stale and request.replay_safe):
                raise
        else:
            return reply
        # Once, and on a connection that can't be stale itself.
        connection = await pool.connect(timeouts.connect, timeouts.deadline)
        reply = self._written(connection, head, request, timeouts, self._now())
        await reply.head()
        return reply

    def _written(
        self,
        connection: Connection,
        head: bytes,
        request: OutboundRequest,
        timeouts: Timeouts,
        now: float,
    ) -> Reply:
        """A request on its way at a loop time; its answer is still to come."""
        reply = Reply(connection, timeouts.deadline, now + timeouts.first_byte, self)
        self._live.add(reply)
        connection.start(reply, head, request.body, request.method)
        return reply

    def _pool(self, origin: Origin) -> Pool:
        pool = self._pools.get(origin)
        if pool is None:

            async def dial(make: Callable[[socket.socket], Connection], until: float) -> Connection:
                return await self._dialer.dial(origin, make, until)

            limits = Limits(self._limit, self._keep_alive, self._head_limit, self._age)
            pool = Pool(dial, self._now, self.nudge, limits)
            self._pools[origin] = pool
        return pool

    # time

    def nudge(self, expires: float) -> None:
        """See `Watch`: sweep by `expires`."""
        if expires < self._next_sweep:
            if self._timer is not None:
                self._timer.cancel()
            self._schedule(self._now(), expires)

    def forget(self, reply: Reply) -> None:
        """See `Watch`."""
        self._live.discard(reply)
        if not self._live and self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)

    def _schedule(self, now: float, at: float) -> None:
        self._next_sweep = max(at, now)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._next_sweep - now, self._sweep)

    def _sweep(self) -> None:
        now = self._now()
        self._timer = None
        self._next_sweep = soonest = float("inf")
        for reply in tuple(self._live):
            if reply.expires <= now:
                reply.expire()
            if not reply.done:
                soonest = min(soonest, reply.expires)
        for origin, pool in tuple(self._pools.items()):
            soonest = min(soonest, pool.expire(now))
            if not pool.open and now - pool.used > UNUSED:
                del self._pools[origin]
                self._dialer.keep(one.tls for one in self._pools)
        self._parting = [pool for pool in self._parting if pool.open]
        if soonest < float("inf"):
            self._schedule(now, max(soonest, now + TICK))

    # leaving

    def drain(self, origin: Origin) -> None:
        """Close an origin's idle connections now, and its busy ones as their answers end."""
        pool = self._pools.pop(origin, None)
        self._dialer.keep(one.tls for one in self._pools)
        if pool is not None:
            pool.drain()
            self._parting.append(pool)

    async def close(self, grace: float = 0.0) -> None:
        """Let answers end for up to `grace` seconds, then close everything."""
        self._closed = True
        for origin in tuple(self._pools):
            self.drain(origin)
        if self._live and grace > 0:
            self._quiet = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._quiet], timeout=grace)
        for pool in self._parting:
            pool.shut()
        for reply in tuple(self._live):
            reply.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # One turn of the loop, so that the closed connections are gone when this returns.
        await asyncio.sleep(0)
