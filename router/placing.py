"""A place for one request: at the best endpoint that has room, or the wait for one.

It knows nothing of HTTP, tenants' files or logs, so that `simulate run` places requests by the
very code that the router does.
"""

from __future__ import annotations

from dataclasses import dataclass

from regions.health import Standing
from regions.prefix import Trail
from router.balance import Balance
from router.frozen import frozen
from router.load import Held
from router.selection import Condition, order
from router.types import Candidacy
from router.waiting import Ticket, WaitingRoom


@frozen
class Wish:
    """What a request needs: `tokens` of room at one of its eligible endpoints.

    `prompt` are those of the tokens that come before the answer's first.
    `path` is its prompt's beginning, `None` where load alone decides; `tenant` and `weight` say
    whose turn it is when all are full, `until` (loop time) how long it may wait then.
    """

    eligible: tuple[Candidacy, ...]
    tokens: int
    prompt: int
    path: Trail | None
    tenant: str
    weight: int
    until: float


@frozen
class Placed:
    """An order, and the request counted at a replica of its first endpoint."""

    order: tuple[Candidacy, ...]
    held: Held | None

    def close(self) -> None:
        """Give the place back."""
        if self.held is not None:
            self.held.close()


@dataclass(frozen=True, slots=True)
class Placing:
    """Chooses, and counts the choice at once; one per process."""

    balance: Balance
    room: WaitingRoom[Placed]

    def at_once(self, wish: Wish) -> Placed | None:
        """A place now; `None` when all that is well is full, or others wait for just these.

        Raises:
            PreferConflict: preferences shut out every endpoint.
        """
        if len(self.room) and self.room.waits(_pool(wish)):
            return None
        return self._found(wish)

    async def wait(self, wish: Wish) -> Placed:
        """A place once there is one.

        Raises:
            NoRoom: none came free in time, or too many wait; says when to come again.
            PreferConflict: as above.
        """
        ticket = Ticket(wish.tenant, wish.weight, wish.tokens, _pool(wish))
        return await self.room.wait(ticket, lambda: self._found(wish), wish.until)

    def _found(self, wish: Wish) -> Placed | None:
        states: dict[str, Condition] = {}

        def condition(endpoint: str) -> Condition:
            found = states[endpoint] = self.balance.condition(endpoint, wish.prompt)
            return found

        found = order(wish.eligible, condition)
        best = found[0].endpoint.name
        state = states[best]
        if state.full and state.standing is not Standing.MARKED:
            return None
        return Placed(found, self.balance.reserve(best, wish.tokens, wish.path, wish.prompt))


def _pool(wish: Wish) -> frozenset[str]:
    return frozenset(c.endpoint.name for c in wish.eligible)
