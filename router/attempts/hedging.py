"""Hedged first tokens: a second attempt beside one that takes unusually long, where a model or an
endpoint says `hedge:`.

Only streams, only before first content, only inside the committed plan and the attempt's own tier,
within the retry budget and `at_most` of the model's requests. Both endpoints must be ones where
running a request twice is known to do no harm, as after an unknown fate; stateful calls never are.
The second attempt has its own durable entry before it is sent. Whoever gives first content first is
relayed; the other is cut off and stands in the outcome as `hedged`: its provider may charge for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeVar

from policies.model import Hedge
from regions.model import Endpoint
from router.attempts.retrying import RetryBudget, is_harmless
from router.attempts.silence import Silence
from router.selection import is_open
from router.types import Candidacy, Plan, Purpose

T = TypeVar("T")
USUAL: Final = 0.95
"""The share of first contents that came sooner than `p95`."""
BURST: Final = 20
"""Hedges may come together, as those of this many requests that hedge always."""


@dataclass(slots=True)
class Hedges:
    """How many hedges each model has left, and when one is due."""

    silence: Silence
    _left: dict[tuple[str, Hedge], RetryBudget] = field(default_factory=dict)

    def wait(self, plan: Plan, candidacy: Candidacy, replica: str) -> float | None:
        """Seconds until a second attempt may be made beside one at this replica; `None`: never.

        Ask once per request: each fills the model's share.
        """
        hedge = self._of(plan, candidacy.endpoint)
        if hedge is None or not is_harmless(plan, candidacy.endpoint):
            return None
        if candidacy.endpoint.prefill is not None:
            return None  # two steps are not run beside others
        self._budget(plan, hedge).earn()
        if hedge.after is not None:
            return hedge.after
        return self.silence.within(replica, USUAL)

    def spend(self, plan: Plan, candidacy: Candidacy) -> bool:
        """Take one hedge; `False` when the model's share is used up."""
        hedge = self._of(plan, candidacy.endpoint)
        return hedge is not None and self._budget(plan, hedge).spend()

    def _of(self, plan: Plan, endpoint: Endpoint) -> Hedge | None:
        """An endpoint's own word counts before its model's."""
        admitted = plan.admitted
        if not admitted.asked.stream or plan.arrival.purpose is not Purpose.INTERACTIVE:
            return None
        after = endpoint.settings.get("hedge_after")
        if after is not None:
            at_most = float(endpoint.settings["hedge_at_most"])
            return Hedge(None if after == "p95" else float(after), at_most)
        model = plan.arrival.snapshot.policy.models.get(admitted.asked.model)
        return None if model is None else model.hedge

    def _budget(self, plan: Plan, hedge: Hedge) -> RetryBudget:
        key = plan.admitted.asked.model, hedge
        known = self._left.get(key)
        if known is None:
            burst = max(1.0, hedge.at_most * BURST)
            known = self._left[key] = RetryBudget(hedge.at_most, burst)
        return known


def beside_of(plan: Plan, first: Candidacy, marked: AbstractSet[str]) -> Iterator[Candidacy]:
    """Where a request may run beside its attempt at `first`, in the plan's order: in the same tier,
    where that does no harm, and where every `prefer` is open though `first` has not failed.

    Args:
        marked: names of endpoints that are marked bad.
    """
    order, eligible = plan.ranked.order, plan.ranked.filtered.eligible
    turn = order.index(first)
    out = marked | {one.endpoint.name for one in order[:turn]}
    for one in order[turn:]:
        if one.tier != first.tier or not is_harmless(plan, one.endpoint):
            continue
        if one.endpoint.prefill is not None:
            continue
        if one is first or is_open(one, eligible, out):
            yield one


async def race(
    first: Coroutine[object, object, T | None],
    wait: float,
    second: Callable[[], Coroutine[object, object, T | None] | None],
    lose: Callable[[T], None],
) -> T | None:
    """What `first` gives, or `second`, asked for after `wait` seconds: the first not to be `None`.

    The other is cancelled and awaited; if it had one all the same, that is given to `lose`. So is
    the winner's, when who asked is cancelled before it has it. What `first` raises is raised; what
    `second` raises only when `first` has nothing.
    """
    one = asyncio.create_task(first)
    tasks, found = [one], None
    try:
        await asyncio.wait(tasks, timeout=wait)
        beside = None if one.done() else second()
        if beside is not None:
            tasks.append(asyncio.create_task(beside))
        found = await _winner(tasks)
    finally:
        try:
            await _end(tasks, lose)
        except asyncio.CancelledError:
            if found is not None:
                lose(found)
            raise
    return found


async def _winner(tasks: list[asyncio.Task[T | None]]) -> T | None:
    one = tasks[0]
    pending = set(tasks)
    failed: BaseException | None = None
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in sorted(done, key=tasks.index):
            error = task.exception()
            if error is not None and task is one:
                raise error
            failed = error or failed
            found = None if error is not None else task.result()
            if found is not None:
                tasks.remove(task)
                return found
    if failed is not None:
        raise failed
    return None


async def _end(tasks: list[asyncio.Task[T | None]], lose: Callable[[T], None]) -> None:
    """Cancel whoever still runs; what somebody had all the same is lost."""

    def lost(task: asyncio.Task[T | None]) -> None:
        if task.cancelled() or task.exception() is not None:
            return
        if (found := task.result()) is not None:
            lose(found)

    for task in tasks:
        task.add_done_callback(lost)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
