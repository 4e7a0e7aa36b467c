"""Step 7, rank: a place at the first eligible endpoint that has room, or the wait for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from regions.prefix import BLOCK, Trail, trail
from router.capacity.bursts import Bursts
from router.capacity.placing import Order, Outdated, Placing, Pool, Wish
from router.capacity.pools import Pools
from router.errors import RequestError
from router.inbound.exchange import while_connected
from router.pipeline import Refused
from router.salts import FIELD
from router.selection import PreferConflict
from router.types import Admitted, Filtered, Ranked, make_ranked
from router.waiting import NoRoom

SESSION: Final = b"x-domicile-session"
"""A client's own name for a conversation: its requests go to the same replica, load permitting."""
NOBODY: Final[tuple[str, ...]] = ()
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class Ranking:
    """Step 7: what a request wishes for, and its place held by the request's lease."""

    placing: Placing
    bursts: Bursts
    pools: Pools = field(default_factory=Pools)

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced."""
        for keeper in (self.placing, self.bursts, self.pools):
            keeper.forget()

    async def run(self, filtered: Filtered) -> Ranked:
        """First choice first; its place is held by the request's lease.

        Raises:
            Refused: `prefer_conflict`, or with the time to wait `overloaded` or `burst_spent`.
        """
        classified = filtered.graded.decided.classified
        admitted, placing = classified.admitted, self.placing
        eligible, spare = self.pools.of(filtered.eligible, admitted.priority)
        pool, prompt, passed = placing.pool(eligible), classified.prompt_tokens, NOBODY
        if pool.limited:
            eligible, passed = self._spending(filtered, eligible)
            pool = placing.pool(eligible)
        # Prompt and expected output: what was learned, where the client's limit is only a cap.
        asked, tenant = admitted.asked, admitted.authenticated.principal.tenant
        expected = placing.balance.lengths.expect(asked.model, tenant, asked.output_tokens)
        even = None if spare else placing.evenly(pool, prompt + expected, prompt)
        if even is not None:
            order, held = even
            admitted.lease.hold(held, prompt + expected)
            return make_ranked(filtered, order, passed)
        order = await self._wished(filtered, pool, spare, prompt + expected)
        return make_ranked(filtered, order, passed)

    def _spending(self, filtered: Filtered, eligible: Order) -> tuple[Order, tuple[str, ...]]:
        """Who has room in its burst budget, and who is passed over because it has none."""
        try:
            return self.bursts.within(eligible, filtered.graded.decided.classified.admitted)
        except RequestError as error:
            raise Refused(error, filtered) from None

    async def _wished(
        self, filtered: Filtered, pool: Pool, spare: frozenset[str], tokens: int
    ) -> Order:
        """Where more decides than whose turn it is, or where others wait."""
        admitted = filtered.graded.decided.classified.admitted
        wish = self._wish(filtered, pool, spare, tokens)
        try:
            placed = self.placing.at_once(wish, pool)
            if placed is None:
                return await self._waited(admitted, wish)
        except PreferConflict:
            message = "the preferences of the rules that apply shut out every endpoint"
            raise Refused(RequestError("prefer_conflict", message), filtered) from None
        except NoRoom as error:
            message = f"every endpoint inside the boundary is full: {error}; try again later"
            refusal = RequestError("overloaded", message, retry_after=error.retry_after)
            raise Refused(refusal, filtered) from None
        admitted.lease.hold(placed.held, wish.tokens)
        return placed.order

    async def _waited(self, admitted: Admitted, wish: Wish) -> Order:
        """Who waits leaves with the client, and waits no longer for what a policy that is gone
        allowed: the pipeline decides it again."""
        try:
            async with while_connected(admitted.arrival.exchange):
                placed = await self.placing.wait(wish, lambda: self.outdated(admitted))
                # The lease has it before anything can end the request.
                admitted.lease.hold(placed.held, wish.tokens)
        except Outdated:
            return wish.eligible
        return placed.order

    def outdated(self, admitted: Admitted) -> bool:
        """Whether a snapshot came into force meanwhile that may decide otherwise.

        A body that comes slowly, or a wait for room, keeps nobody under a policy that is gone.
        """
        current, known = self.placing.balance.snapshot(), admitted.snapshot
        return current is not known and not current.decides_as(known)

    def _wish(self, filtered: Filtered, pool: Pool, spare: frozenset[str], tokens: int) -> Wish:
        classified = filtered.graded.decided.classified
        admitted, eligible, prompt = classified.admitted, pool.eligible, classified.prompt_tokens
        snapshot, tenant = admitted.snapshot, admitted.authenticated.principal.tenant
        router, loop_time = snapshot.config.router, self.placing.balance.loop_time
        until = min(loop_time() + router.limits.queue, admitted.arrival.deadline)
        path = None if pool.single else trail_of(filtered)
        known = snapshot.policy.tenants.get(tenant)
        weight = 1 if known is None else known.weight
        priority, classes = admitted.priority, router.priorities
        if priority is None or classes is None:
            return Wish(eligible, tokens, prompt, path, tenant, weight, until)
        least = classes.least(priority)
        return Wish(eligible, tokens, prompt, path, tenant, weight, until, priority, least, spare)


def trail_of(filtered: Filtered) -> Trail | None:
    """The prompt's beginning, where there is a choice of replicas."""
    classified = filtered.graded.decided.classified
    admitted, view = classified.admitted, classified.view
    if view is None:
        view = admitted.arrival.surface.view(admitted.body, admitted.asked.texts)
    tenant = admitted.authenticated.principal.tenant
    session = admitted.arrival.exchange.head.get(SESSION) or b""
    if session:
        session = tenant.encode() + b"/" + session
    if not session and view.characters < BLOCK:
        return None  # no cache holds so little: load alone decides
    parts = ((part.role, part.text) for part in view.parts)
    return trail(parts, _kept_under(filtered), session[:_LONGEST_NAME], tenant)


def _kept_under(filtered: Filtered) -> bytes:
    """What engines share no caches across: the model, and the tenant where any keeps it apart (one
    that doesn't then is sent fewer beginnings that it has, and none that it hasn't)."""
    admitted = filtered.graded.decided.classified.admitted
    model = admitted.asked.model.encode()
    if not any(one.endpoint.cache_apart for one in filtered.eligible):
        return model
    tenant = admitted.authenticated.principal.tenant
    return model + b"\0" + admitted.snapshot.salts.of(tenant, admitted.body.get(FIELD)).encode()
