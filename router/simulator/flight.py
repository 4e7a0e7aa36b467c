"""One request of a simulated load, from its router to its end.

The attempts are made as `router.dispatch` makes them, and the two steps of an endpoint in halves
as `router.attempts.prefilling` does, in callbacks instead of tasks: most requests never wait. Whom
to ask, what is in flight, what is held against whom and what a retry costs are the router's own
objects.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from regions.health import Sign
from regions.prefix import Trail
from router.capacity.load import Held
from router.capacity.placing import Placed, Wish
from router.dispatch import HERE
from router.selection import PreferConflict
from router.simulator.first_step import FirstStep, Kept
from router.simulator.scenario import MODEL, Scenario, round_trip
from router.simulator.station import Conduct, Fleet, Station
from router.simulator.tally import Tally
from router.simulator.timing import Job, JobTimes
from router.simulator.traces import Ask
from router.simulator.virtual import Ended
from router.types import Candidacy
from router.waiting import NoRoom


@dataclass(slots=True)
class Stage:
    """What all flights of one run share."""

    scenario: Scenario
    conduct: Conduct
    fleet: Fleet
    tally: Tally
    block: int
    rng: random.Random
    loop: asyncio.AbstractEventLoop
    open: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def left(self) -> None:
        """A request has come to its end."""
        self.open -= 1
        if not self.open:
            self.idle.set()


class Flight(Ended):
    """One request.

    Attributes:
        made: attempts that might have answered.
        tokens: prompt and expected output, as they were counted when it was placed.
        final: the last endpoint of its order.
        moved: the endpoint that a cache of its prompt was made for, and where that is.
        whole: endpoints that compute its prompt themselves from here on.
    """

    __slots__ = (
        "again", "ask", "came", "candidacy", "final", "held", "job", "key", "link", "made", "moved",
        "path", "placed", "stage", "started", "station", "tokens", "turns", "unsent", "whole",
    )  # fmt: skip

    def __init__(self, stage: Stage, station: Station, ask: Ask, number: int) -> None:
        self.stage, self.station, self.ask = stage, station, ask
        kinds = stage.tally.kinds(ask)
        self.job = Job(f"{number}", ask.prompt, ask.output, ask.blocks, kinds=kinds)
        self.came = ask.at
        self.again = self.made = 0
        self.tokens = ask.prompt
        self.key, self.link, self.started, self.unsent = "", 0.0, False, False
        self.path: Trail | None = None
        self.placed: Held | None = None
        self.held: Held | None = None
        self.turns: Iterator[tuple[Candidacy, str]] = iter(())
        self.candidacy: Candidacy | None = None
        self.final: Candidacy | None = None
        self.moved: tuple[str, Kept] | None = None
        self.whole: set[str] = set()

    def arrive(self) -> None:
        """The request is at its router, for the first time or again."""
        now = self.stage.loop.time()
        wish = self.station.wish(self.ask, self.stage.block, now)
        self.path = wish.path
        if not wish.eligible:
            self._refused(None)
            return
        try:
            placed = self.station.placing.at_once(wish)
        except PreferConflict:
            self._refused(None)
            return
        if placed is not None:
            self._begin(placed)
            return
        task = self.stage.loop.create_task(self._wait(wish))
        self.stage.tasks.add(task)
        task.add_done_callback(self.stage.tasks.discard)

    async def _wait(self, wish: Wish) -> None:
        began = self.stage.loop.time()
        try:
            placed = await self.station.placing.wait(wish)
        except NoRoom as error:
            self._refused(error.retry_after)
            return
        self.stage.tally.waits(self.ask, self.stage.loop.time() - began)
        self._begin(placed)

    def _refused(self, retry_after: float | None) -> None:
        tally, conduct = self.stage.tally, self.stage.conduct
        if retry_after is not None and self.again < conduct.again:
            if not self.again:
                tally.told += 1
            self.again += 1
            # As a polite client does: not before the time told, and not all at once.
            wait = retry_after * (1 + 0.25 * self.stage.rng.random())
            self.stage.loop.call_later(wait, self.arrive)
            return
        tally.refuse(self.ask)
        self.stage.left()

    # ----------------------------------------------------------------------------------

    def _begin(self, placed: Placed) -> None:
        if self.again:
            self.stage.tally.came_back += 1
            self.came = self.stage.loop.time()
        self.station.budget.earn()
        self.held = self.placed = placed.held
        if self.held is not None:
            self.tokens = self.held.tokens
            self.station.stir(self.stage.fleet, self.held.key)
        self.turns, self.final = self._in_turn(placed), placed.order[-1]
        self._next()

    def _in_turn(self, placed: Placed) -> Iterator[tuple[Candidacy, str]]:
        kept = None if placed.held is None else placed.held.key
        for candidacy in placed.order:
            name = candidacy.endpoint.name
            keys = self.station.balance.in_turn(self.station.snapshot, name, kept)
            most = None if candidacy is placed.order[-1] else HERE
            for key in islice(keys, most):
                yield candidacy, key

    @property
    def left(self) -> int:
        """Attempts that may still be made."""
        return self.station.limits.attempts - self.made

    @property
    def at_last(self) -> bool:
        """Whether no other endpoint is left to ask."""
        return self.candidacy is self.final

    def may_go_on(self, failed: Sign) -> bool:
        """Whether one more attempt may be made after one that failed so."""
        if self.left <= 0:
            return False
        # What was never sent costs nothing to send elsewhere.
        return failed is Sign.DEAD or self.station.budget.spend()

    def _next(self) -> None:
        """Ask the next one in turn."""
        turn = next(self.turns, None)
        if turn is None:
            self._lost()
            return
        self.candidacy, self.key = turn
        half = self.candidacy.endpoint.prefill
        if half is None:
            self._send()
            return
        name = self.candidacy.endpoint.name
        cached = self._cache() is not None
        if name in self.whole or (cached and self.unsent):
            self._send()
            return
        self.moved = None
        self.whole.add(name)
        left = 0 if cached else self._elsewhere()
        if left:
            FirstStep(self, half, left).go()
        else:
            self._send()

    def _cache(self) -> Kept | None:
        """Where the cache is that was made for the endpoint now asked."""
        if self.moved is None or self.candidacy is None:
            return None
        return self.moved[1] if self.moved[0] == self.candidacy.endpoint.name else None

    def _elsewhere(self) -> int:
        """Prompt tokens that the other half is to compute (`router.attempts.prefilling`)."""
        if self.placed is not None and self.placed.key == self.key:
            return self.placed.elsewhere
        return self.ask.prompt if self.ask.prompt >= self.stage.scenario.least else 0

    def computed(self, kept: Kept | None, failures: int) -> None:
        """The first of two steps is over: a cache was kept, or none after so many failures."""
        if kept is not None and self.candidacy is not None:
            name = self.candidacy.endpoint.name
            self.moved = name, kept
            self.whole.discard(name)
        elif failures and self.left <= 0:
            self._lost()
            return
        self._send()

    def _send(self) -> None:
        stage, now = self.stage, self.stage.loop.time()
        if self.held is None or self.held.key != self.key:
            self._give_back()
            # As `router.dispatch` has it: the prompt is no work that another's would wait for.
            self.held = self.station.inflight.enter(self.key, self.tokens)
            self.station.stir(stage.fleet, self.key)
        if self.candidacy not in self.station.eligible(self.ask.tenant):
            stage.tally.outside += 1
        self.station.health.start(self.key, now)
        self.link = round_trip(self.station.home, stage.fleet.at[self.key])
        stage.loop.call_later(self.link / 2, self._reached)

    def _reached(self) -> None:
        engine, kept = self.stage.fleet.engines[self.key], self._cache()
        if not engine.up:
            self._later(self._failed, Sign.DEAD)
        elif kept is None:
            engine.submit(self.job, self)
        else:
            self._fetch(kept)

    def _fetch(self, kept: Kept) -> None:
        """The engine gets the cache of the prompt, but for what it has."""
        stage, now = self.stage, self.stage.loop.time()
        engine, rate = stage.fleet.engines[self.key], stage.fleet.specs[self.key].transfer_rate
        tokens = self.ask.prompt - engine.engine.cached(self.job)
        way = round_trip(stage.fleet.at[kept.key], stage.fleet.at[self.key])
        until = stage.fleet.links.carry(kept.key, self.key, tokens / rate, now) + way
        stage.tally.moved.add(until - now)
        stage.loop.call_at(until, self._fetched, kept, engine.life)

    def _fetched(self, kept: Kept, life: int) -> None:
        engine = self.stage.fleet.engines[self.key]
        if engine.life != life:
            self.ended(None)
        elif self.stage.fleet.engines[kept.key].life != kept.life:
            self._later(self._without)
        else:
            engine.submit(replace(self.job, received=self.ask.prompt), self)

    def _without(self) -> None:
        """It says that the cache can't be loaded: it is asked again, without."""
        self._observed(Sign.ILL)
        self.moved = None
        if self.candidacy is not None:
            self.whole.add(self.candidacy.endpoint.name)
        if self.may_go_on(Sign.ILL):
            self._send()
        else:
            self._lost()

    def _observed(self, failed: Sign) -> None:
        self.made += 1
        self.unsent = failed is Sign.DEAD
        self._give_back()
        self.stage.tally.retried += 1
        self.station.health.observe(self.key, failed, self.stage.loop.time())

    def _failed(self, failed: Sign) -> None:
        if self.started:
            self.station.health.observe(self.key, failed, self.stage.loop.time())
            self.stage.tally.broken += 1
            self._closed()
            return
        self._observed(failed)
        if self.may_go_on(failed):
            self._next()
        else:
            self._lost()

    # ----------------------------------------------------------------------------------

    def first(self) -> None:
        """The first token left the engine."""
        self.started = True
        self._later(self._opened)

    def _opened(self) -> None:
        stage, now = self.stage, self.stage.loop.time()
        stage.tally.first(self.ask, now - self.came, stage.fleet.specs[self.key])
        self.station.health.observe(self.key, Sign.OK, now)
        if self.held is not None:
            self.held.opened(now)

    def ended(self, times: JobTimes | None) -> None:
        """The answer is whole, or its engine died."""
        if times is None:
            self._later(self._failed, Sign.ILL)
        else:
            self._later(self._whole)

    def _whole(self) -> None:
        stage = self.stage
        stage.tally.lasted.add(stage.loop.time() - self.came)
        self.station.balance.lengths.learn(MODEL, self.ask.tenant, self.ask.output)
        stage.tally.whole(self.ask, stage.fleet.at[self.key], stage.loop.time())
        self._closed()

    def _later(self, call: Callable[..., None], *what: object) -> None:
        """When it is back at the router."""
        self.stage.loop.call_later(self.link / 2, call, *what)

    def _lost(self) -> None:
        self.stage.tally.lose(self.ask)
        self._closed()

    def _closed(self) -> None:
        self._give_back()
        self.stage.left()

    def _give_back(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.close()
