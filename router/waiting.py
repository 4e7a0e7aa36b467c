"""Step 7's waiting room: requests whose eligible endpoints are all full, each for its own pool.

- Whoever waits, waits for the endpoints it may use, and for no other: a pool without room never
  stands in the way of another (a tenant's boundary is nobody else's queue).
- The more urgent class goes first. While it does, each lower one is owed its least share of the
  room that it could have used as well, and gets it before anybody: nobody starves.
- Within a class room goes to tenants in proportion to their weights: start-time fair queueing,
  which gives the shares of weighted round robin without its rounds. A tenant that was idle has
  saved up nothing, and one that floods its queue only waits longer itself. Only what a tenant was
  given counts, not what it waits for, and only of endpoints that the next one could use as well: a
  queue that leaves, or stands before another pool, costs nobody a turn.
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
from itertools import chain
from math import exp
from typing import Final, Generic, Protocol, TypeVar

from policies.model import Priority

LOOK: Final = 0.25
"""Seconds between looks while somebody waits: leases and readings end without an event."""
LONGEST: Final = 60.0
"""Seconds: the longest wait that is ever told; trends don't hold longer."""
MEMORY: Final = 10.0
"""Seconds over which the rate of grants is taken."""
POOLS: Final = 256
"""Lines that are known at once; of more, those are forgotten in which nobody waits."""
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
class _Pool:
    """What is known of one line, also when nobody waits in it.

    `clock` is its virtual time, `served` the virtual time up to which each tenant was given what
    this line could have used, `rate` its grants, `promised` when the last one told was to come.
    """

    clock: float = 0.0
    served: dict[str, float] = field(default_factory=dict)
    rate: _Rate = field(default_factory=_Rate)
    promised: float = 0.0


@dataclass(slots=True, eq=False)
class _Waiter(Generic[T]):
    ticket: Ticket
    pool: _Pool
    arrived: float
    number: int
    attempt: Callable[[], T | None]
    found: asyncio.Future[T]

    @property
    def start(self) -> float:
        """In virtual time: when it came, or when its tenant has been served up to, if later."""
        return max(self.arrived, self.pool.served.get(self.ticket.tenant, 0.0))

    @property
    def rank(self) -> tuple[Priority, float, int]:
        return self.ticket.priority, self.start, self.number


