"""A fleet of simulated replicas in one process: an object to break from tests, a port to break from
outside, and `run_fleet` for the command line.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack

from router.simulator.bedrock import BedrockSpec, BedrockStub
from router.simulator.control import Control
from router.simulator.record import Hit
from router.simulator.replica import Replica, ReplicaSpec, seeded
from router.simulator.transfer import Bank
from router.simulator.wire import Started


class SimulatedFleet(Started):
    """Replicas by name. A name is a region, or `region/replica` for several in one.

    `async with SimulatedFleet({"self:fra1": ReplicaSpec()}) as fleet: fleet["fra1"].kill()`
    """

    def __init__(
        self,
        specs: Mapping[str, ReplicaSpec],
        *,
        seed: int = 0,
        control: bool = False,
        bedrock: BedrockStub | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.bank = Bank()
        self._replicas = {
            name: Replica(name, seeded(spec, seed + number), tls=tls, bank=self.bank)
            for number, (name, spec) in enumerate(specs.items())
        }
        self._control = Control(self, bedrock).listener if control else None

    def __getitem__(self, name: str) -> Replica:
        """A replica by its name, or by the name without its provider. KeyError if unclear."""
        if name in self._replicas:
            return self._replicas[name]
        found = [key for key in self._replicas if key.partition(":")[2] == name]
        if len(found) != 1:
            raise KeyError(f"no replica `{name}`; there are {', '.join(self._replicas)}")
        return self._replicas[found[0]]

    def __iter__(self) -> Iterator[Replica]:
        """All replicas in the order they were named."""
        return iter(self._replicas.values())

    def __len__(self) -> int:
        return len(self._replicas)

    @property
    def seen(self) -> list[Hit]:
        """Every generation request of every replica, oldest first."""
        return sorted((hit for replica in self for hit in replica.seen), key=lambda hit: hit.at)

    @property
    def control_url(self) -> str:
        """Where faults can be switched over HTTP; empty without `control`."""
        return "" if self._control is None else self._control.url

    def in_region(self, region: str) -> list[Replica]:
        """The replicas of one region id."""
        return [replica for replica in self if replica.region == region]

    async def start(self) -> None:
        """Start every replica and the control port."""
        for replica in self:
            await replica.start()
        if self._control is not None:
            await self._control.start()

    async def close(self) -> None:
        """Stop everything."""
        for replica in self:
            await replica.close()
        if self._control is not None:
            await self._control.close()

    def describe(self) -> list[dict[str, object]]:
        """Name, region, URL, models and state of every replica."""
        return [
            {
                "name": replica.name, "region": replica.region, "url": replica.url,
                "models": list(replica.spec.models), "alive": replica.alive,
                "hits": len(replica.seen), "faults": [f.kind.value for f in replica.faults.armed],
            }
            for replica in self
        ]  # fmt: skip


async def run_fleet(
    specs: Mapping[str, ReplicaSpec],
    *,
    seed: int = 0,
    bedrock: BedrockSpec | None = None,
    announce: Callable[[list[dict[str, object]], str, str], None],
    until: asyncio.Event | None = None,
) -> None:
    """Run a fleet, and a Bedrock stub if asked for, until SIGINT, SIGTERM or `until`.

    `announce` gets the fleet's rows, the control URL and the stub's URL (empty without one).
    """
    stop = until or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        async with AsyncExitStack() as stack:
            stub = None if bedrock is None else BedrockStub(bedrock)
            if stub is not None:
                await stack.enter_async_context(stub)
            fleet = SimulatedFleet(specs, seed=seed, control=True, bedrock=stub)
            await stack.enter_async_context(fleet)
            announce(fleet.describe(), fleet.control_url, "" if stub is None else stub.url)
            await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
