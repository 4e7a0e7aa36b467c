"""Opening connections: names, addresses, time, and no environment."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress

import pytest

from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver, _open_socket
from router.transport.messages import (
    ConnectFailed,
    Fate,
    NoRoomHere,
    Origin,
    OutboundRequest,
)
from tests.garbage import let_go
from tests.rawserver import RawServer, ask, echo, now, served, within


async def test_nobody_listens() -> None:
    async with served(echo) as (_, transport):
        origin = Origin("http", "127.0.0.1", 1)
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert (caught.value.reason, caught.value.fate) == ("refused", Fate.NOT_SENT)
        assert transport.counts.open == 0


def starved(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "too many open files")


class Nameless:
    """Finds no address, as a lookup that may open nothing."""

    async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
        """See `Resolver`."""
        raise socket.gaierror(socket.EAI_AGAIN, "again")


@pytest.mark.parametrize("name", ["socket.socket", "router.transport.dial.has_room"])
@pytest.mark.parametrize("host", ["127.0.0.1", "eu.internal"])
async def test_a_process_without_descriptors_says_nothing_of_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    async with served(echo) as (server, _):
        transport = HttpTransport(Nameless() if host == "eu.internal" else None)
        monkeypatch.setattr(name, starved if "socket" in name else lambda number, kept: False)
        out = OutboundRequest(Origin("http", host, server.port), "POST", "/", ())
        with pytest.raises(NoRoomHere) as caught:
            await transport.send(out, within(5))
        monkeypatch.undo()
        assert (caught.value.fate, caught.value.hurried) == (Fate.NOT_SENT, True)
        assert transport.counts.open == 0
        await transport.close()


async def test_a_name_without_an_address_is_one_while_there_is_room() -> None:
    transport = HttpTransport(Nameless())
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(
            OutboundRequest(Origin("http", "eu.internal", 80), "POST", "/", ()), within(5)
        )
    assert caught.value.reason == "dns"
    await transport.close()


async def test_a_failed_connect_is_kept_by_nothing() -> None:
    async with served(echo) as (_, transport), let_go(ConnectFailed):
        origin = Origin("http", "127.0.0.1", 1)
        for _ in range(3):
            with suppress(ConnectFailed):
                await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))


async def test_names_are_resolved_by_the_resolver_alone() -> None:
    async with RawServer(echo) as server:
        fixed = SystemResolver({"eu.internal": ("127.0.0.1", server.port)})
        transport = HttpTransport(fixed)
        origin = Origin("http", "eu.internal", 80)
        response = await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert response.status == 200
        await transport.close()


async def test_a_name_without_an_address() -> None:
    class Nowhere:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            raise OSError("no such name")

    transport = HttpTransport(Nowhere())
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(
            OutboundRequest(Origin("http", "nowhere.internal", 80), "POST", "/", ()), within(5)
        )
    assert caught.value.reason == "dns"
    await transport.close()


async def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async with RawServer(echo) as server:

        class Two:
            async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
                return [("127.0.0.1", 1), ("127.0.0.1", server.port)]

        transport = HttpTransport(Two())
        request = OutboundRequest(Origin("http", "two.internal", 80), "POST", "/", ())
        assert (await transport.send(request, within(5))).status == 200
        await transport.close()


async def test_an_address_that_swallows_packets_leaves_time_for_the_next() -> None:
    async with RawServer(echo) as server:
        # A full backlog: the kernel answers no more connections.
        deaf = socket.create_server(("127.0.0.1", 0), backlog=0)
        port: int = deaf.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(("127.0.0.1", port))

        class Two:
            async def resolve(self, host: str, _: int) -> list[tuple[str, int]]:
                return [("127.0.0.1", port), ("127.0.0.1", server.port)]

        transport = HttpTransport(Two())
        request = OutboundRequest(Origin("http", "two.internal", 80), "POST", "/", ())
        assert (await transport.send(request, within(5, connect=0.6))).status == 200
        await transport.close()
        for one in (*callers, deaf):
            one.close()


def test_dead_peers_are_found_by_the_kernel() -> None:
    """timeouts-03, failover-10: a peer that vanished in silence."""
    opened = _open_socket(("127.0.0.1", 80))
    with opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


async def test_a_slow_name_is_a_connect_timeout() -> None:
    class Slow:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await asyncio.sleep(5)
            return []

    transport = HttpTransport(Slow())
    request = OutboundRequest(Origin("http", "slow.internal", 80), "POST", "/", ())
    began = now()
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(request, within(5, connect=0.05))
    assert caught.value.reason == "timeout"
    assert now() - began < 1
    assert transport.counts.open == 0
    await transport.close()


async def test_cancelling_a_connect_leaves_nothing() -> None:
    class Slow:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await asyncio.sleep(60)
            return []

    transport = HttpTransport(Slow())
    request = OutboundRequest(Origin("http", "slow.internal", 80), "POST", "/", ())
    task = asyncio.create_task(transport.send(request, within(60)))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
    assert transport.counts.open == 0
    await transport.close()


async def test_environment_variables_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(echo) as (server, transport):
        assert (await transport.send(ask(server), within(5))).status == 200


async def test_the_system_resolver_gives_addresses_as_they_are() -> None:
    assert list(await SystemResolver().resolve("::1", 8000)) == [("::1", 8000)]
    assert ("127.0.0.1", 8000) in await SystemResolver().resolve("localhost", 8000)
