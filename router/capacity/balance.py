"""Which replica of an endpoint, and how loaded it is: own tokens in flight, corrected by engines.

A replica's load is work: the prompt tokens that are still to compute there, and a little for each
token of the answers under way. That is what the next request's first token waits for.

Choosing and counting are one step without an await between: of any number of requests that
choose at once, each sees what the others took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Final, NamedTuple

from regions.fleet import Capacity, Lengths, Readings, endpoint_of
from regions.health import HealthBook, Standing
from regions.model import Tier
from regions.pace import Line, Paces
from regions.prefix import Affinity, Trail
from router.capacity.declared import apart, capacities, costs, halves
from router.capacity.lineup import (
    FEW,
    LOTS,
    UNDER_WAY,
    USUAL,
    Lineup,
    Lineups,
    Loads,
    Look,
    Seat,
    by_rank,
)
from router.capacity.load import Berth, Held, InFlight
from router.selection import Condition
from router.snapshot import Snapshot

ENGINE_FULL: Final = 1.25
"""An engine may let a few wait, so that its next batch is full; above this it has enough."""
_DOUBT: Final = 0.2
"""A forecast is taken as up to so much longer, by chance: routers that see one queue grow don't
all leave it, nor all come to the next, in the same moment."""
_MARGIN: Final = 0.5
"""Of the time aimed at, what a forecast may take: it errs, and the queue grows meanwhile."""
_STEP: Final = 0.025
"""Seconds by which one endpoint must be nearer than another for that to count."""

_ALIKE: Final = (0, 1.0)
_BELOW: Final = 1 - 1e-9
"""A random number may be 1, whose place among equals would be infinitely far."""
_NOWHERE: Final = Condition(Standing.MARKED, 0.0, 1.0)

Keys = Mapping[str, object]
"""An endpoint's replicas by their keys."""
Turn = tuple[Tier, bool, float, float, float, int]
"""What tells endpoints apart that are all well: tier, late, cost, near or soon, load, number."""


class Bay(NamedTuple):
    """One endpoint's only replica, with what is looked at for every request."""

    tier: Tier
    number: int
    endpoint: str
    key: str
    cost: float
    home: bool
    berth: Berth
    line: Line


class _Half(NamedTuple):
    """The other half of an endpoint, its best replica, and the least prompt for it, in tokens."""

    endpoint: str
    seat: Seat
    least: int


