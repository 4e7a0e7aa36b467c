"""A cluster whose slots move while limits are counted in it: ASK, TRYAGAIN, MOVED of a real one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import pytest
from redis import Redis, RedisCluster
from redis.asyncio import RedisCluster as AsyncCluster

from router.state.client import Ready
from router.state.ledger import Bucket, Full, Seats, Take
from router.state.opening import connected, to_redis
from router.state.shared import Scripts, SharedLedger
from tests.redis_cluster import said


def limits(tenant: str) -> tuple[Bucket, Seats]:
    return Bucket("tokens", f"{tenant}/tokens", 100, 6_000), Seats("open", f"{tenant}/open", 100)


@dataclass(frozen=True, slots=True)
class Slot:
    """The slot of all that is counted of one tenant, and two primaries: its own, and another."""

    number: int
    nodes: dict[str, Redis]
    source: str
    target: str

    def keys(self) -> list[str]:
        """What of it the source still holds."""
        found = self.nodes[self.source].execute_command("CLUSTER", "GETKEYSINSLOT", self.number, 10)  # type: ignore[no-untyped-call]
        return sorted(bytes(key).decode() for key in cast("list[bytes]", found))

    def refused(self, word: str) -> bool:
        """Whether any node refused a call so; they count it."""
        told = [node.info("errorstats") for node in self.nodes.values()]
        return any(f"errorstat_{word}" in one for one in told)

    def begin(self) -> None:
        """From now on what isn't there any more is asked of the target."""
        said(self.nodes[self.target], "SETSLOT", self.number, "IMPORTING", self.source)
        said(self.nodes[self.source], "SETSLOT", self.number, "MIGRATING", self.target)

    def move(self, *keys: str) -> None:
        """Move some of its keys."""
        port = self.nodes[self.target].connection_pool.connection_kwargs["port"]
        self.nodes[self.source].migrate("127.0.0.1", port, list(keys), 0, 5000)

    def end(self) -> None:
        """It is the target's; who asks the source is told so."""
        for node in self.nodes.values():
            said(node, "SETSLOT", self.number, "NODE", self.target)


@contextmanager
def slot_of(tenant: str, cluster: int) -> Iterator[Slot]:
    with RedisCluster(host="127.0.0.1", port=cluster) as looking:
        number = looking.keyslot(f"{{{tenant}}}")
        ports = [node.port for node in looking.get_primaries()]
        own = looking.get_node_from_key(f"{{{tenant}}}").port
    nodes = {port: Redis(port=port, socket_timeout=5) for port in ports}
    names = {
        port: said(node, "MYID").removeprefix("b'").rstrip("'") for port, node in nodes.items()
    }
    other = next(names[port] for port in ports if port != own)
    yield Slot(number, {names[port]: node for port, node in nodes.items()}, names[own], other)
    for node in nodes.values():
        node.close()


async def test_a_limit_is_exact_while_its_slot_moves(cluster: int) -> None:
    bucket, seats = limits("moving")
    client = cast("AsyncCluster", to_redis(f"redis+cluster://127.0.0.1:{cluster}"))
    ready = Ready(cast("Scripts", client), lambda: connected(cast("Scripts", client)))
    ledger = SharedLedger(ready, time.monotonic, 0.5, timeout=5.0)
    taken = 0

    async def take() -> None:
        nonlocal taken
        await ledger.take([Take(bucket, 10)], [seats], str(taken))
        assert ledger.degraded == ""
        taken += 10

    with slot_of("moving", cluster) as slot:
        await take()
        slot.begin()
        await take()  # all is still there
        slot.move(*slot.keys())
        for _ in range(3):
            await take()
        assert slot.keys() == []
        assert slot.refused("ASK")
        assert not slot.refused("MOVED")
        slot.end()
        for _ in range(5):
            await take()
        assert slot.refused("MOVED")
    with pytest.raises(Full):
        await take()
    assert taken == 100
    ledger.leave([seats], "0")
    await ledger.close()
    assert ledger.degraded == ""
    await client.aclose()


async def test_of_half_a_slot_each_counts_alone_for_a_moment_and_together_again_after_it(
    cluster: int,
) -> None:
    """Nobody can count what lies on two nodes at once. No request waits until it doesn't."""
    bucket, seats = limits("half")
    client = cast("AsyncCluster", to_redis(f"redis+cluster://127.0.0.1:{cluster}"))
    ready = Ready(cast("Scripts", client), lambda: connected(cast("Scripts", client)))
    ledger = SharedLedger(ready, time.monotonic, 0.5, timeout=0.2)

    async def together() -> None:
        end = time.monotonic() + 30
        while True:
            await ledger.take([Take(bucket, 1)], [seats], "lease")
            if not ledger.degraded:
                return
            assert time.monotonic() < end, ledger.degraded
            await asyncio.sleep(0.25)

    with slot_of("half", cluster) as slot:
        await together()
        slot.begin()
        slot.move(slot.keys()[0])
        began = time.monotonic()
        await ledger.take([Take(bucket, 1)], [seats], "half")
        assert time.monotonic() - began < 2
        assert ledger.degraded.endswith("limits are local for now")
        assert slot.refused("TRYAGAIN")
        slot.move(*slot.keys())
        slot.end()
    await together()
    await ledger.close()
    await client.aclose()
