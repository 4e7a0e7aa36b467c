"""Reports of `reports-d.yaml` that are of connections, bodies and the first second."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from router.transport.client import HttpTransport
from tests.cases.built import BASELINE, Files, built, until
from tests.rawserver import Line, RawServer
from tests.router.house import house
from tests.router.scripted import Reply, answer, scripted
from tests.router.wire import ASK, Wire, request

[GOOD] = answer()._chunks
assert isinstance(GOOD, bytes)
BODY: bytes = GOOD


def at(server: RawServer) -> Files:
    return Files(baseline=BASELINE.replace("http://fra1", f"http://127.0.0.1:{server.port}"))


async def test_failover_10_an_idle_connection_that_the_endpoint_closed_costs_nothing(
    tmp_path: Path,
) -> None:
    """Its end is seen, or the request goes once more on a fresh one; nobody waits for it."""

    async def once(line: Line) -> None:
        await line.request()
        await line.json(BODY)
        await asyncio.sleep(0.01 * line.number)  # while it is idle, and just as it is used again

    transport = HttpTransport()
    async with RawServer(once) as server:
        async with built(tmp_path, lambda h, n: answer(), at(server), transport) as world:
            for _ in range(12):
                done = await world.ask("de")
                # One that waited for a dead connection would have had its time, and another try.
                assert (done.status, done.sent["x-domicile-attempts"]) == (200, "1")
                await asyncio.sleep(0.03)
        await transport.close()


async def test_failover_10_connections_are_left_before_the_endpoint_leaves_them(
    tmp_path: Path,
) -> None:
    """A connection that was dropped without a word is never asked: it was idle for too long."""
    asked: list[int] = []

    async def drops(line: Line) -> None:
        await line.request()
        asked.append(line.number)
        await line.json(BODY)
        await line.closed_by_peer()  # reads nothing that comes: as one whose packets are lost

    transport = HttpTransport(keep_alive=0.2)
    async with RawServer(drops) as server:
        async with built(tmp_path, lambda h, n: answer(), at(server), transport) as world:
            for _ in range(3):
                assert (await world.ask("de")).status == 200
                await asyncio.sleep(0.4)
        await transport.close()
    assert len(asked) >= 3
    assert len(set(asked)) == len(asked)


async def test_balancing_04_not_ready_before_a_fleet_was_looked_for(tmp_path: Path) -> None:
    fleet = f"replicas: {{file: {tmp_path / 'fra.txt'}}}"
    found = BASELINE.replace('url: "http://fra1"', fleet)
    (tmp_path / "fra.txt").write_text("http://fra1\n")
    async with built(tmp_path, lambda h, n: answer(), Files(baseline=found)) as world:
        live = world.router.live
        assert not live.ready()
        assert live.snapshot.targets["fra"] == {}
        await until(live.ready)
        assert len(live.snapshot.targets["fra"]) == 1
        assert (await world.ask("de")).status == 200


@pytest.mark.parametrize("status", [400, 404, 413, 422, 500, 502, 503])
@pytest.mark.parametrize("kind", [b"text/html", b"text/plain", b"application/json"])
async def test_balancing_05_an_error_that_is_no_json_is_told_as_one(
    tmp_path: Path, status: int, kind: bytes
) -> None:
    def script(host: str, number: int) -> Reply:
        return Reply(status, ((b"content-type", kind),), [b"<html><b>nginx</b> said no\xff"])

    async with scripted(tmp_path, script) as world:
        done = await world.ask()
        error = json.loads(done.written)["error"]
        clients = status in {400, 413, 422}
        assert done.status == (status if clients else 503 if status == 503 else 502)
        assert {one["status"] for one in error["reasons"] if "status" in one} == {status}
        assert "nginx" not in done.written.decode()
        assert done.sent["content-type"] == "application/json"


@pytest.mark.parametrize("sized", [True, False])
async def test_balancing_07_bursts_over_kept_connections(tmp_path: Path, sized: bool) -> None:
    asked = request(ASK)
    if not sized:
        half = len(ASK) // 2
        chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (ASK[:half], ASK[half:], b"")]
        asked = request(b"", b"transfer-encoding: chunked", length=b"-") + b"".join(chunks)
    async with house(tmp_path) as found:
        wires = [await Wire.to(found) for _ in range(8)]
        for _ in range(3):
            await asyncio.gather(*(wire.send(asked) for wire in wires))
            async with asyncio.timeout(60):
                done = await asyncio.gather(*(wire.answer() for wire in wires))
            assert [one.code for one in done] == ["ok"] * len(wires)
            await asyncio.sleep(0.1)
        assert found.hits("self:fra1") + found.hits("self:par1") == 24
        for wire in wires:
            await wire.close()
