"""Neighbours of the reports on probes and disconnects: what stands before routers asks whether one
serves, and who meets one that doesn't is not kept there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from router.audit.errors import LogUnavailable
from tests.cases.built import until
from tests.router.house import House, house
from tests.router.wire import ASK, Wire, request

STREAM = ASK[:-1] + b',"stream":true}'
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("house")) as found:
        yield found


PUBLIC = ("/healthz", "/readyz", "/v1/models", "/domicile/v1/where", "/openapi.json", "/nothing")
PRIVATE = ("/healthz", "/metrics", "/status", "/nothing")


@pytest.mark.parametrize("path", [*PUBLIC, *(f"admin {one}" for one in PRIVATE)])
async def test_who_asks_by_head_hears_what_get_would(running: House, path: str) -> None:
    """As `wget --spider`, monitors and load balancers do: 405 takes a router that is well out of
    service. See punkpeye/fastmcp#275, openshift/lightspeed-service#302."""
    kind, _, rest = path.rpartition(" ")
    address = urlsplit(running.admin if kind else running.url)
    wire = Wire(*await asyncio.open_connection("127.0.0.1", address.port))
    key = {"authorization": "Bearer dom-eu"}
    async with httpx.AsyncClient(trust_env=False, headers=key) as client:
        got = await client.get(address._replace(path=rest).geturl())
    asked = b"HEAD %b HTTP/1.1\r\nhost: x\r\nauthorization: Bearer dom-eu\r\n\r\n"
    for _ in range(2):  # on one connection: nothing of a body is taken for the next answer
        await wire.send(asked % rest.encode())
        head = await asyncio.wait_for(wire.reader.readuntil(b"\r\n\r\n"), 10)
        assert int(head.split()[1]) == got.status_code
        assert got.headers["content-type"].encode() in head
    await wire.close()


@pytest.mark.parametrize("body", [ASK, STREAM])
async def test_who_meets_a_router_that_stops_comes_again_elsewhere(
    tmp_path: Path, body: bytes
) -> None:
    """A client's own next attempt takes the connection that it has, as long as it has it: to the
    same process, which says no again. See api7/aisix#995, wso2/api-platform#2121."""
    async with house(tmp_path) as found:
        wire = await Wire.to(found)
        await wire.send(request())
        assert (await wire.answer()).status == 200
        found.router.live.draining = True
        await wire.send(request(body))
        refused = await wire.answer()
        assert refused.code == "shutting_down"
        assert b"connection: close" in refused.head.lower()
        assert await asyncio.wait_for(wire.reader.read(), 5) == b""
        await wire.close()


@pytest.mark.parametrize("body", [ASK, STREAM])
async def test_so_does_who_meets_one_whose_log_is_broken(
    tmp_path: Path, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker's log may be well: this one answers so until it is replaced."""
    async with house(tmp_path) as found:

        async def broken(*_: object) -> None:
            raise LogUnavailable("no room")

        monkeypatch.setattr(type(found.router.live.log), "commit", broken)
        wire = await Wire.to(found)
        await wire.send(request(body))
        refused = await wire.answer()
        assert refused.code == "log_unavailable"
        assert b"connection: close" in refused.head.lower()
        assert await asyncio.wait_for(wire.reader.read(), 5) == b""
        await wire.close()


async def test_who_is_refused_for_its_own_request_keeps_its_connection(running: House) -> None:
    wire = await Wire.to(running)
    for asked in (b"{", ASK):
        await wire.send(request(asked))
        assert (await wire.answer()).status == (400 if asked == b"{" else 200)
    await wire.close()
    await until(lambda: not running.router.live.concurrency.total)
