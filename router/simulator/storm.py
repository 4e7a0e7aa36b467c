"""Seeded bad weather over a fleet: request faults, replicas down for spells, blackouts.

`step` moves the weather one tick; call it every so many requests (exact shares, no clock) or let
`run` call it on a clock. Three layers, each with its share:

- every request is hit by one of `faults` with probability `disturbed`;
- every replica is killed or frozen for `down` of the ticks, in spells of about `spell` ticks;
- the regions of `blackout` are all killed together for `dark` of the ticks, so that whoever may
  only go there has nowhere to go.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from router.simulator.faults import Fault, Kind
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import Replica

FAULTS = (
    Fault(Kind.STATUS, status=429, retry_after="1"),
    Fault(Kind.STATUS, status=500),
    Fault(Kind.STATUS, status=503),
    Fault(Kind.STATUS, status=529),
    Fault(Kind.HTML, status=502),
    Fault(Kind.RESET_HEAD),
    Fault(Kind.RESET_HEAD, after=20),
    Fault(Kind.RESET_AFTER, after=1),
    Fault(Kind.ERROR_EVENT, status=503),
    Fault(Kind.SLOW_START, seconds=0.05),
    Fault(Kind.HANG),
)


@dataclass(frozen=True, slots=True)
class StormSpec:
    """How bad it is. Shares are 0..1; `spell` is the mean length of an outage in ticks."""

    seed: int = 0
    disturbed: float = 0.35
    faults: tuple[Fault, ...] = FAULTS
    down: float = 0.15
    spell: float = 10.0
    blackout: tuple[str, ...] = ()
    dark: float = 0.12
    freezes: bool = True


@dataclass(frozen=True, slots=True)
class Gust:
    """One change of the weather: at which tick, to which replica, and what (kill, freeze, up)."""

    tick: int
    replica: str
    change: str


class Storm:
    """Weather over one fleet; the same seed gives the same gusts."""

    def __init__(self, fleet: SimulatedFleet, spec: StormSpec) -> None:
        self.fleet, self.spec = fleet, spec
        self.tick = 0
        self.gusts: list[Gust] = []
        self._rng = random.Random(spec.seed)
        self._state = {replica.name: "up" for replica in fleet}
        self._ill = {replica.name: False for replica in fleet}
        self._dark = False
        for replica in fleet:
            self._arm(replica)

    @property
    def dark(self) -> bool:
        """Whether the blackout is on."""
        return self._dark

    async def step(self) -> None:
        """Move the weather one tick."""
        self.tick += 1
        self._dark = bool(self.spec.blackout) and self._turn(self._dark, self.spec.dark)
        for replica in self.fleet:
            was = self._ill[replica.name]
            ill = self._ill[replica.name] = self._turn(was, self.spec.down)
            kind = "freeze" if self.spec.freezes and self._rng.random() < 0.5 else "kill"
            if self._dark and replica.region in self.spec.blackout:
                await self._change(replica, "kill")
            elif not ill:
                await self._change(replica, "up")
            elif self._state[replica.name] == "up":
                await self._change(replica, kind)

    async def run(
        self, ticks: int, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Step `ticks` times, `seconds` apart, then calm down."""
        try:
            for _ in range(ticks):
                await self.step()
                await sleep(seconds)
        finally:
            await self.calm()

    async def calm(self) -> None:
        """Everything up and without faults."""
        for replica in self.fleet:
            await self._change(replica, "up")
            replica.faults.clear()

    def _turn(self, on: bool, share: float) -> bool:
        """The next state of a two-state chain that is on for `share` of the time."""
        if on:
            return self._rng.random() >= 1.0 / self.spec.spell
        if share >= 1.0:
            return True
        return self._rng.random() < share / ((1.0 - share) * self.spec.spell)

    def _arm(self, replica: Replica) -> None:
        faults = self.spec.faults
        if not faults or self.spec.disturbed <= 0:
            return
        each = 1.0 - (1.0 - self.spec.disturbed) ** (1.0 / len(faults))
        for fault in faults:
            replica.fail(replace(fault, probability=each))

    async def _change(self, replica: Replica, change: str) -> None:
        if self._state[replica.name] == change:
            return
        self._state[replica.name] = change
        self.gusts.append(Gust(self.tick, replica.name, change))
        match change:
            case "kill":
                replica.kill()
            case "freeze":
                replica.freeze()
            case _:
                replica.thaw()
                await replica.start()
