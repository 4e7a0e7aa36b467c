"""Discovery over the wire: a real name server, and an API server behind its own authority."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from regions.health import Sign
from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver
from router.transport.names import Names
from router.watch.discover import LEAST, Discoverer
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built
from tests.certificates import Paper
from tests.rawserver import Line, RawServer
from tests.router.crowd import hosts
from tests.router.scripted import Scripted, answer
from tests.router.transport.nameserver import NameServer, nameserver

NAME = "_llm._tcp.fra.example"


@asynccontextmanager
async def named(
    folder: Path, more: str = ""
) -> AsyncIterator[tuple[Scripted, Discoverer, NameServer]]:
    """A router whose `fra` is found by SRV records, and the server that has them."""
    text = BASELINE.replace('url: "http://fra1"', f"replicas: {{srv: {NAME}{more}}}")
    files = Files(baseline=text)
    async with nameserver() as server, built(folder, lambda host, n: answer(), files) as world:
        assert world.router.watches is not None
        service = Names([("127.0.0.1", server.port)]).service
        live, swap = world.router.live, world.router.watches.swap
        yield world, Discoverer(live, swap, world.transport, {}, folder, service=service), server


def keys(world: Scripted) -> list[str]:
    return list(world.router.live.snapshot.targets["fra"])


async def test_every_address_is_a_replica_in_the_order_of_priorities(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "20 0 8000 b.example.", "10 3 8000 a.example.")
        server.a("a.example.", "10.1.0.1", "fd00::1")
        server.a("b.example.", "10.1.0.2")
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000", "fra/fd00::1:8000", "fra/10.1.0.2:8000"]
        targets = world.router.live.snapshot.targets["fra"]
        assert [target.priority for target in targets.values()] == [10, 10, 20]


async def test_the_ttl_is_honoured(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "1 1 8000 a.example.", ttl=3600)
        server.a("a.example.", "10.1.0.1", ttl=3600)
        await one.look()
        asked = len(server.asked)
        server.a("a.example.", "10.1.0.9", ttl=0)
        await one.look()
        assert (len(server.asked), keys(world)) == (asked, ["fra/10.1.0.1:8000"])
        one._until.clear()  # an hour later
        await one.look()
        assert keys(world) == ["fra/10.1.0.9:8000"]
        again = len(server.asked)
        await one.look()  # a TTL of nought: ask each time
        assert len(server.asked) > again


async def test_a_name_server_in_trouble_empties_nothing(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "1 1 8000 a.example.", ttl=0)
        server.a("a.example.", "10.1.0.1")
        await one.look()
        server.broken.add(f"{NAME}.")
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000"]
        assert "every name server failed" in world.router.live.notes["discover:fra"]
        server.broken.clear()
        await one.look()
        assert "discover:fra" not in world.router.live.notes


async def test_a_record_cannot_move_a_fleet(tmp_path: Path) -> None:
    async with named(tmp_path, ", within: [10.0.0.0/8]") as (world, one, server):
        server.srv(f"{NAME}.", "1 1 8000 a.example.", "1 1 8000 evil.example.", ttl=0)
        server.a("a.example.", "10.1.0.1")
        server.a("evil.example.", "203.0.113.9")
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000"]


async def test_a_boundary_that_a_reload_brings_counts_at_once(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        texts = ("1 1 8000 a.example.", "1 1 8000 evil.example.", "1 1 0 a.example.")
        server.srv(f"{NAME}.", *texts, ttl=86_400)
        server.a("a.example.", "10.1.0.1", ttl=86_400)
        server.a("evil.example.", "203.0.113.9", ttl=86_400)
        await one.look()
        assert len(keys(world)) == 2
        assert "port `0`" in world.router.live.notes["discover:fra"]
        written = f"replicas: {{srv: {NAME}, within: [10.0.0.0/8]}}"
        new = Files(baseline=BASELINE.replace('url: "http://fra1"', written)).load(tmp_path)
        assert world.router.watches is not None
        await world.router.watches.swap.reload(new)
        assert keys(world) == ["fra/10.1.0.1:8000"]


async def test_what_was_found_is_not_used_again_after_nobody_looked_for_it(tmp_path: Path) -> None:
    """A fleet that is written again has none of its old addresses, which others may have by now."""
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "1 1 8000 a.example.", ttl=86_400)
        server.a("a.example.", "10.1.0.1", ttl=86_400)
        await one.look()
        assert world.router.watches is not None
        swap = world.router.watches.swap
        await swap.reload(Files().load(tmp_path))
        assert keys(world) == ["fra"]
        server.a("a.example.", "10.1.0.9", ttl=86_400)
        text = BASELINE.replace('url: "http://fra1"', f"replicas: {{srv: {NAME}}}")
        await swap.reload(Files(baseline=text).load(tmp_path))
        assert keys(world) == []
        await one.look()
        assert keys(world) == ["fra/10.1.0.9:8000"]


async def test_a_backup_is_asked_when_the_first_are_marked(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "20 1 8000 b.example.", "10 1 8000 a.example.")
        server.a("a.example.", "10.1.0.1")
        server.a("b.example.", "10.1.0.2")
        await one.look()
        for _ in range(4):
            await world.ask("de")
        assert set(hosts(world)) == {"10.1.0.1"}
        live = world.router.live
        live.health.observe("fra/10.1.0.1:8000", Sign.DEAD, live.loop_time())
        await world.ask("de")
        assert hosts(world)["10.1.0.2"] == 1


async def test_weights_share_the_load(tmp_path: Path) -> None:
    async with named(tmp_path) as (world, one, server):
        server.srv(f"{NAME}.", "1 3 8000 a.example.", "1 1 8000 b.example.", "1 0 8000 c.example.")
        for number, host in enumerate("abc", 1):
            server.a(f"{host}.example.", f"10.1.0.{number}")
        await one.look()
        balance = world.router.live.balance
        held = [balance.reserve("fra", 10) for _ in range(200)]  # all open at once
        counts = Counter(one.key for one in held if one is not None)
        a, b, c = (counts[f"fra/10.1.0.{number}:8000"] for number in (1, 2, 3))
        assert 2.7 < a / b < 3.3
        assert c <= 200 * LEAST + 1
        for one_held in held:
            assert one_held is not None
            one_held.close()
        alone = Counter[str]()
        for _ in range(400):  # one after the other: by chance, in the same proportion
            found = balance.reserve("fra", 10)
            assert found is not None
            alone[found.key] += 1
            found.close()
        assert 2 < alone["fra/10.1.0.1:8000"] / alone["fra/10.1.0.2:8000"] < 4.6


async def test_an_api_server_behind_the_cluster_s_own_authority(tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("pod-token\n")
    cluster = Paper.authority("cluster")
    (account / "ca.crt").write_text(cluster.pem)
    host = "kubernetes.default"
    heard: list[bytes] = []
    ready = {"addresses": ["10.1.0.1"], "conditions": {"ready": True}}
    going = {"addresses": ["10.1.0.2"], "conditions": {"ready": False, "terminating": True}}
    slices = {"items": [{"ports": [{"name": "http", "port": 8000}], "endpoints": [ready, going]}]}

    async def serve(line: Line) -> None:
        heard.append(await line.request())
        await line.json(json.dumps(slices).encode())

    async with RawServer(serve, cluster.signed(host, (host,)).server(tmp_path)) as server:
        transport = HttpTransport(SystemResolver({host: ("127.0.0.1", server.port)}))
        text = BASELINE.replace('url: "http://fra1"', "replicas: {kubernetes: llm/large}")
        pod = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        async with built(tmp_path, lambda h, n: answer(), Files(baseline=text)) as world:
            assert world.router.watches is not None
            live, swap = world.router.live, world.router.watches.swap
            environment = {**ENVIRONMENT, **pod}
            one = Discoverer(live, swap, transport, environment, tmp_path, account=account)
            await one.look()
            assert keys(world) == ["fra/10.1.0.1:8000"]
        await transport.close()
    assert b"authorization: Bearer pod-token" in heard[0]
