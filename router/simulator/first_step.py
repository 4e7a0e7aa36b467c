"""The first of two steps at an endpoint in halves: the other half computes the prompt.

As `router.attempts.prefilling` has it: its best replica, then one more, under the request's
attempts and retry budget, never one that is marked; after that the endpoint computes the prompt
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regions.health import Sign, Standing
from regions.model import Endpoint
from router.attempts.prefilling import TRIED, needed
from router.capacity.load import Held
from router.simulator.scenario import round_trip
from router.simulator.timing import JobTimes
from router.simulator.virtual import Ended

if TYPE_CHECKING:
    from router.simulator.flight import Flight


@dataclass(frozen=True, slots=True)
class Kept:
    """The replica that keeps a cache, as long as it lives the life it had then."""

    key: str
    life: int


class FirstStep(Ended):
    """One request's, of so many prompt tokens. It tells its flight by `computed`."""

    __slots__ = ("failures", "first_held", "flight", "half", "held", "key", "left", "life", "link",
                 "turns")  # fmt: skip

    def __init__(self, flight: Flight, half: Endpoint, left: int) -> None:
        self.flight, self.half, self.left = flight, half, left
        self.failures, self.life, self.key, self.link = 0, 0, "", 0.0
        self.first_held: Held | None = None
        self.held: Held | None = None
        self.turns: Iterator[tuple[int, str]] = iter(())

    def go(self) -> None:
        """Choose a replica, and ask it."""
        station = self.flight.station
        self.first_held = station.choose(self.half, self.left, self.flight.path)
        kept = None if self.first_held is None else self.first_held.key
        if kept is not None:
            station.stir(self.flight.stage.fleet, kept)
        self.turns = enumerate(station.balance.in_turn(station.snapshot, self.half.name, kept))
        self._next(Sign.OK)

    def _next(self, failed: Sign) -> None:
        flight, station = self.flight, self.flight.station
        number, key = next(self.turns, (TRIED, ""))
        now = flight.stage.loop.time()
        none = number >= TRIED or flight.left < needed(number, last=flight.at_last)
        none = none or station.health.standing(key, now) is Standing.MARKED
        if none or (number and not flight.may_go_on(failed)):
            self._over(None)
        else:
            self.key = key
            self._ask(now)

    def _ask(self, now: float) -> None:
        station, stage, first = self.flight.station, self.flight.stage, self.first_held
        kept = first is not None and first.key == self.key
        self.held = first if kept else station.inflight.enter(self.key, self.left, self.left, now)
        station.stir(stage.fleet, self.key)
        station.health.start(self.key, now)
        self.link = round_trip(station.home, stage.fleet.at[self.key])
        stage.loop.call_later(self.link / 2, self._reached)

    def _reached(self) -> None:
        stage, engine = self.flight.stage, self.flight.stage.fleet.engines[self.key]
        if not engine.up:
            stage.loop.call_later(self.link / 2, self._failed, Sign.DEAD)
            return
        self.life = engine.life
        job = self.flight.job
        engine.submit(replace(job, output_tokens=1, kinds=()), self)

    def first(self) -> None:
        """Its only token is its last: see `ended`."""

    def ended(self, times: JobTimes | None) -> None:
        """The prompt is computed, or the engine died."""
        loop = self.flight.stage.loop
        if times is None:
            loop.call_later(self.link / 2, self._failed, Sign.ILL)
        else:
            loop.call_later(self.link / 2, self._computed)

    def _computed(self) -> None:
        now = self.flight.stage.loop.time()
        self.flight.station.health.observe(self.key, Sign.OK, now)
        if self.held is not None:
            self.held.opened(now)
        self._over(Kept(self.key, self.life))

    def _failed(self, failed: Sign) -> None:
        flight = self.flight
        self.failures += 1
        flight.made += 1
        flight.stage.tally.retried += 1
        flight.station.health.observe(self.key, failed, flight.stage.loop.time())
        if self.held is not None:
            self.held.close()
        self._next(failed)

    def _over(self, kept: Kept | None) -> None:
        for held in (self.held, self.first_held):
            if held is not None:
                held.close()
        self.flight.computed(kept, self.failures)
