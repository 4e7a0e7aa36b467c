"""One request's attempts so far, as dispatch knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from regions.model import Endpoint
from router.answers.outcomes import Failed, Inexpressible
from router.audit.log import Committed
from router.providers.base import Kind
from router.types import Attempt, Candidacy, Plan

if TYPE_CHECKING:
    from router.dispatch import Dispatched

PREFILLED: Final = "prefilled"
"""The result of an attempt that computed the prompt for another one: it answers nothing."""
_NO_ANSWER: Final = frozenset({PREFILLED, Inexpressible.code})
"""Results of attempts that can't have answered."""
_SAYS_NOTHING: Final = _NO_ANSWER | {Kind.CONTEXT_LENGTH.value}
"""Results that don't tell whether another answer would have come."""


class Run:
    """What a request was sent to, and what came of it.

    Attributes:
        failures, vetoed, spent: why nobody has answered; `spent`: seconds until an endpoint's
            burst budget has room.
        doubted: an answer that is kept while a larger tier is asked.
        asked: the replicas that were asked.
        out: endpoints that gave nothing.
        moved: the endpoint whose other half computed the prompt, and where the cache of it is.
        whole: endpoints that compute its prompt themselves from here on.
        short: tokens of the largest window that it was too long for; 0 before.
        snapshot: the newest one that decides as the request's own did: it says where replicas are.
    """

    __slots__ = (
        "arrival", "asked", "attempts", "committed", "doubted", "failures", "moved", "out", "plan",
        "short", "snapshot", "spent", "vetoed", "whole",
    )  # fmt: skip

    def __init__(self, committed: Committed[Plan], attempts: list[Attempt]) -> None:
        self.committed = committed
        self.attempts = attempts
        self.plan = committed.subject
        self.arrival = self.plan.arrival
        self.snapshot = self.arrival.snapshot
        self.failures: list[Failed] = []
        self.vetoed: list[str] = []
        self.spent: dict[str, float] = {}
        self.doubted: Dispatched | None = None
        self.asked: set[str] = set()
        self.out: set[str] = set()
        self.moved: tuple[str, Mapping[str, object]] | None = None
        self.whole: set[str] = set()
        self.short = 0

    def cache_for(self, endpoint: str) -> Mapping[str, object] | None:
        """Where the prompt's cache is, if it was made for this endpoint."""
        return None if self.moved is None or self.moved[0] != endpoint else self.moved[1]

    def outgrew(self, candidacy: Candidacy, one: Failed) -> bool:
        """Whether the request was too long for this endpoint, and another one takes more, or was
        asked before and may: what that one failed by is then what may change.

        Tokens are counted here by a rule of thumb: of code or Chinese there are more.
        """
        window = one.window or candidacy.endpoint.context_tokens
        if one.result != Kind.CONTEXT_LENGTH:
            return False
        if window is not None:
            self.short = max(self.short, window)
            if not all(self.is_short(other.endpoint) for other in self.plan.ranked.order):
                return True
        before = {past.endpoint for past in self.attempts if past.result not in _SAYS_NOTHING}
        # Who only computes a prompt for another one is none that could have answered.
        order = {other.endpoint.name: other.endpoint for other in self.plan.ranked.order}
        others = [
            order[name].context_tokens for name in before & order.keys() - {candidacy.endpoint.name}
        ]
        return any(takes is None or window is None or takes > window for takes in others)

    def is_short(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint is not known to take more than what the request was too long for."""
        return self.short > 0 and (endpoint.context_tokens or 0) <= self.short

    def is_unfit(self, endpoint: Endpoint) -> bool:
        """Whether no replica of an endpoint will take the request: too long, or inexpressible."""
        return self.is_short(endpoint) or any(
            one.endpoint == endpoint.name and one.result == Inexpressible.code
            for one in self.attempts
        )

    @property
    def tenant(self) -> str:
        """Whose request it is."""
        return self.plan.admitted.authenticated.principal.tenant

    @property
    def tried(self) -> int:
        """Attempts that might have answered."""
        return sum(1 for one in self.attempts if one.result not in _NO_ANSWER)

    @property
    def left(self) -> int:
        """Attempts that may still be made."""
        return self.arrival.snapshot.config.router.limits.attempts - self.tried
