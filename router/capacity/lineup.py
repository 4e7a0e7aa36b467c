"""Which replica of many stands best, without a look at each: they are kept in order of a bound.

A replica's load is never below `bound`: what its answers under way weigh, and those of others that
its engine told of. Work, marks, ramps and queues only add to that. So who looks from the lowest
bound on, and stops where the next bound is above the best load found, has found what a look at
every replica finds. A bound changes only when a request enters or leaves, or when a reading does:
those few are put in their new places before the next look.

There is no lineup of a few (`FEW`), nor where replicas differ by declared priority or share. Where
none is well and has room, or each has prompts to compute, every replica is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Final, NamedTuple

from regions.fleet import Readings
from regions.health import Standing
from router.capacity.load import InFlight

FEW: Final = 4
"""Replicas up to which all are looked at: to keep them in order costs as much."""
LOTS: Final = 64
"""Replicas up to which each of those that might be chosen draws a lot, whether its load decides
already or not: equal seeds give the numbers that were measured so."""
UNDER_WAY: Final = 0.02
"""What a token of an answer under way weighs against one of a prompt that is still to compute."""
USUAL: Final = 512.0
"""Tokens of a request of which nothing is known, as those that other routers sent."""
_TRIES: Final = 16
"""Draws among replicas of one bound before each of them is looked at."""
_EARLY: Final = 1e-6
"""Seconds before a reading is stale that it isn't counted on."""


class Seat(NamedTuple):
    """One replica as it stands: the smallest is the best to ask.

    `load` is everything there, `work` the own prompts that are still to compute.
    """

    key: str
    standing: Standing
    full: bool
    load: float
    retry_in: float
    priority: int = 0
    work: float = 0.0

    @property
    def rank(self) -> tuple[bool, bool, int, int, float]:
        """Marked ones last, full ones before them, then by standing, priority and load."""
        marked = self.standing is Standing.MARKED
        return marked, self.full, self.standing.turn, self.priority, self.load

    @property
    def well(self) -> bool:
        """Whether nothing but its load tells it from the best, where no priority is declared."""
        return not self.full and not self.standing.turn


Look = Callable[[str], Seat]
"""How the replica of a key stands now."""


