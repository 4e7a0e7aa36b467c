"""What happens to a town: one thing after the other to its regions, and beside it to the rest."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.chaos.town import Region, Town, stamp

FAULTS: tuple[dict[str, object], ...] = (
    {"kind": "status", "status": 429, "retry_after": "1"},
    {"kind": "status", "status": 500},
    {"kind": "status", "status": 503},
    {"kind": "garbage"},
    {"kind": "reset_head"},
    {"kind": "reset_after", "after": 2},
    {"kind": "close_after", "after": 2},
    {"kind": "stall_after", "after": 3},
    {"kind": "error_event", "status": 503, "after": 1},
    {"kind": "slow_start", "seconds": 0.3},
    {"kind": "drop_idle"},
    {"kind": "hang"},
)
EXTRA = "  - {{name: extra-{}, when: {{data_class: phi}}, require: [baa], because: a soak}}\n"
BROKEN = "  - {name: broken, process_within: ATLANTIS, because: a soak}\n"
Told = Callable[[list[object]], None]


class Weather:
    """Events at random moments, each with its own end; `told` hears of each what, where, when."""

    def __init__(self, town: Town, rng: random.Random, told: Told) -> None:
        self._town, self._rng, self._told = town, rng, told
        self._rules = (town.folder / "rules.yaml").read_text()
        self._number = 0

    async def regions(self, stop: asyncio.Event) -> None:
        """Something happens to a region, again and again."""
        events: list[Callable[[Region], Awaitable[None]]] = [
            self._kill, self._stop, self._kill_replica, self._freeze, self._faults,
        ]  # fmt: skip
        if self._town.can_cut:
            events += [self._cut, self._refuse]
        inside = [self._town.regions[name] for name in ("self:fra1", "self:par1")]
        while not await self._over(stop, 1.0, 6.0):
            region = self._rng.choice([*self._town.regions.values(), *inside])
            chosen = self._rng.choice(events)
            if region in inside and self._rng.random() < 0.15:
                await asyncio.gather(*(chosen(one) for one in inside))
            else:
                await chosen(region)

    async def rest(self, stop: asyncio.Event) -> None:
        """Something happens to Redis, the files, the second worker."""
        events = (self._kill_redis, self._stop_redis, self._change, self._spoil, self._kill_worker)
        while not await self._over(stop, 5.0, 20.0):
            await self._rng.choice(events)()

    async def _over(self, stop: asyncio.Event, least: float, most: float) -> bool:
        try:
            await asyncio.wait_for(stop.wait(), self._rng.uniform(least, most))
        except TimeoutError:
            return False
        return True

    @asynccontextmanager
    async def _event(self, name: str, where: str, most: float) -> AsyncIterator[float]:
        began, seconds = stamp(), self._rng.uniform(0.5, most)
        yield seconds
        self._told([name, where, began, stamp()])

    async def _kill(self, region: Region) -> None:
        async with self._event("region killed", region.name, 6) as seconds:
            await region.kill()
            await asyncio.sleep(seconds)
            await region.start()

    async def _stop(self, region: Region) -> None:
        async with self._event("region stopped", region.name, 6) as seconds:
            region.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            region.send(signal.SIGCONT)

    async def _cut(self, region: Region) -> None:
        async with self._event("link cut", region.name, 6) as seconds:
            await self._town.cut(region.name, "silent")
            await asyncio.sleep(seconds)
            await self._town.join(region.name, "silent")

    async def _refuse(self, region: Region) -> None:
        async with self._event("link closed", region.name, 6) as seconds:
            await self._town.cut(region.name, "closed")
            await asyncio.sleep(seconds)
            await self._town.join(region.name, "closed")

    async def _kill_replica(self, region: Region) -> None:
        replica = self._rng.choice(list(region.ports))
        async with self._event("replica killed", replica, 10) as seconds:
            await self._town.control(replica, "kill")
            await asyncio.sleep(seconds)
            await self._town.control(replica, "heal")

    async def _freeze(self, region: Region) -> None:
        replica = self._rng.choice(list(region.ports))
        async with self._event("engine frozen", replica, 10) as seconds:
            await self._town.control(replica, "freeze")
            await asyncio.sleep(seconds)
            await self._town.control(replica, "thaw")

    async def _faults(self, region: Region) -> None:
        fault = {**self._rng.choice(FAULTS), "probability": self._rng.choice((0.2, 0.5, 1.0))}
        async with self._event(f"fault {fault['kind']}", region.name, 8) as seconds:
            for replica in region.ports:
                await self._town.control(replica, "fail", fault)
            await asyncio.sleep(seconds)
            for replica in region.ports:
                await self._town.control(replica, "heal")

    async def _kill_redis(self) -> None:
        async with self._event("Redis killed", "", 5) as seconds:
            await self._town.redis.kill()
            await asyncio.sleep(seconds)
            await self._town.redis.start()

    async def _stop_redis(self) -> None:
        async with self._event("Redis stopped", "", 5) as seconds:
            self._town.redis.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            self._town.redis.send(signal.SIGCONT)

    async def _change(self) -> None:
        """Other rules, sound ones: they must be taken."""
        self._number += 1
        async with self._event("reload", "", 1):
            self._write(self._rules + EXTRA.format(self._number))
            refused = await self._town.reload()
            assert not refused, refused

    async def _spoil(self) -> None:
        """Rules that name no place there is: they must be refused, and their successor taken."""
        async with self._event("reload refused", "", 2) as seconds:
            self._write(self._rules + BROKEN)
            assert "ATLANTIS" in await self._town.reload()
            await asyncio.sleep(seconds)
            self._write(self._rules)
            refused = await self._town.reload()
            assert not refused, refused

    async def _kill_worker(self) -> None:
        """The second one; the first lives through everything, so that what leaks adds up."""
        pid = int(str((await self._town.workers())[1]["pid"] or 0))
        if pid:
            async with self._event("worker killed", str(pid), 2) as seconds:
                os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(seconds)

    def _write(self, rules: str) -> None:
        draft = self._town.folder / "rules.draft"
        draft.write_text(rules)
        draft.replace(self._town.folder / "rules.yaml")
