"""Step 7's waiting room: requests whose eligible endpoints are all full, each for its own pool.

- Whoever waits, waits for the endpoints it may use, and for no other: a pool without room never
  stands in the way of another (a tenant's boundary is nobody else's queue).
- Room goes to tenants in proportion to their weights: start-time fair queueing, which gives the
  shares of weighted round robin without its rounds. A tenant that was idle has saved up nothing,
  and one that floods its queue only waits longer itself.
- The room is bounded. When it is full, the tenant with most waiting for its weight gives way.
- Room is handed over when it comes free, in the same turn of the event loop, so that nobody who
  arrives later takes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import exp
from typing import Final, Generic, Protocol, TypeVar

LOOK: Final = 0.25
"""Seconds between looks while somebody waits: leases and readings end without an event."""
LONGEST: Final = 60.0
"""Seconds: the longest wait that is ever told; trends don't hold longer."""
MEMORY: Final = 10.0
"""Seconds over which the rate of grants is taken."""
ENOUGH: Final = 20
"""Grants after which the rate is believed when it says that waiting is in vain."""


class Closing(Protocol):
    """What was reserved and must be given back when nobody takes it."""

    def close(self) -> None:
        """Give it back."""
        ...


T = TypeVar("T", bound=Closing)


class NoRoom(Exception):
    """There was no room in time, or none to wait in; `retry_after` in seconds."""

    def __init__(self, why: str, retry_after: float) -> None:
        super().__init__(why)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Ticket:
    """Who waits: `cost` in tokens, `pool` the names of the endpoints that would do."""

    tenant: str
    weight: int
    cost: int
    pool: frozenset[str]


@dataclass(slots=True)
class _Waiter(Generic[T]):
    ticket: Ticket
    start: float
    number: int
    attempt: Callable[[], T | None]
    found: asyncio.Future[T]

    @property
    def turn(self) -> tuple[float, int]:
        return self.start, self.number


@dataclass(slots=True)
class _Tenant:
    """Virtual time up to which a tenant has been served, counting those that wait."""

    finish: float = 0.0
    waiting: int = 0


@dataclass(slots=True)
class _Rate:
    """Grants a second, decaying over `MEMORY`."""

    value: float = 0.0
    at: float = 0.0
    count: int = 0

    def hit(self, now: float) -> None:
        self.value = self.now(now) + 1 / MEMORY
        self.at, self.count = now, self.count + 1

    def now(self, now: float) -> float:
        return self.value * exp(-max(0.0, now - self.at) / MEMORY)


