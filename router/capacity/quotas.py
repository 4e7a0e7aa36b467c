"""Limits of a tenant, of an app and of a key: requests, tokens, dollars and open requests, reserved
before they are used, of all or of none.

The estimate of a request's tokens and price is taken before it runs and corrected when its usage is
known. A request that ends before anything was sent gives everything back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from policies.model import App, Limits, Policy, Rate, Tenant
from router import prices
from router.config import Config
from router.entries.alike import Alike
from router.errors import RequestError
from router.metrics import Metrics
from router.state.ledger import Bucket, Full, Ledger, Level, Seats, Take
from router.usage import Usage, prompt_bytes

if TYPE_CHECKING:
    from router.auth import Principal

Holder = tuple[str, Limits]
BYTES_PER_TOKEN: Final = 4
_MICRO: Final = 1_000_000
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

    __slots__ = ("_clock", "_most", "_told")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._most = _KEPT
        self._told: dict[str, float] = {}

    def after(self, full: Full) -> float:
        """Seconds to wait: after whoever was told so before, a minute at most: who asks again and
        again, and never comes as told, keeps nobody out for long."""
        if full.take is None:
            return full.retry_after
        now, bucket = self._clock(), full.take.bucket
        if len(self._told) >= self._most:
            self._told = {key: at for key, at in self._told.items() if at > now}
            self._most = max(_KEPT, 2 * len(self._told))
        each = min(full.take.amount, bucket.limit) * bucket.seconds / bucket.limit
        last, after = self._told.get(bucket.key, now), now + full.retry_after
        if last > now:  # else whoever was told has come, and the limit counts that
            after = max(after, last + each)
        self._told[bucket.key] = min(after, now + full.retry_after + _APART)
        return self._told[bucket.key] - now


@dataclass(frozen=True, slots=True)
class Demand:
    """What every request of a key takes of its limits before it is read: one of each that counts
    requests, and a seat of each that counts open ones.

    Attributes:
        held: whose limits count, see `holders`; one at least.
        measured: whether tokens or dollars are limited: what a request comes to.
        priced: whether what it costs is limited.
    """

    held: tuple[Holder, ...]
    takes: tuple[Take, ...]
    seats: tuple[Seats, ...]
    measured: bool
    priced: bool


class Quotas:
    """Reserves against one ledger.

    Args:
        clock: monotonic seconds.
        metrics: where refusals are counted.
    """

    __slots__ = ("_demands", "_metrics", "_turns", "ledger")

    def __init__(
        self,
        ledger: Ledger,
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics | None = None,
    ) -> None:
        self.ledger = ledger
        self._turns = Turns(clock)
        self._metrics = metrics or Metrics()
        self._demands: Alike[Principal, tuple[Policy, Demand | None]] = Alike()

    def of(self, policy: Policy, key: Principal) -> Demand | None:
        """What a key's requests take, by the policy in force; `None` where nothing limits them.
        Worked out once for both."""
        known = self._demands.get(key)
        if known is None or known[0] is not policy:
            held = limited(policy, key)
            known = self._demands.put(key, (policy, demand(held) if held else None))
        return known[1]

    def forget(self) -> None:
        """Keep nothing of a policy that has been replaced."""
        self._demands.clear()

    async def enter(self, wanted: Demand, lease: str) -> Reservation:
        """Reserve one request and one seat of each.

        Raises:
            RequestError: 429 with a computed `retry-after`.
        """
        takes, levels = await self.taken(wanted.takes, wanted.seats, lease)
        return Reservation(self, wanted, lease, takes, levels)

    async def taken(
        self, takes: tuple[Take, ...], seats: Sequence[Seats], lease: str
    ) -> tuple[tuple[Take, ...], tuple[Level, ...]]:
        """What was taken, as it is to be given back, and how the limits stand then.

        Raises:
            RequestError: 429, when one of them is used up.
        """
        try:
            levels = await self.ledger.take(takes, seats, lease)
        except Full as full:
            self._metrics.count("domicile_limited_total", (_whose(full.of)[0], full.of.name))
            raise refused(full, self._turns.after(full)) from None
        if levels and any(level.alone for level in levels):
            takes = tuple([replace(take, alone=True) for take in takes])
        return takes, levels


class Reservation:
    """What one request holds of its limits. Closing twice gives back once."""

    __slots__ = ("_quotas", "_seats", "_settled", "_takes", "_used", "lease", "levels", "wanted")

    def __init__(
        self,
        quotas: Quotas,
        wanted: Demand,
        lease: str,
        takes: tuple[Take, ...],
        levels: tuple[Level, ...],
    ) -> None:
        self._quotas = quotas
        self._takes = takes
        self._seats = wanted.seats
        self._used: tuple[Take, ...] = ()
        self._settled = False
        self.wanted = wanted
        self.lease = lease
        self.levels = levels

    async def tokens(self, estimate: int, micro: int = 0) -> None:
        """Reserve what the request may use: tokens, and dollars in millionths. The whole limit at
        most: what asks for more waits until nothing else is open, and must not keep others out for
        longer.

        Raises:
            RequestError: 429; the caller closes the reservation.
        """
        held = self.wanted.held
        takes = (
            *_takes("tokens", [(name, limits.tokens, estimate) for name, limits in held]),
            *_takes("dollars", [(name, limits.dollars, micro) for name, limits in held]),
        )
        if takes:
            self._used, levels = await self._quotas.taken(takes, (), self.lease)
            self.levels += levels

    def settle(self, used: int, micro: int = 0) -> None:
        """Correct the estimate, or what was said before, to the tokens and millionths of dollars
        that were used; the request itself stays counted."""
        self._settled = True
        if not self._used:
            return
        found = [(take, micro if take.bucket.name == "dollars" else used) for take in self._used]
        more = [replace(t, amount=now - t.amount) for t, now in found if now != t.amount]
        if more:
            self._quotas.ledger.settle(more)
            self._used = tuple([replace(take, amount=now) for take, now in found])

    def close(self) -> None:
        """Leave the seat; a request that was never settled gives its amounts back."""
        seats, self._seats = self._seats, ()
        if seats:
            self._quotas.ledger.leave(seats, self.lease)
        if not self._settled:
            self._settled = True
            if held := (*self._takes, *self._used):
                self._quotas.ledger.settle([replace(t, amount=-t.amount) for t in held])

    @property
    def headers(self) -> Mapping[str, str]:
        """`x-ratelimit-…` headers, as OpenAI's API names them; of several limits of one kind
        the one of which least is left."""
        shown: dict[str, str] = {}
        for level in sorted(self.levels, key=lambda one: (-one.remaining, one.reset)):
            if level.name == "dollars":
                continue
            shown[f"x-ratelimit-limit-{level.name}"] = str(level.limit)
            shown[f"x-ratelimit-remaining-{level.name}"] = str(level.remaining)
            shown[f"x-ratelimit-reset-{level.name}"] = f"{math.ceil(level.reset)}s"
        return shown


def refused(full: Full, after: float) -> RequestError:
    """A used-up limit as the client's error; `after` so many seconds it is to come again."""
    name, limit, whose = full.of.name, full.of.limit, "{} `{}`".format(*_whose(full.of))
    code = "concurrency_limit" if name == "concurrency" else "rate_limit"
    wait = max(1, math.ceil(after))
    if name == "dollars":
        told = f"the budget of {limit / _MICRO:g} dollars of {whose} is spent"
        return RequestError("budget_spent", f"{told}; try again in {wait} s", retry_after=after)
    left, reset = 0, wait
    if full.level is not None:
        left, reset = full.level.remaining, max(1, math.ceil(full.level.reset))
    return RequestError(
        code,
        f"the limit of {limit} {name} of {whose} is used up; try again in {wait} s",
        retry_after=after,
        headers={
            f"x-ratelimit-limit-{name}": str(limit),
            f"x-ratelimit-remaining-{name}": str(left),
            f"x-ratelimit-reset-{name}": f"{reset}s",
        },
    )