@dataclass(slots=True)
class Balance:
    """The load of every replica of one router.

    Attributes:
        snapshot: gives the one in force.
        random: a number from 0 to 1. Equal replicas are told apart by it, so that several
            routers don't all begin with the first.
    """

    snapshot: Callable[[], Snapshot]
    health: HealthBook
    inflight: InFlight
    readings: Readings
    loop_time: Callable[[], float]
    random: Callable[[], float]
    lengths: Lengths = field(default_factory=Lengths)
    affinity: Affinity = field(default_factory=Affinity)
    paces: Paces = field(default_factory=Paces)
    _of: Snapshot | None = None
    _capacities: Mapping[str, Capacity] = field(default_factory=dict)
    _apart: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    _costs: Mapping[str, float] = field(default_factory=dict)
    _halves: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    _uneven: frozenset[str] = frozenset()
    _lineups: Lineups = field(init=False)

    def __post_init__(self) -> None:
        """What opens is what paces are learned from."""
        self.inflight.on_open = self._opened
        self._lineups = Lineups(self.inflight, self.readings)

    def _opened(self, held: Held, seconds: float) -> None:
        self.paces.learn(endpoint_of(held.key), held.ahead, seconds)

    def condition(self, endpoint: str, prompt: int = 0) -> Condition:
        """How an endpoint stands: as its best replica does, with that replica's load.

        Without a replica it counts as marked: there is nothing to ask, until one is found.

        Args:
            prompt: the tokens of the request that asks, for which the first token is foretold.
        """
        keys = self.snapshot().targets.get(endpoint)
        if not keys:
            return _NOWHERE
        best = self._best(endpoint, keys, prompt)
        soon, full = self.paces.expect(endpoint, best.load + prompt), best.full
        work, pace = best.work, self.paces.line(endpoint).pace
        limit = _MARGIN * self.snapshot().config.router.limits.target
        if self._halves and (half := self._half(endpoint)) is not None:
            # For short prompts too: who waits for an endpoint waits for the same as all others.
            full = full or half.seat.full
            if prompt >= half.least:
                soon = self.paces.expect(endpoint, best.load)
                soon += self.paces.expect(half.endpoint, half.seat.load + prompt)
                work, pace = half.seat.work, self.paces.line(half.endpoint).pace
        soon *= 1 + _DOUBT * self.random()
        if soon > limit and work and pace * (work + prompt) > limit / 2:
            # Where a capacity is declared they wait here, by weight, not in an engine for ever.
            full = full or self._capacity(endpoint) is not None
        line, near = self.paces.line(endpoint), 0
        if line.floor and not self._home(endpoint):
            near = self._near(best.key, soon, line)
        return Condition(
            best.standing, best.load, best.retry_in, full, soon > limit,
            self._costs.get(endpoint, 0.0), near, soon,
        )  # fmt: skip

    def bays(self, pairs: Sequence[tuple[Tier, str, Sequence[str]]]) -> tuple[Bay, ...]:
        """Endpoints with the keys of their replicas, as `turns` looks at them.

        Empty unless each has one replica, of which nothing is declared: no capacity, priority,
        weight or other half.
        """
        found = []
        for number, (tier, endpoint, keys) in enumerate(pairs):
            even = self._capacity(endpoint) is None and self._apart.keys().isdisjoint(keys)
            if len(keys) != 1 or not even or endpoint in self._halves:
                return ()
            berth, line = self.inflight.berth(keys[0]), self.paces.line(endpoint)
            cost, home = self._costs.get(endpoint, 0.0), self._home(endpoint)
            found.append(Bay(tier, number, endpoint, keys[0], cost, home, berth, line))
        return tuple(found)

    def turns(self, bays: Sequence[Bay], prompt: int) -> list[Turn] | None:
        """What `condition` comes to for each of `bays`, with its tier before and number behind.

        `None` when something is held against any replica, or an engine says that it is full:
        then each must be looked at by itself.
        """
        now, found = self.loop_time(), list[Turn]()
        if not self.health.calm(now):
            return None
        limit, told = self.snapshot().config.router.limits.target, self.readings.told
        telling = self.readings.telling
        for tier, number, _, key, cost, home, berth, line in bays:
            floor, pace, load = line.floor, line.pace, UNDER_WAY * berth.tokens
            if berth.prompts:  # as `Berth.left`, without a call for each
                work = berth.work - (now - berth.at) / pace if pace else berth.work
                if work > 0:
                    load += work if work < berth.prompts else berth.prompts  # noqa: FURB136
            if key in telling:
                _, pressure = self.readings.both(key, now, berth.requests)
                if pressure >= ENGINE_FULL:
                    return None
                load += self._theirs(key, now, pressure)
            soon = floor + pace * (load + prompt)
            if soon:
                soon *= 1 + _DOUBT * self.random()
            if soon > _MARGIN * limit:
                found.append((tier, True, 0.0, soon, load, number))
            else:
                near = 0
                if floor and not home:  # as `_near`, without a call
                    whole = soon + pace * berth.tokens if key in told else soon
                    near = 1 + int(whole * line.sure / _STEP)
                found.append((tier, False, cost, near, load, number))
        return found

    def _theirs(self, key: str, now: float, pressure: float) -> float:
        """What others have at a replica, weighed as our own answers under way: with more, who looks
        would follow the others more. How far they are isn't told: of those that wait none began."""
        part = max(UNDER_WAY, 1 - 1 / pressure) if pressure > 1 else UNDER_WAY
        return self.readings.usual(key, now) * self._mean() * part

    def _near(self, key: str, soon: float, line: Line) -> int:
        """How far an endpoint away from home, whose best replica is `key`, is in steps.

        By when a whole answer ends: each token under way at an engine holds it up by as much as one
        of a prompt, for steps are longer, and more prompts come in between (a test holds that to
        the engines' model). Only the own ones: what others have is known late, and regions that
        follow it swing. They tell of the others too: where answers are slow, more are under way.
        """
        if key in self.readings.told:
            soon += line.pace * self.inflight.tokens(key)
        return 1 + int(soon * line.sure / _STEP)

    def _home(self, endpoint: str) -> bool:
        snapshot = self.snapshot()
        known = snapshot.policy.endpoints.get(endpoint)
        return known is not None and known.source == snapshot.region

    def _best(self, endpoint: str, keys: Keys, prompt: int = 0) -> Seat:
        """How its best replica stands."""
        look, lineup = self._look(endpoint, prompt), self._lineup(endpoint, keys)
        if lineup is not None:
            return lineup.best(look, self.loop_time())
        return min(map(look, keys), key=by_rank)

    def _lineup(self, endpoint: str, keys: Keys) -> Lineup | None:
        """A large endpoint's replicas in order, if only their loads tell them apart; `_look` says
        first which snapshot is in force."""
        if len(keys) <= FEW or endpoint in self._uneven:
            return None
        return self._lineups.of(endpoint, keys)

    def _look(self, endpoint: str, prompt: int) -> Look:
        """How any of an endpoint's replicas stands now, for such a prompt."""
        capacity, now = self._capacity(endpoint), self.loop_time()
        rate = self.paces.rate(endpoint)
        return lambda key: self._seat(capacity, key, now, rate, prompt)

    def _seat(self, of: Capacity | None, key: str, now: float, rate: float, prompt: int) -> Seat:
        standing, share, retry = self.health.state(key, now, prompt)
        berth, readings = self.inflight.known(key), self.readings
        own, tokens = berth.requests, float(berth.tokens)
        foreign, pressure = readings.both(key, now, own)
        work = berth.left(now, rate) if own else 0.0
        load = work + UNDER_WAY * tokens
        if key in readings.telling:
            tokens += foreign * self._mean()
            load += self._theirs(key, now, pressure)
        full = self._used(of, own + foreign, pressure, tokens) >= 1
        if standing is Standing.TRIAL or share < 1:
            full = full or self._enough(key, now)
        if key not in self._apart:
            return Seat(key, standing, full, load / share, retry, 0, work)
        priority, part = self._apart[key]
        return Seat(key, standing, full, load / share / part, retry, priority, work)

    def _enough(self, key: str, now: float) -> bool:
        """Whether an engine that comes back has as many requests as it may. What tells nothing of
        itself is no engine: a vendor's endpoint knows its own limits."""
        unopened = self.inflight.berth(key).unopened
        return key in self.readings.told and unopened >= self.health.window(key, now)

    def saturation(self, endpoint: str, key: str) -> float:
        """The load of a replica over what it can take; 0 when nothing is known of that."""
        own = self.inflight.requests(key)
        foreign, pressure = self.readings.both(key, self.loop_time(), own)
        tokens = self.inflight.tokens(key) + foreign * self._mean()
        return self._used(self._capacity(endpoint), own + foreign, pressure, tokens)

    def _used(
        self, capacity: Capacity | None, requests: float, pressure: float, tokens: float
    ) -> float:
        used = pressure / ENGINE_FULL
        return used if capacity is None else max(used, capacity.used(requests, tokens))

    def _mean(self) -> float:
        return self.inflight.mean or USUAL

    def _capacity(self, endpoint: str) -> Capacity | None:
        snapshot = self.snapshot()
        if snapshot is not self._of:
            self._of, self._capacities = snapshot, capacities(snapshot.policy.endpoints)
            self._apart = apart(snapshot)
            self._uneven = frozenset(map(endpoint_of, self._apart))
            self._lineups.clear()
            self._costs = costs(snapshot.policy.endpoints)
            self._halves = halves(snapshot.policy.endpoints)
        return self._capacities.get(endpoint)

    def reserve(
        self, endpoint: str, tokens: int, trail: Trail | None = None, prompt: int = 0
    ) -> Held | None:
        """Choose a replica and count the request there; `None` when the endpoint has none.

        The one that will probably begin to answer first, with the prompt's beginning in its cache
        or without.

        Args:
            tokens: prompt and expected output; `prompt` the first of the two alone.
        """
        keys = self.snapshot().targets.get(endpoint)
        if not keys:
            return None
        if len(keys) == 1:
            return self._entered(endpoint, next(iter(keys)), tokens, prompt)
        found = self._quickly(endpoint, keys, prompt, trail)
        if found is None:
            ranked = [(seat.rank[:4], seat) for seat in map(self._look(endpoint, prompt), keys)]
            best = min([rank for rank, _ in ranked])
            alike = [seat for rank, seat in ranked if rank == best]
            found = self._chosen(alike, prompt, trail)
        return self._entered(endpoint, found[0], tokens, found[1])

    def _entered(self, endpoint: str, key: str, tokens: int, left: int) -> Held:
        """Count a request, whose prompt is work here unless another endpoint computes it."""
        half = self._half(endpoint) if self._halves else None
        away = left if half is not None and left >= half.least else 0
        held = self.enter(endpoint, key, tokens, left - away)
        held.elsewhere = away
        return held

    def _half(self, endpoint: str) -> _Half | None:
        """Where an endpoint's prompts are computed, if elsewhere: the best replica of its other
        half, unless none is well."""
        name, least = self._halves.get(endpoint, ("", 0))
        keys = self.snapshot().targets.get(name)
        if not keys:
            return None
        best = self._best(name, keys)
        return None if best.standing is Standing.MARKED else _Half(name, best, least)

    def enter(self, endpoint: str, key: str, tokens: int, prompt: int) -> Held:
        """Count a request at a replica; `prompt` of its tokens are still to compute."""
        now, rate = self.loop_time(), self.paces.rate(endpoint)
        return self.inflight.enter(key, tokens, prompt, now, rate)

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        """The replica, and how much of the prompt it has yet to compute."""
        least = min(alike, key=lambda seat: (seat.load, self._lot(seat.key)))
        if trail is None:
            return least.key, prompt
        loads = {seat.key: seat.load for seat in alike}
        queues = all([seat.work for seat in alike])
        return self.affinity.choose(
            trail, loads, prompt, least.key, self.readings.room, self._foreign, queues
        )

    def _quickly(
        self, endpoint: str, keys: Keys, prompt: int, trail: Trail | None
    ) -> tuple[str, int] | None:
        """What `_chosen` comes to, with a look at few of many replicas; `None` where all must be
        looked at. Among equals one draw decides, not one for each."""
        look, lineup = self._look(endpoint, prompt), self._lineup(endpoint, keys)
        if lineup is None or len(keys) <= LOTS:
            return None
        least = lineup.least(look, self.loop_time(), self.random)
        if least is None or trail is None:
            return None if least is None else (least.key, prompt)
        loads = Loads(keys, look, least)
        queues = least.work > 0 and loads.all_work()
        return self.affinity.choose(
            trail, loads, prompt, least.key, self.readings.room, self._foreign, queues, keys
        )

    def _foreign(self, key: str) -> float:
        """The share of the requests at a replica that others usually have."""
        others = self.readings.usual(key, self.loop_time())
        return others / (others + self.inflight.requests(key)) if others else 0.0

    def _lot(self, key: str) -> float:
        """Among equals the lowest is chosen: by chance, in proportion to the shares."""
        return -log(1.0 - self.random() * _BELOW) / self._apart.get(key, _ALIKE)[1]

    def in_turn(
        self, snapshot: Snapshot, endpoint: str, first: str | None, prompt: int = 0
    ) -> Iterator[str]:
        """An endpoint's replicas as they are to be asked, the reserved one first if it is well.

        Among equals a lot decides: of a rack that fails, whoever stands first in the files would
        else get the second attempt of every request that failed at another of it.
        """
        now, replicas = self.loop_time(), snapshot.targets[endpoint]
        if first and first in replicas and self.health.standing(first, now, prompt).turn < 1:
            yield first  # hardly ever is another one asked: they needn't be put in order
            replicas = {key: replicas[key] for key in replicas if key != first}
        known = self._apart if snapshot is self._of else apart(snapshot)

        def rank(key: str) -> tuple[int, bool, int, float, float]:
            standing, share, _ = self.health.state(key, now, prompt)
            priority, part = known.get(key, _ALIKE)
            load = self.inflight.tokens(key) / share / part
            return standing.turn, key != first, priority, load, self._lot(key)

        yield from sorted(replicas, key=rank)
