"""The burst budget: what may be spent at an endpoint in any hour or day, as its `burst:` says.

Everything that is sent there counts, whoever asks and whatever for: first attempts, failover,
hedges, shadow calls. An endpoint without room for a request is passed over before the plan is
made, and each attempt takes the most that it may cost before it is sent: a token a byte of the
prompt, and as many as the answer may have. What the endpoint then tells of its usage takes the
place of that; what was not run costs nothing; what may have been run, and tells nothing, costs all
that was taken.

A budget only leaves endpoints out. Where it leaves out all that are inside the boundary the client
is told so, and when there will be room.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final, NamedTuple, TypeVar

from regions.health import Sign
from regions.model import Endpoint
from router.answers.outcomes import SPENT, Failed, burst_refusal
from router.attempts.running import Run
from router.entries.alike import Alike
from router.metrics import Metrics
from router.opening import OpenedStream, OpenedWhole
from router.state.spending import Budget, Claim, Spending, Spent, Taken
from router.transport.messages import Fate
from router.types import Admitted, Candidacy
from router.usage import read

T = TypeVar("T")
Kept = tuple[Candidacy, ...]
REFUSED: Final = "domicile_burst_refused_total"
_CAPS: Final = ("max_completion_tokens", "max_tokens")


class Stand(NamedTuple):
    """How one budget stands: `of` dollars or tokens, of which so much counts now."""

    endpoint: str
    of: str
    limit: float
    spent: float
    seconds: float


def budgets(endpoint: Endpoint) -> tuple[Budget, ...]:
    """What limits an endpoint, dollars (in millionths) before tokens."""
    burst = endpoint.burst
    written = () if burst is None else (("dollars", burst.money), ("tokens", burst.tokens))
    return tuple([Budget(endpoint.name, of, *one) for of, one in written if one is not None])


def claims(endpoint: Endpoint, body: Mapping[str, object], size: int) -> tuple[Claim, ...]:
    """The most that one attempt there may cost.

    Args:
        size: of the request, in bytes: no tokenizer makes more tokens than those.
    """
    most = _at_most(endpoint, body, size)
    if most is None:
        return tuple([Claim(one, inf) for one in budgets(endpoint)])
    return tuple([Claim(one, _amount(one, endpoint, *most)) for one in budgets(endpoint)])


def _at_most(endpoint: Endpoint, body: Mapping[str, object], size: int) -> tuple[int, int] | None:
    """Tokens of prompt and answers; `None` where nothing bounds them."""
    output = None if endpoint.burst is None else endpoint.burst.output
    context, count = endpoint.context_tokens, body.get("n")
    said = [value for name in _CAPS if type(value := body.get(name)) is int]
    # Whoever asks for more may get it, whatever an answer has to which nobody sets a limit.
    longest = [one for one in (max(said, default=output), context) if one is not None]
    count = 1 if count is None else count
    if type(count) is not int or count < 1 or not longest:
        return None
    return (size if context is None else min(size, context)), count * min(longest)


def _amount(budget: Budget, endpoint: Endpoint, prompt: int, output: int) -> int:
    """Of one budget. A price for a million tokens is one in millionths for a token."""
    if budget.name == "tokens":
        return prompt + output
    price = endpoint.price
    return ceil((price.input or 0.0) * prompt + (price.output or 0.0) * output)


class Paid:
    """What one attempt took of its endpoint's budgets. Whatever comes first settles it."""

    __slots__ = ("_endpoint", "_spending", "_taken", "sent")

    def __init__(self, spending: Spending, endpoint: Endpoint, taken: tuple[Taken, ...]) -> None:
        self._spending = spending
        self._endpoint = endpoint
        self._taken = taken
        self.sent = False

    def book(self, told: tuple[int, int] | None) -> None:
        """What the endpoint told of its usage, in tokens, takes the place of what was taken."""
        if told is not None:
            prompt, output = told
            self._settle(
                [_amount(one.budget, self._endpoint, prompt, output) for one in self._taken]
            )

    def unused(self, opened: OpenedStream | OpenedWhole) -> None:
        """The same of a whole answer that goes to nobody: it was run, and told its usage."""
        used = read(opened.frame.usage) if isinstance(opened, OpenedWhole) else None
        self.book(None if used is None else (used.input, used.output))

    def close(self, ran: bool) -> None:
        """All of it was spent if it may have run, nothing else."""
        self._settle([one.amount if ran else 0 for one in self._taken])

    def _settle(self, used: Sequence[int]) -> None:
        taken, self._taken = self._taken, ()
        if taken:
            self._spending.settle(taken, used)


@dataclass(slots=True)
class Bursts:
    """The budgets of all endpoints of one router."""

    spending: Spending
    metrics: Metrics
    _kept: Alike[Kept, dict[frozenset[str], Kept]] = field(default_factory=Alike)

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced. What was spent stays."""
        self._kept.clear()

    def within(self, eligible: Kept, admitted: Admitted) -> tuple[Kept, tuple[str, ...]]:
        """The endpoints that have room for a request, and the names of those passed over.

        Raises:
            RequestError: none has room; says when one will have.
        """
        waits = dict(self._waits(eligible, admitted))
        if not waits:
            return eligible, ()
        for name in waits:
            self.metrics.count(REFUSED, (name,))
        if len(waits) == len(eligible):
            raise burst_refusal(waits)
        out = frozenset(waits)
        known = self._kept.get(eligible)
        if known is None:
            known = self._kept.put(eligible, {})
        if out not in known:
            known[out] = tuple([one for one in eligible if one.endpoint.name not in out])
        return known[out], tuple(waits)

    def _waits(self, eligible: Kept, admitted: Admitted) -> Iterator[tuple[str, float]]:
        for one in eligible:
            if one.endpoint.burst is not None:
                asked = claims(one.endpoint, admitted.body, len(admitted.raw))
                wait = self.spending.wait(asked)
                if wait > 0:
                    yield one.endpoint.name, wait

    async def paying(
        self, run: Run, candidacy: Candidacy, attempt: Callable[[Paid], Awaitable[T | None]]
    ) -> T | None:
        """Make an attempt once what it may cost was taken; `None` too where there is no room."""
        endpoint, plan = candidacy.endpoint, run.plan
        if endpoint.name in run.spent:
            return None
        try:
            taken = await self.spending.take(claims(endpoint, plan.body, len(plan.raw)))
        except Spent as spent:
            run.spent[endpoint.name] = spent.wait
            self.metrics.count(REFUSED, (endpoint.name,))
            wait = None if spent.wait == inf else spent.wait
            run.failures.append(Failed(SPENT, Sign.LOAD, Fate.NOT_SENT, None, "", wait, load=True))
            return None
        paid = Paid(self.spending, endpoint, taken)
        try:
            return await attempt(paid)
        finally:
            if not paid.sent:
                paid.close(ran=False)

    def stands(self, endpoints: Mapping[str, Endpoint]) -> Iterator[Stand]:
        """How each budget stands: of money in dollars."""
        for endpoint in endpoints.values():
            for one in budgets(endpoint):
                unit = 1_000_000 if one.name == "dollars" else 1
                spent = self.spending.spent(one) / unit
                yield Stand(endpoint.name, one.name, one.limit / unit, spent, one.seconds)