def exactness(config: Config, workers: int) -> str:
    """How exact limits are, in words for the operator."""
    if workers == 1:
        where = "this process" if config.state is None else "Redis, over all routers"
        return f"exact, counted in {where}"
    part = f"1/{workers} of each limit, one at least"
    if config.state is None:
        return f"each of {workers} workers allows {part}: `state.redis` makes limits exact"
    return (
        f"limits are exact, counted in Redis; of keys without a `concurrency` of their own each of "
        f"{workers} workers allows {part}"
    )


def estimate(raw: bytes, body: Mapping[str, object], output_tokens: int) -> Usage:
    """Tokens to reserve: the body's bytes at four a token, and the expected output of each of
    the answers asked for."""
    count = body.get("n")
    answers = min(max(count, 1), _ANSWERS) if type(count) is int else 1
    prompt = prompt_bytes(raw, body) // BYTES_PER_TOKEN
    return Usage(prompt, output_tokens * answers, estimated=True)


def dearest(policy: Policy, model: str, usage: Usage) -> int:
    """What a model's dearest endpoint takes for so many tokens, in millionths of a dollar. One
    without a price counts as nothing."""
    known = policy.models.get(model)
    named = () if known is None else [name for tier in known.tiers.values() for name in tier]
    cost = prices.dearest([policy.endpoints[name].price for name in named], usage)
    return 0 if cost is None else math.ceil(cost * _MICRO)


