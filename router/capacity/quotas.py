"""A tenant's own limits: requests, tokens and open requests, reserved before they are used.

The estimate of a request's tokens is taken before it runs and corrected when its usage is
known. A request that ends before anything was sent gives everything back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from policies.model import Rate, Tenant
from router.config import Config
from router.errors import RequestError
from router.state.ledger import Bucket, Full, Ledger, Level, Seats, Take
from router.usage import prompt_bytes

BYTES_PER_TOKEN: Final = 4
_ANSWERS: Final = 128
"""Answers to one request (`n`), at most: what endpoints allow."""


class Quotas:
    """Reserves against one ledger."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def own(self, tenant: str, key: str, limit: int | None) -> Seats | None:
        """A key's own limit of open requests, where processes share the ledger; else the process
        counts it, see `Concurrency`."""
        if limit is None or not self._ledger.shared:
            return None
        return Seats("concurrency", f"{tenant}/key:{key}", limit)

    async def enter(
        self, tenant: Tenant | None, lease: str, own: Seats | None = None
    ) -> Reservation | None:
        """Reserve one request and one seat; `None` for a tenant without limits.

        Args:
            own: the key's seats, reserved with the tenant's.

        Raises:
            RequestError: 429 with a computed `retry-after`.
        """
        if tenant is None or (own is None and not limited(tenant)):
            return None
        takes = _takes(tenant, "requests", tenant.limits.requests, 1)
        seats = _seats(tenant) if own is None else (*_seats(tenant), own)
        levels = await _taken(self._ledger, takes, seats, lease)
        return Reservation(self._ledger, tenant, lease, takes, seats, levels)


async def _taken(
    ledger: Ledger, takes: Sequence[Take], seats: Sequence[Seats], lease: str
) -> tuple[Level, ...]:
    try:
        return await ledger.take(takes, seats, lease)
    except Full as full:
        raise refused(full) from None


class Reservation:
    """What one request holds of its tenant's limits. Closing twice gives back once."""

    __slots__ = ("_ledger", "_seats", "_settled", "_takes", "_tenant", "_tokens", "lease", "levels")

    def __init__(
        self,
        ledger: Ledger,
        tenant: Tenant,
        lease: str,
        takes: tuple[Take, ...],
        seats: tuple[Seats, ...],
        levels: tuple[Level, ...],
    ) -> None:
        self._ledger = ledger
        self._tenant = tenant
        self._takes = takes
        self._seats = seats
        self._tokens: Take | None = None
        self._settled = False
        self.lease = lease
        self.levels = levels

    async def tokens(self, estimate: int) -> None:
        """Reserve the tokens that the request may cost, the whole limit at most: what asks for
        more waits until nothing else is open, and must not keep others out for longer.

        Raises:
            RequestError: 429; the caller closes the reservation.
        """
        rate = self._tenant.limits.tokens
        amount = max(1, estimate if rate is None else min(estimate, rate.amount))
        for take in _takes(self._tenant, "tokens", rate, amount):
            self.levels += await _taken(self._ledger, (take,), (), self.lease)
            self._tokens = take

    def settle(self, used: int) -> None:
        """Correct the estimate to what was used; the request itself stays counted."""
        self._settled = True
        if self._tokens is not None:
            more = used - self._tokens.amount
            if more:
                self._ledger.settle((Take(self._tokens.bucket, more),))

    def close(self) -> None:
        """Leave the seat; a request that was never settled gives its amounts back."""
        seats, self._seats = self._seats, ()
        if seats:
            self._ledger.leave(seats, self.lease)
        if not self._settled:
            self._settled = True
            held = (*self._takes, *((self._tokens,) if self._tokens else ()))
            self._ledger.settle([Take(t.bucket, -t.amount) for t in held])

    @property
    def headers(self) -> Mapping[str, str]:
        """`x-ratelimit-…` headers, as OpenAI's API names them."""
        shown: dict[str, str] = {}
        for level in self.levels:
            shown[f"x-ratelimit-limit-{level.name}"] = str(level.limit)
            shown[f"x-ratelimit-remaining-{level.name}"] = str(level.remaining)
            shown[f"x-ratelimit-reset-{level.name}"] = f"{math.ceil(level.reset)}s"
        return shown


def refused(full: Full) -> RequestError:
    """A used-up limit as the client's error."""
    code = "concurrency_limit" if full.name == "concurrency" else "rate_limit"
    wait = max(1, math.ceil(full.retry_after))
    return RequestError(
        code,
        f"the limit of {full.limit} {full.name} is used up; try again in {wait} s",
        retry_after=full.retry_after,
        headers={
            f"x-ratelimit-limit-{full.name}": str(full.limit),
            f"x-ratelimit-remaining-{full.name}": "0",
            f"x-ratelimit-reset-{full.name}": f"{wait}s",
        },
    )


def exactness(config: Config, workers: int) -> str:
    """How exact the tenants' and keys' limits are, in words for the operator."""
    if workers == 1:
        where = "this process" if config.state is None else "Redis, over all routers"
        return f"exact, counted in {where}"
    part = f"1/{workers} of each limit, one at least"
    if config.state is None:
        return f"each of {workers} workers allows {part}: `state.redis` makes tenants' limits exact"
    return (
        f"limits are exact, counted in Redis; of keys without a `concurrency` of their own each of "
        f"{workers} workers allows {part}"
    )


def estimate(raw: bytes, body: Mapping[str, object], output_tokens: int) -> int:
    """Tokens to reserve: the body's bytes at four a token, and the expected output of each of
    the answers asked for."""
    count = body.get("n")
    answers = min(max(count, 1), _ANSWERS) if type(count) is int else 1
    return prompt_bytes(raw, body) // BYTES_PER_TOKEN + output_tokens * answers


def limited(tenant: Tenant) -> bool:
    """Whether anything limits a tenant; `Quotas.enter` gives `None` where nothing does."""
    limits = tenant.limits
    return (limits.requests, limits.tokens, limits.concurrency) != (None, None, None)


def _takes(tenant: Tenant, name: str, rate: Rate | None, amount: int) -> tuple[Take, ...]:
    if rate is None:
        return ()
    return (Take(Bucket(name, f"{tenant.name}/{name}", rate.amount, rate.seconds), amount),)


def _seats(tenant: Tenant) -> tuple[Seats, ...]:
    limit = tenant.limits.concurrency
    return () if limit is None else (Seats("concurrency", f"{tenant.name}/open", limit),)
