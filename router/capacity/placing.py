"""A place for one request: at the best endpoint that has room, or the wait for one.

It knows nothing of HTTP, tenants' files or logs, so that `simulate run` places requests by the
very code that the router does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from policies.model import Priority
from regions.health import Standing
from regions.prefix import Trail
from router.capacity.balance import Balance, Bay, Turn
from router.capacity.load import Held
from router.capacity.pools import behind
from router.entries.alike import BOUND, Alike
from router.frozen import frozen
from router.selection import Condition, is_open, order
from router.types import Candidacy
from router.waiting import Ticket, WaitingRoom


class Outdated(Exception):
    """What a request waits by is no longer in force: it is decided again."""


Order = tuple[Candidacy, ...]
"""Endpoints as they are to be asked, the first choice first."""


@frozen
class Wish:
    """What a request needs: `tokens` of room at one of its eligible endpoints.

    `prompt` are those of the tokens that come before the answer's first.
    `path` is its prompt's beginning, `None` where load alone decides; `tenant` and `weight` say
    whose turn it is when all are full, `until` (loop time) how long it may wait then. `priority`
    and `least`: its class, and the least share of room that has. `spare`: who is asked last.
    """

    eligible: tuple[Candidacy, ...]
    tokens: int
    prompt: int
    path: Trail | None
    tenant: str
    weight: int
    until: float
    priority: Priority = Priority.STANDARD
    least: float = 0.0
    spare: frozenset[str] = frozenset()


@frozen
class Placed:
    """An order, and the request counted at a replica of its first endpoint."""

    order: Order
    held: Held | None

    def close(self) -> None:
        """Give the place back."""
        if self.held is not None:
            self.held.close()


class Orders:
    """Orders of all pools' endpoints: the same order is the same object, by which what follows from
    it is found again.

    One bound for all pools: a tenant may have one of its own, and six endpoints have 720 orders.
    When full it starts again.
    """

    __slots__ = ("_bound", "_kept")

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._kept: dict[tuple[int, tuple[int, ...]], tuple[Pool, Order]] = {}

    def of(self, pool: Pool, numbers: tuple[int, ...]) -> Order:
        """A pool's endpoints in the order of these numbers."""
        key = (id(pool), numbers)
        found = self._kept.get(key)
        if found is not None and found[0] is pool:
            return found[1]
        if len(self._kept) >= self._bound:
            self._kept.clear()
        order = tuple([pool.eligible[at] for at in numbers])
        self._kept[key] = pool, order
        return order

    def clear(self) -> None:
        """Keep nothing: an order belongs to a snapshot."""
        self._kept.clear()


class Pool:
    """The eligible endpoints of requests alike, and what of them does not change by the second.

    `bays` are their replicas, one of each, where nothing but their turns decides between them;
    else empty. `names` is what a request that finds no room waits for: where rules prefer some, no
    more than those; `single` says that no endpoint has a second replica, `limited` that one has a
    burst budget.
    """

    __slots__ = ("_orders", "bays", "eligible", "limited", "names", "single", "snapshot")

    def __init__(self, eligible: tuple[Candidacy, ...], balance: Balance, orders: Orders) -> None:
        self._orders = orders
        self.snapshot = balance.snapshot()
        self.eligible = eligible
        self.names = _wanted(eligible)
        found = [tuple(self.snapshot.targets.get(c.endpoint.name, ())) for c in eligible]
        self.single = all(len(keys) < 2 for keys in found)
        self.limited = any(c.endpoint.burst is not None for c in eligible)
        preferred = any(c.verdict.allowed.prefer for c in eligible)
        pairs = zip(eligible, found, strict=True)
        asked = [(c.tier, c.endpoint.name, keys) for c, keys in pairs]
        self.bays = () if preferred else balance.bays(asked)

    def ordered(self, turns: list[Turn]) -> tuple[Order, Bay]:
        """As `selection.order` has them when all are well, by tier, then wait; the first's bay."""
        turns.sort()
        numbers = tuple([turn[5] for turn in turns])
        return self._orders.of(self, numbers), self.bays[numbers[0]]