def limited(policy: Policy, key: Principal) -> tuple[Holder, ...]:
    """Whose limits count for a key's requests, by the policy in force."""
    app = None if key.app is None else policy.apps.get(key.app)
    return holders(policy.tenants.get(key.tenant), app, key)


def holders(
    tenant: Tenant | None, app: App | None = None, key: Principal | None = None
) -> tuple[Holder, ...]:
    """Who limits anything, by the name it is counted under. An app's limits are of each tenant by
    itself: all that one request takes lies on one node of a cluster."""
    if tenant is None:
        return ()
    found = [(tenant.name, tenant.limits)] if tenant.limits.any else []
    if app is not None and app.limits.any:
        found.append((f"{tenant.name}/app:{app.name}", app.limits))
    if key is not None and key.limits.any:
        found.append((f"{tenant.name}/key:{key.key}", key.limits))
    return tuple(found)


def demand(held: Sequence[Holder]) -> Demand:
    """What a request takes before it is read, where these limits count."""
    seats = [
        Seats("concurrency", f"{name}/open", limits.concurrency)
        for name, limits in held if limits.concurrency is not None
    ]  # fmt: skip
    return Demand(
        tuple(held),
        _takes("requests", [(name, limits.requests, 1) for name, limits in held]),
        tuple(seats),
        measured=any(limits.tokens or limits.dollars for _, limits in held),
        priced=any(limits.dollars is not None for _, limits in held),
    )


def _whose(of: Bucket | Seats) -> tuple[str, str]:
    """Whose limit it is: `tenant`, `app` or `key`, and its name. See `holders`."""
    *above, own, _ = of.key.split("/")
    kind, _, name = own.partition(":") if above else ("tenant", "", own)
    return kind, name


def _takes(name: str, wanted: Sequence[tuple[str, Rate | None, int]]) -> tuple[Take, ...]:
    """Of each that is limited so much, one at least and the whole limit at most."""
    return tuple([
        Take(
            Bucket(name, f"{holder}/{name}", rate.amount, rate.seconds),
            max(1, min(amount, rate.amount)),
        )
        for holder, rate, amount in wanted if rate is not None
    ])  # fmt: skip
