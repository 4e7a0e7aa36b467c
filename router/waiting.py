"""Step 7's waiting room: requests whose eligible endpoints are all full, each for its own pool.

- Whoever waits, waits for the endpoints it may use, and for no other: a pool without room never
  stands in the way of another (a tenant's boundary is nobody else's queue).
- The more urgent class goes first. While it does, each lower one is owed its least share of the
  room that it could have used as well, and gets it before anybody: nobody starves.
- Within a class room goes to tenants in proportion to their weights: start-time fair queueing,
  which gives the shares of weighted round robin without its rounds. A tenant that was idle has
  saved up nothing, and one that floods its queue only waits longer itself.
- The room is bounded. When it is full, the lowest class that waits gives way, and in it the tenant
  with most waiting for its weight.
- Room is handed over when it comes free, in the same turn of the event loop, so that nobody who
  arrives later takes it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import exp
from typing import Final, Generic, Protocol, TypeVar

from policies.model import Priority

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
Line = tuple[Priority, frozenset[str]]
"""Who waits for one thing: a class and the endpoints that would do."""


class NoRoom(Exception):
    """There was no room in time, or none to wait in; `retry_after` in seconds."""

    def __init__(self, why: str, retry_after: float) -> None:
        super().__init__(why)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Ticket:
    """Who waits: `cost` in tokens, `pool` the names of the endpoints that would do.

    `least`: the share of room that its class gets while more urgent ones wait.
    """

    tenant: str
    weight: int
    cost: int
    pool: frozenset[str]
    priority: Priority = Priority.STANDARD
    least: float = 0.0

    @property
    def line(self) -> Line:
        """Its class and its pool: one line of the room."""
        return self.priority, self.pool


@dataclass(slots=True)
class _Waiter(Generic[T]):
    ticket: Ticket
    start: float
    number: int
    attempt: Callable[[], T | None]
    found: asyncio.Future[T]

    @property
    def rank(self) -> tuple[Priority, float, int]:
        return self.ticket.priority, self.start, self.number


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
class _Class:
    """What is known of one class: its tenants' virtual clock, its grants, and what was promised."""

    clock: float = 0.0
    rate: _Rate = field(default_factory=_Rate)
    promised: float = 0.0
    tenants: dict[str, _Tenant] = field(default_factory=dict)


