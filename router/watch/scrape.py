"""The scrape: what engines say of their load, once a period, from every replica of one's own.

A replica that can't be scraped has no fresh reading, and an unknown load is taken for what this
router sent there: scraping never takes a replica out. One that is marked isn't asked: it gets no
requests that its load would matter for, and when many are gone, asking costs those who are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from regions.fleet import Reading, parse_metrics
from regions.health import Standing
from regions.model import Endpoint
from router.live import Live
from router.providers.base import Target
from router.providers.openai_compatible import beside
from router.snapshot import Snapshot
from router.transport.messages import (
    AttemptFailed,
    Timeouts,
    Transport,
    read_body,
)

LONGEST: Final = 2.0
"""Seconds for one page."""
LARGEST: Final = 4 << 20
"""Bytes of one page."""
AT_ONCE: Final = 64
"""Replicas asked at a time."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of an endpoint."""

    endpoint: Endpoint
    key: str
    target: Target


def own_replicas(snapshot: Snapshot) -> Iterator[Replica]:
    """Every replica of the self-operated endpoints; nobody else's are asked unasked."""
    for name, replicas in snapshot.targets.items():
        endpoint = snapshot.policy.endpoints[name]
        if endpoint.self_operated:
            for key, target in replicas.items():
                if target.url:
                    yield Replica(endpoint, key, target)


class Scraper:
    """Reads metrics of one router's replicas."""

    def __init__(self, live: Live, transport: Transport) -> None:
        self._live = live
        self._transport = transport
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def look(self) -> None:
        """Ask everybody who isn't marked once; whoever waits for room is told."""
        health, now = self._live.health, self._live.loop_time()
        found = [
            replica
            for replica in own_replicas(self._live.snapshot)
            if health.standing(replica.key, now) is not Standing.MARKED
        ]
        await asyncio.gather(*(self._one(replica) for replica in found))
        self._live.readings.forget(self._live.snapshot.replica_keys)
        if self._live.inflight.on_leave is not None:
            self._live.inflight.on_leave()

    async def _one(self, replica: Replica) -> None:
        async with self._turns:
            reading = await self.read(replica, LONGEST)
        if reading is not None:
            self._live.readings.report(replica.key, reading)

    async def read(self, replica: Replica, seconds: float) -> Reading | None:
        """A replica's reading now; `None` when it gives none in time."""
        live = self._live
        now = live.loop_time()
        own = live.inflight.requests(replica.key)
        timeouts = Timeouts(now + seconds, seconds, seconds)
        request = beside(replica.target, "/metrics")
        try:
            response = await self._transport.send(request, timeouts)
            if response.status != 200:
                response.abort()
                return None
            page = await read_body(response, LARGEST, now + seconds)
        except AttemptFailed:
            return None
        return parse_metrics(page.decode("utf-8", "replace"), now, own)
