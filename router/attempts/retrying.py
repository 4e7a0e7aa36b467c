"""The retry budget: how many second attempts a router may make, so that a region's trouble
is not doubled by everybody asking again; and which calls may run a second time at all."""

from __future__ import annotations

from typing import Final

from regions.model import Endpoint
from router.types import Plan

OWN: Final = 10.0
"""Retries of a tenant's own: a few hundredths of its requests while a replica fails."""
STATEFUL: Final = frozenset({"stored", "stored_object", "conversation", "background", "batch"})


def is_harmless(plan: Plan, endpoint: Endpoint) -> bool:
    """Whether this call may run once more though it may have run at this endpoint."""
    if plan.admitted.call.movers & STATEFUL:
        return False
    return endpoint.self_operated or endpoint.settings.get("retry_unknown") == "true"


class RetryBudget:
    """A bucket that each request fills by `ratio` and each retry empties by one.

    Args:
        ratio: retries per request in the long run.
        burst: what the bucket holds at most, and at the start.
    """

    __slots__ = ("_burst", "_held", "_ratio")

    def __init__(self, ratio: float = 0.5, burst: float = 100.0) -> None:
        self._ratio = ratio
        self._burst = burst
        self._held = burst

    def earn(self) -> None:
        """A request begins."""
        self._held = min(self._burst, self._held + self._ratio)

    def spend(self) -> bool:
        """Take one retry; `False` when there is none."""
        if self._held < 1:
            return False
        self._held -= 1
        return True


class Retries:
    """The retries of all tenants: each may make `OWN` whatever others did, and earns those anew by
    its own requests; what is earned above that is anybody's.

    A tenant whose requests fail wherever they go so takes no failover from others.

    Args:
        ratio: retries per request in the long run, of each and of all.
        burst: what one tenant can make at once, when no other did.
    """

    __slots__ = ("_own", "_ratio", "_shared", "_top")

    def __init__(self, ratio: float = 0.5, burst: float = 100.0) -> None:
        self._ratio = ratio
        self._shared = self._top = max(0.0, burst - OWN)
        self._own: dict[str, float] = {}

    def earn(self, tenant: str) -> None:
        """A request of this tenant begins."""
        more, held = self._ratio, self._own.get(tenant)
        if held is not None:  # else it has all of its own, as nearly every tenant
            held += self._ratio
            if held < OWN:
                self._own[tenant] = held
                return
            del self._own[tenant]
            more = held - OWN
        if self._shared < self._top:
            self._shared = min(self._top, self._shared + more)

    def spend(self, tenant: str) -> bool:
        """Take one retry; `False` when neither the tenant nor all have one left."""
        held = self._own.get(tenant, OWN)
        if held >= 1:
            self._own[tenant] = held - 1
            return True
        if self._shared < 1:
            return False
        self._shared -= 1
        return True