@dataclass(slots=True)
class WaitingRoom(Generic[T]):
    """All who wait in one process.

    Attributes:
        loop_time: loop time, in seconds.
        bound: the most that may wait.
    """

    loop_time: Callable[[], float]
    bound: int = 1024
    _pools: dict[frozenset[str], list[_Waiter[T]]] = field(default_factory=dict)
    _tenants: dict[str, _Tenant] = field(default_factory=dict)
    _clock: float = 0.0
    _count: int = 0
    _rate: _Rate = field(default_factory=_Rate)
    _promised: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._pools.values())

    def waits(self, pool: frozenset[str]) -> bool:
        """Whether somebody waits for just this pool, who would be overtaken."""
        return pool in self._pools

    async def wait(self, ticket: Ticket, attempt: Callable[[], T | None], until: float) -> T:
        """Wait for room, at most until a loop time.

        Args:
            attempt: takes room if there is some, at once; `None` if there is none. Never awaits.

        Raises:
            NoRoom: none came in time, or too many wait already. Whatever raises out of here, as
                the client's leaving, gives up the place, and what was reserved in that moment.
        """
        waiter = self._enter(ticket, attempt)
        try:
            self._refuse_in_vain(waiter, until)
            async with asyncio.timeout_at(until):
                return await waiter.found
        except TimeoutError:
            self._give_back(waiter)
            raise NoRoom("no room came free in time", self.retry_after()) from None
        except BaseException:
            self._give_back(waiter)
            raise
        finally:
            self._leave(waiter)

    def _enter(self, ticket: Ticket, attempt: Callable[[], T | None]) -> _Waiter[T]:
        if len(self) >= self.bound:
            self._make_place(ticket)
        tenant = self._tenants.setdefault(ticket.tenant, _Tenant())
        start = max(self._clock, tenant.finish)
        tenant.finish = start + ticket.cost / ticket.weight
        tenant.waiting += 1
        self._count += 1
        found = asyncio.get_running_loop().create_future()
        waiter = _Waiter(ticket, start, self._count, attempt, found)
        self._pools.setdefault(ticket.pool, []).append(waiter)
        self._look_again()
        return waiter

    def _make_place(self, ticket: Ticket) -> None:
        """The newest of the tenant with most waiting for its weight goes, if not the newcomer."""
        waiters = [w for waiters in self._pools.values() for w in waiters if not w.found.done()]
        here = self._tenants.get(ticket.tenant, _Tenant()).waiting
        newcomer = (here + 1) / ticket.weight
        most = max(waiters, key=lambda w: (self._share(w), w.number), default=None)
        if most is None or self._share(most) <= newcomer:
            raise NoRoom("too many requests wait already", self.retry_after())
        most.found.set_exception(NoRoom("too many requests wait already", self.retry_after()))
        self._leave(most)

    def _share(self, waiter: _Waiter[T]) -> float:
        return self._tenants[waiter.ticket.tenant].waiting / waiter.ticket.weight

    def _refuse_in_vain(self, waiter: _Waiter[T], until: float) -> None:
        """Say at once what would only be said later: those before it take longer than it has."""
        if self._rate.count < ENOUGH:
            return
        before = sum(1 for w in self._pools[waiter.ticket.pool] if w.turn < waiter.turn)
        rate = self._rate.now(self.loop_time())
        if before > 2 * rate * max(0.0, until - self.loop_time()):
            raise NoRoom("too many requests wait already", self.retry_after())

    def retry_after(self) -> float:
        """When to come again, 1 to 60 s: after all who wait, and all who were told so before.

        Each of those told gets a moment of its own, one after the other as room comes free:
        together they come no quicker than they can be taken.
        """
        now = self.loop_time()
        rate = self._rate.now(now)
        if rate <= 0:
            return 1.0
        after = max(self._promised, now + len(self) / rate) + 1 / rate
        self._promised = min(after, now + LONGEST)
        return max(1.0, self._promised - now)

    def wake(self) -> None:
        """Room may have come free: give it to whose turn it is, until there is no more."""
        full: set[frozenset[str]] = set()
        while (waiter := self._next(full)) is not None:
            if waiter.found.done():
                # Its wait was ended in this very turn: room taken for it would never come back.
                self._leave(waiter)
                continue
            found = self._tried(waiter)
            if found is None:
                full.add(waiter.ticket.pool)
                continue
            waiter.found.set_result(found)
            self._clock = max(self._clock, waiter.start)
            self._rate.hit(self.loop_time())
            self._remove(waiter)

    def _tried(self, waiter: _Waiter[T]) -> T | None:
        try:
            return waiter.attempt()
        except Exception as error:  # noqa: BLE001 - it is the waiter's own, and raised to it
            waiter.found.set_exception(error)
            self._remove(waiter)
            return None

    def _next(self, full: set[frozenset[str]]) -> _Waiter[T] | None:
        heads = (min(w, key=lambda one: one.turn) for w in self._open(full))
        return min(heads, key=lambda waiter: waiter.turn, default=None)

    def _open(self, full: set[frozenset[str]]) -> Iterator[list[_Waiter[T]]]:
        return (waiters for pool, waiters in self._pools.items() if pool not in full)

    def _remove(self, waiter: _Waiter[T]) -> bool:
        waiters = self._pools.get(waiter.ticket.pool, [])
        if waiter not in waiters:
            return False
        waiters.remove(waiter)
        if not waiters:
            del self._pools[waiter.ticket.pool]
        tenant = self._tenants[waiter.ticket.tenant]
        tenant.waiting -= 1
        if not tenant.waiting and tenant.finish <= self._clock:
            del self._tenants[waiter.ticket.tenant]
        return True

    def _leave(self, waiter: _Waiter[T]) -> None:
        """Out without room: what it would have used is its tenant's again."""
        if self._remove(waiter):
            tenant = self._tenants.get(waiter.ticket.tenant)
            if tenant is not None:
                tenant.finish -= waiter.ticket.cost / waiter.ticket.weight
        if not self._pools:
            self._tenants.clear()

    def _give_back(self, waiter: _Waiter[T]) -> None:
        found = waiter.found
        if found.done() and not found.cancelled() and found.exception() is None:
            found.result().close()

    def _look_again(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _look(self) -> None:
        self._timer = None
        self.wake()
        if self._pools:
            self._look_again()

    def close(self) -> None:
        """Stop looking; who waits still waits until its time is up."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
