"""Step 7, rank: a place at the first eligible endpoint that has room, or the wait for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from regions.health import Standing
from regions.prefix import BLOCK, Trail, trail
from router.balance import Balance
from router.errors import RequestError
from router.frozen import frozen
from router.load import Held
from router.pipeline import Refused
from router.selection import PreferConflict, order
from router.types import Admitted, Candidacy, Filtered, Ranked
from router.waiting import NoRoom, Ticket, WaitingRoom

SESSION: Final = b"x-domicile-session"
"""A client's own name for a conversation: its requests go to the same replica, load permitting."""
_LONGEST_NAME: Final = 256


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
class Ranking:
    """Ranks, and counts the choice at once; one per process."""

    balance: Balance
    room: WaitingRoom[Placed]

    async def run(self, filtered: Filtered) -> Ranked:
        """First choice first; its place is held by the request's lease.

        Raises:
            Refused: `prefer_conflict`, or `overloaded` with the time to wait.
        """
        admitted = filtered.graded.decided.classified.admitted
        tokens = self._expected(filtered)
        pool = frozenset(c.endpoint.name for c in filtered.eligible)
        path = self._trail(filtered)
        try:
            placed = None if self.room.waits(pool) else self._place(filtered, tokens, path)
            if placed is None:
                placed = await self._wait(filtered, tokens, pool, path)
        except PreferConflict:
            message = "the preferences of the rules that apply shut out every endpoint"
            raise Refused(RequestError("prefer_conflict", message), filtered) from None
        admitted.lease.hold(placed.held, tokens)
        return Ranked(filtered, placed.order)

    def _expected(self, filtered: Filtered) -> int:
        """Prompt and expected output: what was learned, where the client's limit is only a cap."""
        classified = filtered.graded.decided.classified
        admitted = classified.admitted
        tenant = admitted.authenticated.principal.tenant
        limit = admitted.asked.output_tokens
        output = self.balance.lengths.expect(admitted.asked.model, tenant, limit)
        return classified.prompt_tokens + output

    def _place(self, filtered: Filtered, tokens: int, path: Trail | None) -> Placed | None:
        """Room at the best endpoint now; `None` when whatever is well is full."""
        found = order(filtered.eligible, self.balance.condition)
        best = found[0].endpoint.name
        state = self.balance.condition(best)
        if state.full and state.standing is not Standing.MARKED:
            return None
        return Placed(found, self.balance.reserve(best, tokens, path))

    async def _wait(
        self, filtered: Filtered, tokens: int, pool: frozenset[str], path: Trail | None
    ) -> Placed:
        admitted = filtered.graded.decided.classified.admitted
        ticket = Ticket(*_weighted(admitted), tokens, pool)
        limits = admitted.snapshot.config.router.limits
        until = min(self.balance.loop_time() + limits.queue, admitted.arrival.deadline)
        try:
            return await self.room.wait(ticket, lambda: self._place(filtered, tokens, path), until)
        except NoRoom as error:
            message = f"every endpoint inside the boundary is full: {error}; try again later"
            refusal = RequestError("overloaded", message, retry_after=error.retry_after)
            raise Refused(refusal, filtered) from None

    def _trail(self, filtered: Filtered) -> Trail | None:
        """The prompt's beginning, where there is a choice of replicas."""
        targets = self.balance.snapshot().targets
        if all([len(targets.get(c.endpoint.name, ())) < 2 for c in filtered.eligible]):
            return None
        admitted = filtered.graded.decided.classified.admitted
        view = admitted.arrival.surface.view(admitted.body)
        session = admitted.arrival.exchange.head.get(SESSION) or b""
        if session:
            session = admitted.authenticated.principal.tenant.encode() + b"/" + session
        if not session and view.characters < BLOCK:
            return None  # no cache holds so little: load alone decides
        parts = ((part.role, part.text) for part in view.parts)
        return trail(parts, admitted.asked.model.encode(), session[:_LONGEST_NAME])


def _weighted(admitted: Admitted) -> tuple[str, int]:
    name = admitted.authenticated.principal.tenant
    tenant = admitted.snapshot.policy.tenants.get(name)
    return name, 1 if tenant is None else tenant.weight