def _wanted(eligible: tuple[Candidacy, ...]) -> frozenset[str]:
    """The endpoints whose room would do, as long as nothing else is wrong with any: who waits for
    a preferred one is not in the way of who may use another."""
    names = frozenset(c.endpoint.name for c in eligible)
    opened = [c.endpoint.name for c in eligible if is_open(c, eligible, frozenset(), names)]
    return frozenset(opened) or names


@dataclass(frozen=True, slots=True)
class Placing:
    """Chooses, and counts the choice at once; one per process."""

    balance: Balance
    room: WaitingRoom[Placed]
    _pools: Alike[tuple[Candidacy, ...], Pool] = field(default_factory=Alike)
    _orders: Orders = field(default_factory=Orders)

    def pool(self, eligible: tuple[Candidacy, ...]) -> Pool:
        """What is known of these endpoints, with the replicas there are now."""
        found = self._pools.get(eligible)
        if found is None or found.snapshot is not self.balance.snapshot():
            found = self._pools.put(eligible, Pool(eligible, self.balance, self._orders))
        return found

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced."""
        self._pools.clear()
        self._orders.clear()

    def at_once(self, wish: Wish, known: Pool | None = None) -> Placed | None:
        """A place now; `None` when all that is well is full, or others wait for just these.

        Args:
            known: what `pool` gives now, if it was asked for already.

        Raises:
            PreferConflict: preferences shut out every endpoint.
        """
        pool = known or self.pool(wish.eligible)
        return None if self.room.waits(pool.names) else self._found(wish, pool)

    def evenly(self, pool: Pool, tokens: int, prompt: int) -> tuple[Order, Held] | None:
        """As `at_once`, where nothing but the endpoints' turns decides and nobody waits for them.

        `None` says that more has to be looked at.
        """
        if not pool.bays or self.room.waits(pool.names):
            return None
        return self._in_turn(pool, tokens, prompt)

    def _in_turn(self, pool: Pool, tokens: int, prompt: int) -> tuple[Order, Held] | None:
        turns = self.balance.turns(pool.bays, prompt)
        if turns is None:
            return None
        found, bay = pool.ordered(turns)
        return found, self.balance.enter(bay.endpoint, bay.key, tokens, prompt)

    async def wait(self, wish: Wish, outdated: Callable[[], bool] = lambda: False) -> Placed:
        """A place once there is one.

        Args:
            outdated: whether what the wish comes from is no longer in force, asked at every look.

        Raises:
            Outdated: it is not.
            NoRoom: none came free in time, or too many wait; says when to come again.
            PreferConflict: as above.
        """
        ticket = Ticket(
            wish.tenant, wish.weight, wish.tokens, self.pool(wish.eligible).names, wish.priority,
            wish.least,
        )  # fmt: skip

        def found() -> Placed | None:
            if outdated():
                raise Outdated
            return self._found(wish, self.pool(wish.eligible))

        return await self.room.wait(ticket, found, wish.until)

    def _found(self, wish: Wish, pool: Pool) -> Placed | None:
        if pool.bays and not wish.spare:
            even = self._in_turn(pool, wish.tokens, wish.prompt)
            if even is not None:
                return Placed(*even)
        states: dict[str, Condition] = {}

        def condition(endpoint: str) -> Condition:
            found = self.balance.condition(endpoint, wish.prompt)
            found = states[endpoint] = behind(found) if endpoint in wish.spare else found
            return found

        found = order(wish.eligible, condition)
        best = found[0].endpoint.name
        state = states[best]
        if state.full and state.standing is not Standing.MARKED:
            return None
        return Placed(found, self.balance.reserve(best, wish.tokens, wish.path, wish.prompt))