@dataclass(slots=True)
class WaitingRoom(Generic[T]):
    """All who wait in one process.

    Attributes:
        loop_time: loop time, in seconds.
        bound: the most that may wait.
    """

    loop_time: Callable[[], float]
    bound: int = 1024
    _lines: dict[Line, list[_Waiter[T]]] = field(default_factory=dict)
    _owed: dict[Line, float] = field(default_factory=dict)
    _classes: dict[Priority, _Class] = field(
        default_factory=lambda: {one: _Class() for one in Priority}
    )
    _count: int = 0
    _rate: _Rate = field(default_factory=_Rate)
    _timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._lines.values())

    def waits(self, pool: frozenset[str]) -> bool:
        """Whether somebody waits for just this pool, who would be overtaken."""
        lines = self._lines
        return bool(lines) and any((one, pool) in lines for one in Priority)

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
            raise NoRoom("no room came free in time", self.retry_after(ticket)) from None
        except BaseException:
            self._give_back(waiter)
            raise
        finally:
            self._leave(waiter)

    def _enter(self, ticket: Ticket, attempt: Callable[[], T | None]) -> _Waiter[T]:
        if len(self) >= self.bound:
            self._make_place(ticket)
        kind = self._classes[ticket.priority]
        tenant = kind.tenants.setdefault(ticket.tenant, _Tenant())
        start = max(kind.clock, tenant.finish)
        tenant.finish = start + ticket.cost / ticket.weight
        tenant.waiting += 1
        self._count += 1
        found = asyncio.get_running_loop().create_future()
        waiter = _Waiter(ticket, start, self._count, attempt, found)
        self._lines.setdefault(ticket.line, []).append(waiter)
        self._look_again()
        return waiter

    def _make_place(self, ticket: Ticket) -> None:
        """The newest of the tenant with most waiting for its weight in the lowest class goes, if
        not the newcomer."""
        waiters = [w for waiters in self._lines.values() for w in waiters if not w.found.done()]
        lowest = max((w.ticket.priority for w in waiters), default=ticket.priority)
        last = [w for w in waiters if w.ticket.priority is lowest]
        most = max(last, key=lambda w: (self._share(w), w.number), default=None)
        if most is None or ticket.priority > lowest or self._is_share(ticket, most, lowest):
            raise NoRoom("too many requests wait already", self.retry_after(ticket))
        told = self.retry_after(most.ticket)
        most.found.set_exception(NoRoom("too many requests wait already", told))
        self._leave(most)

    def _is_share(self, ticket: Ticket, most: _Waiter[T], lowest: Priority) -> bool:
        """Whether a newcomer would have as much waiting for its weight as whoever has most."""
        if ticket.priority < lowest:
            return False
        here = self._classes[lowest].tenants.get(ticket.tenant, _Tenant()).waiting
        return self._share(most) <= (here + 1) / ticket.weight

    def _share(self, waiter: _Waiter[T]) -> float:
        ticket = waiter.ticket
        return self._classes[ticket.priority].tenants[ticket.tenant].waiting / ticket.weight

    def _refuse_in_vain(self, waiter: _Waiter[T], until: float) -> None:
        """Say at once what would only be said later: those before it take longer than it has.

        Before it are all more urgent ones, as long as its class does not get further by its share.
        """
        if self._rate.count < ENOUGH:
            return
        ticket = waiter.ticket
        before = sum(
            1
            for (_, pool), waiters in self._lines.items()
            if pool == ticket.pool
            for one in waiters
            if one.rank < waiter.rank
        )
        if ticket.least:
            own = sum(1 for one in self._lines[ticket.line] if one.rank < waiter.rank)
            before = min(before, int(own / ticket.least))
        rate = self._rate.now(self.loop_time())
        if before > 2 * rate * max(0.0, until - self.loop_time()):
            raise NoRoom("too many requests wait already", self.retry_after(ticket))

    def retry_after(self, ticket: Ticket) -> float:
        """When to come again, 1 to 60 s: after all of its class who wait, and all of it who were
        told so before.

        Each of those told gets a moment of its own, one after the other as room comes free:
        together they come no quicker than they can be taken. A class can take what it and those
        below it got of late, its least share at least.
        """
        now, kind = self.loop_time(), self._classes[ticket.priority]
        total = self._rate.now(now)
        below = sum(self._classes[one].rate.now(now) for one in Priority if one >= ticket.priority)
        rate = max(below, ticket.least * total)
        if rate <= 0:
            return 1.0
        waiting = sum(len(w) for (one, _), w in self._lines.items() if one == ticket.priority)
        after = max(kind.promised, now + waiting / rate) + 1 / rate
        kind.promised = min(after, now + LONGEST)
        return max(1.0, kind.promised - now)

    def wake(self) -> None:
        """Room may have come free: give it to whose turn it is, until there is no more."""
        full: set[frozenset[str]] = set()
        while self._lines and (waiter := self._next(full)) is not None:
            if waiter.found.done():
                # Its wait was ended in this very turn: room taken for it would never come back.
                self._leave(waiter)
                continue
            found = self._tried(waiter)
            if found is None:
                if not waiter.found.done():
                    full.add(waiter.ticket.pool)
                continue
            waiter.found.set_result(found)
            self._granted(waiter)

    def _granted(self, waiter: _Waiter[T]) -> None:
        kind, now, ticket = self._classes[waiter.ticket.priority], self.loop_time(), waiter.ticket
        kind.clock = max(kind.clock, waiter.start)
        kind.rate.hit(now)
        self._rate.hit(now)
        self._remove(waiter)
        if ticket.line in self._owed:
            self._owed[ticket.line] = max(0.0, self._owed[ticket.line] - ticket.cost)
        owed = [line for line in self._lines if self._is_owed(line, ticket)]
        sharing = Counter(priority for priority, _ in owed)
        for line in owed:
            waiters = self._lines[line]
            # One turn at most: what a pool could not give while it was full is not made up.
            most = max(one.ticket.cost for one in waiters)
            due = min(self._owed.get(line, 0.0), most)
            # The least share is a class's: however many pools it waits for, they have it together.
            share = waiters[0].ticket.least / sharing[line[0]]
            self._owed[line] = due + share * ticket.cost

    def _is_owed(self, line: Line, granted: Ticket) -> bool:
        """Whether a lower class could have used the same room."""
        least = self._lines[line][0].ticket.least
        return bool(least) and line[0] > granted.priority and not line[1].isdisjoint(granted.pool)

    def _tried(self, waiter: _Waiter[T]) -> T | None:
        try:
            return waiter.attempt()
        except Exception as error:  # noqa: BLE001 - it is the waiter's own, and raised to it
            waiter.found.set_exception(error)
            self._leave(waiter)
            return None

    def _next(self, full: set[frozenset[str]]) -> _Waiter[T] | None:
        heads = [min(w, key=lambda one: one.rank) for w in self._open(full)]
        if self._owed:
            due = [one for one in heads if self._owed.get(one.ticket.line, 0.0) >= one.ticket.cost]
            heads = due or heads
        return min(heads, key=lambda waiter: waiter.rank, default=None)

    def _open(self, full: set[frozenset[str]]) -> Iterator[list[_Waiter[T]]]:
        return (waiters for (_, pool), waiters in self._lines.items() if pool not in full)

    def _remove(self, waiter: _Waiter[T]) -> bool:
        ticket = waiter.ticket
        waiters = self._lines.get(ticket.line, [])
        if waiter not in waiters:
            return False
        waiters.remove(waiter)
        if not waiters:
            del self._lines[ticket.line]
            self._owed.pop(ticket.line, None)
        kind = self._classes[ticket.priority]
        tenant = kind.tenants[ticket.tenant]
        tenant.waiting -= 1
        if not tenant.waiting and tenant.finish <= kind.clock:
            del kind.tenants[ticket.tenant]
        return True

    def _leave(self, waiter: _Waiter[T]) -> None:
        """Out without room: what it would have used is its tenant's again."""
        ticket = waiter.ticket
        kind = self._classes[ticket.priority]
        if self._remove(waiter):
            tenant = kind.tenants.get(ticket.tenant)
            if tenant is not None:
                tenant.finish -= ticket.cost / ticket.weight
        if not any(one is ticket.priority for one, _ in self._lines):
            kind.tenants.clear()

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
        if self._lines:
            self._look_again()

    def close(self) -> None:
        """Stop looking; who waits still waits until its time is up."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
