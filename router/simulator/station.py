"""One simulated router: the real parts that choose, on the running loop's clock; and its fleet."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policies.model import Priority
from regions.fleet import Readings
from regions.health import HealthBook
from regions.model import Endpoint
from regions.prefix import Trail, trail
from router.attempts.retrying import RetryBudget
from router.capacity.balance import Balance
from router.capacity.load import Held, InFlight
from router.capacity.placing import Placed, Placing, Wish
from router.capacity.pools import Pools
from router.simulator.looking import Looking
from router.simulator.scenario import MODEL, Scenario, eligible
from router.simulator.strategies import STRATEGIES
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask
from router.simulator.transfer import Links
from router.simulator.virtual import LoopEngine
from router.snapshot import Snapshot
from router.types import Candidacy
from router.waiting import WaitingRoom

_CAP = 2000
"""Output tokens that a client allows, as most do: far above what comes."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A region whose fleet, or one part of it, is gone from `at` to `until`."""

    region: str
    at: float
    until: float
    part: str = ""


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a run goes.

    Attributes:
        spill: whether a request may leave its region at all; boundaries hold in any case.
        again: how often a refused client comes again, when it was told to.
        sample: seconds between two looks at every replica's load; 0 for none.
    """

    strategy: str = "ours"
    spill: bool = True
    again: int = 0
    outages: tuple[Outage, ...] = ()
    sample: float = 0.0


class Sample(NamedTuple):
    """What is at every replica at a moment, running or waiting, by its key: requests, and their
    tokens (prompts and whole answers)."""

    at: float
    requests: dict[str, int]
    tokens: dict[str, int]


@dataclass(slots=True)
class Fleet:
    """Every engine, by replica key; `at` says where it stands, `kinds` of which part it is."""

    engines: Mapping[str, LoopEngine]
    at: Mapping[str, str]
    specs: Mapping[str, EngineSpec]
    kinds: Mapping[str, str]
    links: Links = field(default_factory=Links)

    @classmethod
    def of(cls, scenario: Scenario, snapshot: Snapshot) -> Fleet:
        """The scenario's, all idle."""
        found = {
            key: (ground.region, part)
            for ground in scenario.grounds
            for part in ground.parts
            for key in snapshot.targets[part.endpoint]
        }
        return cls(
            {key: LoopEngine(part.engine) for key, (_, part) in found.items()},
            {key: region for key, (region, _) in found.items()},
            {key: part.engine for key, (_, part) in found.items()},
            {key: part.kind for key, (_, part) in found.items()},
        )

    def lost(self, outage: Outage) -> list[LoopEngine]:
        """Whom an outage takes."""
        return [
            one
            for key, one in self.engines.items()
            if self.at[key] == outage.region and outage.part in {"", self.kinds[key]}
        ]

    def sample(self, at: float) -> Sample:
        """What is at every replica."""
        found = {key: one.engine.load for key, one in self.engines.items()}
        requests = {key: load.running + load.waiting for key, load in found.items()}
        return Sample(at, requests, {key: one.engine.held for key, one in self.engines.items()})


class Station:
    """One router: the parts that choose, on the running loop's clock."""

    def __init__(
        self, home: str, scenario: Scenario, conduct: Conduct, snapshot: Snapshot, seed: int
    ) -> None:
        loop = asyncio.get_running_loop()
        self.home, self.snapshot = home, snapshot
        self.limits = scenario.limits
        self.health, self.inflight = HealthBook(), InFlight()
        self.readings = Readings(max(5.0, 2 * scenario.scrape))
        rng = random.Random(seed)
        made = STRATEGIES[conduct.strategy]
        self.balance: Balance = made(
            lambda: snapshot, self.health, self.inflight, self.readings, loop.time, rng.random
        )
        self.room: WaitingRoom[Placed] = WaitingRoom(loop.time, scenario.limits.waiting)
        self.inflight.on_leave = self.room.wake
        self.placing = Placing(self.balance, self.room)
        self.budget = RetryBudget()
        self._spill, self._pools = conduct.spill, Pools()
        self._classes = scenario.classes
        self._eligible: dict[str, tuple[Candidacy, ...]] = {}
        self._texts: dict[int, str] = {}
        self._looking: Looking | None = None

    def eligible(self, tenant: str) -> tuple[Candidacy, ...]:
        """What a tenant may use from here."""
        found = self._eligible.get(tenant)
        if found is None:
            found = eligible(self.snapshot, tenant)
            if not self._spill:
                found = tuple(c for c in found if c.endpoint.source == self.home)
            self._eligible[tenant] = found
        return found

    def wish(self, ask: Ask, block: int, now: float) -> Wish:
        """What a request needs, as `Ranking` has it."""
        tenant = self.snapshot.policy.tenants[ask.tenant]
        tokens = ask.prompt + self.balance.lengths.expect(MODEL, ask.tenant, _CAP)
        path = self._trail(ask, block) if ask.blocks else None
        until = now + self.limits.queue
        eligible, spare = self._pools.of(self.eligible(ask.tenant), ask.priority)
        priority, least = Priority.STANDARD, 0.0
        if ask.priority is not None and self._classes is not None:
            priority, least = ask.priority, self._classes.least(ask.priority)
        return Wish(
            eligible, tokens, ask.prompt, path, ask.tenant, tenant.weight, until, priority, least,
            spare,
        )  # fmt: skip

    def choose(self, half: Endpoint, prompt: int, path: Trail | None) -> Held | None:
        """A place for a prompt at the half that computes it, as `router.app` has it chosen."""
        single = len(self.snapshot.targets[half.name]) < 2
        return self.balance.reserve(half.name, prompt, None if single else path, prompt)

    def _trail(self, ask: Ask, block: int) -> Trail:
        """The trail of a prompt whose blocks are these: the first is the system's, as in truth."""
        texts = [self._text(one, block * 4) for one in ask.blocks]
        found = trail((("system", texts[0]), ("user", "".join(texts[1:]))), MODEL.encode())
        # The last block is seldom whole, and then has no name, but is there.
        return replace(found, length=max(found.length, ask.prompt * 4))

    def _text(self, block: int, size: int) -> str:
        found = self._texts.get(block)
        if found is None:
            word = f"{block:x} "
            found = self._texts[block] = (word * (size // len(word) + 1))[:size]
        return found

    def scrape(self, fleet: Fleet, now: float) -> None:
        """Read every engine's metrics that answers, and place those that wait."""
        if self._looking is None:
            self._looking = Looking(fleet.engines, fleet.specs, self.inflight, self.readings)
        self._looking.look(now)
        self.room.wake()

    def stir(self, fleet: Fleet, key: str) -> None:
        """A request was counted at a replica: its next reading is another one."""
        if self._looking is not None:
            self._looking.stirring.add(fleet.engines[key])
