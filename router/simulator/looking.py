"""A simulated router's looks at its engines' metrics, one period after the other.

Of an engine that does nothing each look finds the same. So only those are looked at that stirred
since: took a request, died, came back, or got one on its way. What the looks in between would have
found is reported late, just before anybody could tell: a day of a large fleet that sleeps at night
costs what its requests do. (A test holds it to looks at every engine.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regions.fleet import Reading, Readings
from router.capacity.load import InFlight
from router.simulator.timing import EngineSpec
from router.simulator.virtual import LoopEngine


@dataclass(slots=True)
class Looking:
    """One router's, at engines by their replicas' keys.

    `stirring`: those to look at next time; `quiet`: what the others say, at the first such look.
    """

    engines: Mapping[str, LoopEngine]
    specs: Mapping[str, EngineSpec]
    inflight: InFlight
    readings: Readings
    stirring: set[LoopEngine] = field(default_factory=set)
    _quiet: dict[LoopEngine, Reading] = field(default_factory=dict)
    _places: dict[LoopEngine, tuple[int, str, int]] = field(default_factory=dict)
    _last: float = 0.0

    def __post_init__(self) -> None:
        """From here on it is told whenever an engine stirs."""
        for number, (key, one) in enumerate(self.engines.items()):
            spec = self.specs[key]
            self._places[one] = number, key, spec.kv_blocks * spec.block_size
            one.watching.append(self.stirring)
        self.stirring.update(self.engines.values())

    def look(self, now: float) -> None:
        """Read every engine's metrics that answers, as `router.watch.scrape` does."""
        for one in sorted(self.stirring, key=self._places.__getitem__):
            _, key, room = self._places[one]
            quiet = self._quiet.pop(one, None)
            if quiet is not None:
                self.readings.report(key, quiet._replace(at=self._last))
            if one.up:
                self._read(key, one, room, now)
            else:
                self.stirring.discard(one)
        self._last = now

    def _read(self, key: str, one: LoopEngine, room: int, now: float) -> None:
        engine, own = one.engine, self.inflight.requests(key)
        if own or not engine.idle:
            load, done = engine.load, engine.totals.generated
            reading = Reading(now, load.running, load.waiting, load.kv_usage, done, own, room)
            self.readings.report(key, reading)
            return
        reading = Reading(now, 0, 0, 0.0, engine.totals.generated, 0, room)
        self.readings.report(key, reading)
        if not self.readings.usual(key, now):
            self._quiet[one] = reading
            self.stirring.discard(one)
