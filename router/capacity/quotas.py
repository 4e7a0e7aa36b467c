"""A tenant's own limits: requests, tokens and open requests, reserved before they are used.

The estimate of a request's tokens is taken before it runs and corrected when its usage is
known. A request that ends before anything was sent gives everything back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from policies.model import Rate, Tenant
from router.config import Config
from router.errors import RequestError
from router.state.ledger import Bucket, Full, Ledger, Level, Seats, Take
from router.usage import prompt_bytes

BYTES_PER_TOKEN: Final = 4
_APART: Final = 60.0
"""Seconds between the first and the last of those who are told to come again."""
_KEPT: Final = 4096
_ANSWERS: Final = 128
"""Answers to one request (`n`), at most: what endpoints allow."""


class Turns:
    """When each of those that a limit refused is to come again: one after the other, as it refills.
    Told all the same, all but the first would be refused again.

    Args:
        clock: monotonic seconds.
    """

    __slots__ = ("_clock", "_told")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}

    def after(self, full: Full) -> float:
        """Seconds to wait: after whoever was told so before, a minute at most: who asks again and
        again, and never comes as told, keeps nobody out for long."""
        if full.take is None:
            return full.retry_after
        now, bucket = self._clock(), full.take.bucket
        if len(self._told) >= _KEPT:
            self._told = {key: at for key, at in self._told.items() if at > now}
        each = min(full.take.amount, full.limit) * bucket.seconds / full.limit
        last, after = self._told.get(bucket.key, now), now + full.retry_after
        if last > now:  # else whoever was told has come, and the limit counts that
            after = max(after, last + each)
        self._told[bucket.key] = min(after, now + full.retry_after + _APART)
        return self._told[bucket.key] - now


class Quotas:
    """Reserves against one ledger.

    Args:
        clock: monotonic seconds.
    """

    __slots__ = ("_ledger", "_turns")

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._turns = Turns(clock)

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
        takes, levels = await self.taken(takes, seats, lease)
        return Reservation(self, tenant, lease, takes, seats, levels)

    async def taken(
        self, takes: tuple[Take, ...], seats: Sequence[Seats], lease: str
    ) -> tuple[tuple[Take, ...], tuple[Level, ...]]:
        """What was taken, as it is to be given back, and how the limits stand then.

        Raises:
            RequestError: 429, when one of them is used up.
        """
        try:
            levels = await self._ledger.take(takes, seats, lease)
        except Full as full:
            raise refused(full, self._turns.after(full)) from None
        if any(level.alone for level in levels):
            takes = tuple([replace(take, alone=True) for take in takes])
        return takes, levels

    def settle(self, takes: Sequence[Take]) -> None:
        """See `Ledger`."""
        self._ledger.settle(takes)

    def leave(self, seats: Sequence[Seats], lease: str) -> None:
        """See `Ledger`."""
        self._ledger.leave(seats, lease)


class Reservation:
    """What one request holds of its tenant's limits. Closing twice gives back once."""

    __slots__ = ("_quotas", "_seats", "_settled", "_takes", "_tenant", "_tokens", "lease", "levels")

    def __init__(
        self,
        quotas: Quotas,
        tenant: Tenant,
        lease: str,
        takes: tuple[Take, ...],
        seats: tuple[Seats, ...],
        levels: tuple[Level, ...],
    ) -> None:
        self._quotas = quotas
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
        takes = _takes(self._tenant, "tokens", rate, amount)
        if takes:
            (self._tokens,), levels = await self._quotas.taken(takes, (), self.lease)
            self.levels += levels

    def settle(self, used: int) -> None:
        """Correct the estimate, or what was said before, to what was used; the request itself
        stays counted."""
        self._settled = True
        if self._tokens is not None and (more := used - self._tokens.amount):
            self._quotas.settle((replace(self._tokens, amount=more),))
            self._tokens = replace(self._tokens, amount=used)

    def close(self) -> None:
        """Leave the seat; a request that was never settled gives its amounts back."""
        seats, self._seats = self._seats, ()
        if seats:
            self._quotas.leave(seats, self.lease)
        if not self._settled:
            self._settled = True
            held = (*self._takes, *((self._tokens,) if self._tokens else ()))
            self._quotas.settle([replace(t, amount=-t.amount) for t in held])

    @property
    def headers(self) -> Mapping[str, str]:
        """`x-ratelimit-…` headers, as OpenAI's API names them."""
        shown: dict[str, str] = {}
        for level in self.levels:
            shown[f"x-ratelimit-limit-{level.name}"] = str(level.limit)
            shown[f"x-ratelimit-remaining-{level.name}"] = str(level.remaining)
            shown[f"x-ratelimit-reset-{level.name}"] = f"{math.ceil(level.reset)}s"
        return shown


def refused(full: Full, after: float) -> RequestError:
    """A used-up limit as the client's error; `after` so many seconds it is to come again."""
    code = "concurrency_limit" if full.name == "concurrency" else "rate_limit"
    wait = max(1, math.ceil(after))
    left, reset = 0, wait
    if full.level is not None:
        left, reset = full.level.remaining, max(1, math.ceil(full.level.reset))
    return RequestError(
        code,
        f"the limit of {full.limit} {full.name} is used up; try again in {wait} s",
        retry_after=after,
        headers={
            f"x-ratelimit-limit-{full.name}": str(full.limit),
            f"x-ratelimit-remaining-{full.name}": str(left),
            f"x-ratelimit-reset-{full.name}": f"{reset}s",
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