class Lineup:
    """The replicas of one endpoint in order of their bounds, of equal ones as they are written."""

    __slots__ = (
        "_berths", "_bounds", "_changed", "_high", "_inflight", "_low", "_numbers", "_order",
        "_readings", "_shared", "_until", "keys",
    )  # fmt: skip

    def __init__(self, keys: Sequence[str], inflight: InFlight, readings: Readings) -> None:
        self.keys = keys
        self._inflight, self._readings = inflight, readings
        self._berths = [inflight.berth(key) for key in keys]
        self._numbers: dict[object, int] = {}
        self._changed: set[object] = set(keys)
        for number, (key, berth) in enumerate(zip(keys, self._berths, strict=True)):
            self._numbers[key] = self._numbers[berth] = number
            berth.changed = readings.watched[key] = self._changed
        self._bounds = [0.0] * len(keys)
        self._order: list[tuple[float, int]] = [(0.0, number) for number in range(len(keys))]
        # Whose bounds have others' requests in them: these hold until then, and for means of a
        # request's tokens between the two.
        self._shared: set[int] = set()
        self._until, self._low, self._high = inf, 0.0, inf

    def close(self) -> None:
        """Follow its replicas no more."""
        for key, berth in zip(self.keys, self._berths, strict=True):
            if berth.changed is self._changed:
                berth.changed = None
            if self._readings.watched.get(key) is self._changed:
                del self._readings.watched[key]

    # ----------------------------------------------------------------------------------

    def _ordered(self, now: float) -> list[tuple[float, int]]:
        """Bounds with replicas' numbers, the lowest first, as all is now."""
        changed, shared = self._changed, self._shared
        if changed or shared:
            mean = self._inflight.mean or USUAL
            if now > self._until or not self._low <= mean <= self._high:
                # The fewer are in flight, the more their mean changes with each.
                part = 1 - 1 / sqrt(self._inflight.count + 2)
                self._until, self._low, self._high = inf, mean * part, mean / part
                changed.update([self.keys[number] for number in shared])
        if changed:
            self._place(now)
        return self._order

    def _place(self, now: float) -> None:
        """Put what changed in its place."""
        order, bounds = self._order, self._bounds
        many = len(self._changed) * 8 > len(self.keys)
        for one in self._changed:
            number = self._numbers[one]
            bound = self._bound(number, now)
            if bound != bounds[number]:
                if not many:
                    del order[bisect_left(order, (bounds[number], number))]
                    insort(order, (bound, number))
                bounds[number] = bound
        if many:
            order[:] = sorted([(bound, number) for number, bound in enumerate(bounds)])
        self._changed.clear()

    def _bound(self, number: int, now: float) -> float:
        """Written as the load itself is, so that rounding can't put it above."""
        key, bound = self.keys[number], UNDER_WAY * self._berths[number].tokens
        readings = self._readings
        reading = readings.fresh(key, now) if key in readings.telling else None
        if reading is None or not (usual := readings.usual(key, now)):
            self._shared.discard(number)
            return bound
        self._shared.add(number)
        self._until = min(self._until, reading.at + readings.stale - _EARLY)
        return bound + usual * self._low * UNDER_WAY

    # ----------------------------------------------------------------------------------

    def best(self, look: Look, now: float) -> Seat:
        """The first by rank, of equal ones the first written: as `min` of all has it."""
        best, at = None, 0
        for bound, number in self._ordered(now):
            if best is not None and (bound, number) > (best.load, at):
                return best
            seat = look(self.keys[number])
            if seat.well and (best is None or (seat.load, number) < (best.load, at)):
                best, at = seat, number
        return min(map(look, self.keys), key=by_rank) if best is None else best

    def least(self, look: Look, now: float, chance: Callable[[], float]) -> Seat | None:
        """Any of the least loaded that are well and have room, each by equal chance."""
        order, load, equal = self._ordered(now), inf, list[Seat]()
        for bound, number in order:
            if bound >= load:
                break
            seat = look(self.keys[number])
            if seat.well and seat.load <= load:
                equal = [seat] if seat.load < load else [*equal, seat]
                load = seat.load
        if not equal:
            return None
        # Of those whose bound is that load few were looked at: there may be hundreds of idle ones.
        begin, end = bisect_left(order, (load, -1)), bisect_left(order, (load, len(order)))
        others = [one for one in equal if self._bounds[self._numbers[one.key]] < load]
        for _ in range(_TRIES):
            drawn = _drawn(len(others) + end - begin, chance)
            if drawn < len(others):
                return others[drawn]
            seat = look(self.keys[order[begin + drawn - len(others)][1]])
            if seat.well and seat.load == load:
                return seat
        found = [look(self.keys[number]) for _, number in order[begin:end]]
        found = [*others, *(seat for seat in found if seat.well and seat.load == load)]
        return found[_drawn(len(found), chance)]


def by_rank(seat: Seat) -> tuple[bool, bool, int, int, float]:
    """What the best is told by."""
    return seat.rank


def _drawn(count: int, chance: Callable[[], float]) -> int:
    return min(count - 1, int(chance() * count)) if count > 1 else 0


class Loads(Mapping[str, float]):
    """The loads of an endpoint's replicas that are well and have room, looked at when asked for."""

    __slots__ = ("_keys", "_look", "_seats")

    def __init__(self, keys: Mapping[str, object], look: Look, first: Seat) -> None:
        self._keys, self._look = keys, look
        self._seats = {first.key: first}

    def __getitem__(self, key: str) -> float:
        seat = self._seats.get(key)
        if seat is None:
            if key not in self._keys:
                raise KeyError(key)
            seat = self._seats[key] = self._look(key)
        if not seat.well:
            raise KeyError(key)
        return seat.load

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._keys if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def all_work(self) -> bool:
        """Whether each has prompts to compute."""
        return all(self._seats[key].work for key in self)


@dataclass(slots=True)
class Lineups:
    """The lineup of each large endpoint of one snapshot, made when it is first asked for."""

    inflight: InFlight
    readings: Readings
    _known: dict[str, Lineup] = field(default_factory=dict)

    def of(self, endpoint: str, keys: Mapping[str, object]) -> Lineup:
        """An endpoint's, whose replicas these are as long as the snapshot is in force."""
        found = self._known.get(endpoint)
        if found is None:
            found = self._known[endpoint] = Lineup(tuple(keys), self.inflight, self.readings)
        return found

    def clear(self) -> None:
        """Another snapshot is in force."""
        for one in self._known.values():
            one.close()
        self._known.clear()