@dataclass(slots=True)
class WaitingRoom(Generic[T]):
    """All who wait in one process.

    Attributes:
        loop_time: loop time, in seconds.
        bound: the most that may wait.
    """

    loop_time: Callable[[], float]
    bound: int = 1024
    _lines: dict[Line, dict[str, list[_Waiter[T]]]] = field(default_factory=dict)
    _owed: dict[Line, float] = field(default_factory=dict)
    _pools: dict[Line, _Pool] = field(default_factory=dict)
    _waiting: Counter[tuple[Priority, str]] = field(default_factory=Counter)
    _count: int = 0
    _timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return self._waiting.total()

    def lines(self) -> dict[Line, int]:
        """How many wait in each line."""
        return {line: sum(map(len, one.values())) for line, one in self._lines.items()}

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
        pool = self._pool(ticket.line)
        self._waiting[ticket.priority, ticket.tenant] += 1
        self._count += 1
        found = asyncio.get_running_loop().create_future()
        waiter = _Waiter(ticket, pool, pool.clock, self._count, attempt, found)
        self._lines.setdefault(ticket.line, {}).setdefault(ticket.tenant, []).append(waiter)
        self._look_again()
        return waiter

    def _pool(self, line: Line) -> _Pool:
        """What is known of a line; a new one begins where those stand that it shares room with."""
        if (found := self._pools.get(line)) is not None:
            return found
        if len(self._pools) >= POOLS:
            self._pools = {one: kept for one, kept in self._pools.items() if one in self._lines}
        found = _Pool()
        for other in self._beside(line):
            found.clock = max(found.clock, other.clock)
            for tenant, until in other.served.items():
                found.served[tenant] = max(until, found.served.get(tenant, 0.0))
        self._pools[line] = found
        return found

    def _beside(self, line: Line) -> list[_Pool]:
        """The lines of its class that could use some of the same room, itself among them."""
        (kind, names), known = line, self._pools.items()
        return [one for (of, pool), one in known if of == kind and not pool.isdisjoint(names)]

    def _make_place(self, ticket: Ticket) -> None:
        """The newest of the tenant with most waiting for its weight in the lowest class goes, if
        not the newcomer."""
        waiters = [w for line in self._lines for w in self._in(line) if not w.found.done()]
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
        mine = (self._waiting[lowest, ticket.tenant] + 1) / ticket.weight
        return ticket.priority >= lowest and self._share(most) <= mine

    def _share(self, waiter: _Waiter[T]) -> float:
        one = waiter.ticket
        return self._waiting[one.priority, one.tenant] / one.weight

    def _refuse_in_vain(self, waiter: _Waiter[T], until: float) -> None:
        """Say at once what would only be said later: those before it take longer than it has.

        Before it are all more urgent ones, as long as its class does not get further by its share.
        """
        ticket = waiter.ticket
        pools = [self._pools[line] for line in self._alike(ticket.pool)]
        if sum(pool.rate.count for pool in pools) < ENOUGH:
            return
        before, own = self._before(waiter)
        if ticket.least:
            before = min(before, int(own / ticket.least))
        now = self.loop_time()
        rate = sum(pool.rate.now(now) for pool in pools)
        if before > 2 * rate * max(0.0, until - now):
            raise NoRoom("too many requests wait already", self.retry_after(ticket))

    def _before(self, waiter: _Waiter[T]) -> tuple[int, int]:
        """How many of those who wait for the same would have their turn first, of all classes and
        of its own, if nobody else came."""
        mine, ranks = waiter.rank, list[tuple[Priority, float, int]]()
        for line in self._alike(waiter.ticket.pool):
            served = dict(self._pools[line].served)
            for one in self._in(line):
                ticket = one.ticket
                start = max(one.arrived, served.get(ticket.tenant, 0.0))
                served[ticket.tenant] = start + ticket.cost / ticket.weight
                ranks.append((ticket.priority, start, one.number))
                if one is waiter:
                    mine = ranks[-1]
        first = [rank for rank in ranks if rank < mine]
        return len(first), sum(1 for rank in first if rank[0] is mine[0])

    def _alike(self, pool: frozenset[str]) -> list[Line]:
        """The lines of all classes that are known to wait for just this."""
        return [(one, pool) for one in Priority if (one, pool) in self._pools]

    def retry_after(self, ticket: Ticket) -> float:
        """When to come again, 1 to 60 s: after all of its class who wait for the same, and all of
        it who were told so before.

        Each of those told gets a moment of its own, one after the other as room comes free:
        together they come no quicker than they can be taken. A class can take what it and those
        below it got of late, its least share at least.
        """
        now, pool = self.loop_time(), self._pool(ticket.line)
        rates = {line[0]: self._pools[line].rate.now(now) for line in self._alike(ticket.pool)}
        below = sum(rate for one, rate in rates.items() if one >= ticket.priority)
        rate = max(below, ticket.least * sum(rates.values()))
        if rate <= 0:
            return 1.0
        waiting = sum(1 for _ in self._in(ticket.line))
        after = max(pool.promised, now + waiting / rate) + 1 / rate
        pool.promised = min(after, now + LONGEST)
        return max(1.0, pool.promised - now)

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
        ticket, start = waiter.ticket, waiter.start
        until = start + ticket.cost / ticket.weight
        for pool in self._beside(ticket.line):
            pool.clock = max(pool.clock, start)
            pool.served[ticket.tenant] = max(until, pool.served.get(ticket.tenant, 0.0))
        waiter.pool.rate.hit(self.loop_time())
        self._leave(waiter)
        if ticket.line in self._owed:
            self._owed[ticket.line] = max(0.0, self._owed[ticket.line] - ticket.cost)
        owed = [line for line in self._lines if self._is_owed(line, ticket)]
        sharing = Counter(priority for priority, _ in owed)
        for line in owed:
            # One turn at most: what a pool could not give while it was full is not made up.
            most = max(one.ticket.cost for one in self._in(line))
            due = min(self._owed.get(line, 0.0), most)
            # The least share is a class's: however many pools it waits for, they have it together.
            share = self._least(line) / sharing[line[0]]
            self._owed[line] = due + share * ticket.cost

    def _is_owed(self, line: Line, granted: Ticket) -> bool:
        """Whether a lower class could have used the same room."""
        lower = line[0] > granted.priority and not line[1].isdisjoint(granted.pool)
        return lower and self._least(line) > 0

    def _least(self, line: Line) -> float:
        return next(self._in(line)).ticket.least

    def _in(self, line: Line) -> Iterator[_Waiter[T]]:
        """Who waits in a line, each tenant's in the order in which they came."""
        return chain.from_iterable(self._lines.get(line, {}).values())

    def _tried(self, waiter: _Waiter[T]) -> T | None:
        try:
            return waiter.attempt()
        except Exception as error:  # noqa: BLE001 - it is the waiter's own, and raised to it
            waiter.found.set_exception(error)
            self._leave(waiter)
            return None

    def _next(self, full: set[frozenset[str]]) -> _Waiter[T] | None:
        heads = [self._head(line) for line in self._lines if line[1] not in full]
        if self._owed:
            due = [one for one in heads if self._owed.get(one.ticket.line, 0.0) >= one.ticket.cost]
            heads = due or heads
        return min(heads, key=lambda waiter: waiter.rank, default=None)

    def _head(self, line: Line) -> _Waiter[T]:
        """Whose turn it is in a line: a tenant's oldest, as only that can be."""
        oldest = [waiters[0] for waiters in self._lines[line].values()]
        return min(oldest, key=lambda one: one.rank)

    def _leave(self, waiter: _Waiter[T]) -> None:
        """Out of the room, with what it waited for or without."""
        ticket = waiter.ticket
        tenants = self._lines.get(ticket.line, {})
        waiters = tenants.get(ticket.tenant, [])
        if waiter not in waiters:
            return
        waiters.remove(waiter)
        if not waiters:
            del tenants[ticket.tenant]
        if not tenants:
            del self._lines[ticket.line]
            self._owed.pop(ticket.line, None)
        who = ticket.priority, ticket.tenant
        self._waiting[who] -= 1
        if not self._waiting[who]:
            del self._waiting[who]

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
