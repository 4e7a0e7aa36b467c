"""What may be spent in any stretch of time: an amount is taken before it is used, or not at all.

The time of a budget is cut into slots of a sixtieth of it. An amount counts from the slot in which
it was taken until all of that slot is older than the budget's time. So in no stretch of that time,
wherever it begins, is more taken than the budget; a sixtieth of the time is lost at most. A bucket
that refills would let twice the budget through: what it had saved, and what came since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Final, Protocol

SLOTS: Final = 60
"""Slots that a budget's time has. One more is counted: the newest has only begun."""
SOON: Final = 5.0
"""Seconds after which to ask again where requests under way will probably give enough back."""
ALIKE: Final = 1.0
"""Seconds by which two clocks may differ and still say the same."""
Slots = Mapping[int, int]
"""What was taken in each slot, by the slot's number."""


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `limit` in any `seconds`, at one endpoint; `name`: of what."""

    endpoint: str
    name: str
    limit: int
    seconds: float

    @property
    def key(self) -> str:
        """What it is counted under. Another time has other slots, and begins anew."""
        return f"{self.endpoint}:{self.name}:{self.seconds:g}"

    @property
    def width(self) -> float:
        """Seconds of a slot."""
        return self.seconds / SLOTS

    def slot(self, now: float) -> int:
        """The number of the slot that a moment lies in."""
        return floor(now / self.width)


@dataclass(frozen=True, slots=True)
class Claim:
    """So much of a budget: whole numbers, or infinitely much of what nothing bounds."""

    budget: Budget
    amount: float


@dataclass(frozen=True, slots=True)
class Taken:
    """A claim that was granted, in a slot; `era`: of the clock that numbered it."""

    budget: Budget
    amount: int
    slot: int
    era: int = 0


class Spent(Exception):
    """A budget has no room. Nothing was taken of any.

    `wait`: seconds until it will have; infinite for more than it ever has.
    """

    def __init__(self, wait: float) -> None:
        super().__init__(wait)
        self.wait = wait


class Spending(Protocol):
    """Where it is counted what was spent."""

    def wait(self, claims: Sequence[Claim]) -> float:
        """Seconds until all of this fits, as far as is known here: 0 now, infinite never."""
        ...

    async def take(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        """Take all of it, or nothing. Raises Spent."""
        ...

    def settle(self, taken: Sequence[Taken], used: Sequence[int]) -> None:
        """Put what was used in the place of what was taken. Once for each; never raises."""
        ...

    def spent(self, budget: Budget) -> int:
        """What counts of a budget now, as far as is known here."""
        ...

    @property
    def degraded(self) -> str:
        """Why it is not exact right now; empty when it is."""
        ...

    async def close(self) -> None:
        """Say what is still to be said, if that is soon."""
        ...


def wait_for(spent: Slots, budget: Budget, limit: int, amount: float, now: float) -> float:
    """Seconds until `amount` fits below `limit`, when nothing else is taken meanwhile."""
    if amount > limit:
        return inf
    over = sum(spent.values()) + amount - limit
    if over <= 0:
        return 0.0
    for slot in sorted(spent):
        over -= spent[slot]
        if over <= 0:
            return max(0.0, (slot + SLOTS + 1) * budget.width - now)
    raise AssertionError("a budget that nothing is taken of has room")


def live(spent: Slots, slot: int) -> dict[int, int]:
    """What of it still counts in a slot."""
    return {one: amount for one, amount in spent.items() if one + SLOTS >= slot}


class LocalSpending:
    """See `Spending`: what one process spends.

    Args:
        clock: monotonic seconds.
        share: the part of every budget that is this process's.
        epoch: what makes seconds since 1970 of the clock's, so that slots have the same numbers
            after a restart.
    """

    def __init__(self, clock: Callable[[], float], share: float = 1.0, epoch: float = 0.0) -> None:
        self._clock = clock
        self._share = share
        self._epoch = epoch
        self.era = 0
        self._slots: dict[str, dict[int, int]] = {}
        self._widths: dict[str, float] = {}
        self._open: dict[str, int] = {}

    def now(self) -> float:
        """The time that slots are numbered by."""
        return self._clock() + self._epoch

    def by_clock(self, now: float) -> None:
        """Number slots by a clock that says `now`. What was taken before keeps its age at least."""
        moved, self._epoch = now - self.now(), now - self._clock()
        if abs(moved) < ALIKE or not self._slots:
            return
        self.era += 1
        for key, slots in self._slots.items():
            by = ceil(moved / self._widths[key])
            self._slots[key] = {slot + by: amount for slot, amount in slots.items()}

    def limit(self, budget: Budget) -> int:
        """What of a budget is this process's."""
        return int(budget.limit * self._share)

    def own(self, budget: Budget) -> dict[int, int]:
        """What this process took, by slot."""
        known = self._slots.get(budget.key)
        if known is None:
            return {}
        slot = budget.slot(self.now())
        if min(known, default=slot) + SLOTS < slot:
            known = self._slots[budget.key] = live(known, slot)
        return known

    def wait(self, claims: Sequence[Claim]) -> float:
        """See `Spending`."""
        return max(
            (self.wait_in(self.own(c.budget), c, self.limit(c.budget)) for c in claims),
            default=0.0,
        )

    def open(self, budget: Budget) -> int:
        """What requests under way hold here."""
        return self._open.get(budget.key, 0)

    def wait_in(self, spent: Slots, claim: Claim, limit: int, elsewhere: int = 0) -> float:
        """Seconds until a claim fits beside what was spent; less where requests under way, here
        and `elsewhere`, hold what is missing, of which most use a part only."""
        budget, amount = claim.budget, claim.amount
        wait = wait_for(spent, budget, limit, amount, self.now())
        if SOON < wait < inf:
            held = self.open(budget) + elsewhere
            return SOON if sum(spent.values()) - held + amount <= limit else wait
        return wait

    async def take(self, claims: Sequence[Claim]) -> tuple[Taken, ...]:
        """See `Spending`."""
        wait = self.wait(claims)
        if wait > 0:
            raise Spent(wait)
        return self.book(claims, [c.budget.slot(self.now()) for c in claims])

    def book(self, claims: Sequence[Claim], slots: Sequence[int]) -> tuple[Taken, ...]:
        """Count what was granted, in these slots."""
        taken = [
            Taken(claim.budget, int(claim.amount), slot, self.era)
            for claim, slot in zip(claims, slots, strict=True)
        ]
        for one in taken:
            self._add(one, one.amount)
            self._open[one.budget.key] = self._open.get(one.budget.key, 0) + one.amount
        return tuple(taken)

    def settle(self, taken: Sequence[Taken], used: Sequence[int]) -> None:
        """See `Spending`."""
        for one, amount in zip(taken, used, strict=True):
            if one.era == self.era:  # else nobody knows where it is; all of it stays
                self._add(one, amount - one.amount)
            self._open[one.budget.key] -= one.amount

    def _add(self, one: Taken, amount: int) -> None:
        slots = self._slots.setdefault(one.budget.key, {})
        self._widths[one.budget.key] = one.budget.width
        slots[one.slot] = slots.get(one.slot, 0) + amount

    def spent(self, budget: Budget) -> int:
        """See `Spending`."""
        return sum(self.own(budget).values())

    @property
    def degraded(self) -> str:
        """See `Spending`."""
        return ""

    async def close(self) -> None:
        """See `Spending`."""
