"""SRV records over a real name server: all of them, with their addresses, as long as they last."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from router.transport import names
from router.transport.names import Addresses, Located, Names, NotFound, Service
from tests.router.transport.nameserver import NameServer, nameserver

NAME = "_llm._tcp.fra.example."


async def looked(server: NameServer, name: str = NAME) -> Service:
    return await Names([("127.0.0.1", server.port)]).service(name)


async def test_every_record_and_every_address_counts() -> None:
    async with nameserver() as server:
        server.srv(NAME, "10 3 8000 a.example.", "10 1 8001 b.example.", "20 0 8000 c.example.")
        server.a("a.example.", "10.0.0.1", "10.0.0.2", "fd00::1")
        server.a("b.example.", "10.0.0.3")
        server.a("c.example.", "10.0.0.4")
        found = await looked(server)
        assert set(found.places) == {
            Located("10.0.0.1", 8000, 10, 3),
            Located("10.0.0.2", 8000, 10, 3),
            Located("fd00::1", 8000, 10, 3),
            Located("10.0.0.3", 8001, 10, 1),
            Located("10.0.0.4", 8000, 20, 0),
        }
        assert found.left_out == ()


@pytest.mark.parametrize(("record", "address", "ttl"), [(30, 60, 30), (300, 5, 5), (0, 60, 0)])
async def test_it_lasts_as_long_as_the_shortest_of_all(record: int, address: int, ttl: int) -> None:
    async with nameserver() as server:
        server.srv(NAME, "1 1 80 a.example.", ttl=record)
        server.a("a.example.", "10.0.0.1", ttl=address)
        assert (await looked(server)).ttl == ttl


async def test_a_host_that_is_gone_is_left_out_and_told() -> None:
    async with nameserver() as server:
        server.srv(NAME, "1 1 80 a.example.", "1 1 80 gone.example.")
        server.a("a.example.", "10.0.0.1")
        found = await looked(server)
        assert [one.address for one in found.places] == ["10.0.0.1"]
        assert found.left_out == ("gone.example",)


async def test_a_host_whose_server_fails_is_not_taken_for_gone() -> None:
    async with nameserver() as server:
        server.srv(NAME, "1 1 80 a.example.", "1 1 80 ill.example.")
        server.a("a.example.", "10.0.0.1")
        server.broken.add("ill.example.")
        with pytest.raises(NotFound, match="every name server failed"):
            await looked(server)


async def test_what_cannot_be_looked_up_is_said_in_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(names, "LIFETIME", 0.2)
    async with nameserver() as server:
        server.a("_http._tcp.fra.example.", "10.0.0.1")
        server.srv("none._tcp.example.", "0 0 0 .")
        server.srv("empty._tcp.example.", "1 1 80 gone.example.")
        server.srv("many._tcp.example.", *(f"1 1 {n} a.example." for n in range(600)))
        for name, said in (
            ("nowhere.example.", "there is no such name"),
            ("_http._tcp.fra.example.", "it has no SRV record"),
            ("none._tcp.example.", "says that there is no such service"),
            ("empty._tcp.example.", "no host that .* has an address"),
            ("bad..name", "EmptyLabel"),
        ):
            with pytest.raises(NotFound, match=said):
                await looked(server, name)
        server.silent = True
        with pytest.raises(NotFound, match="no name server answered in time"):
            await looked(server)


async def test_the_systems_resolver_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can't be ended, and files and reloads are read in the others."""
    gone = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: gone.wait(20) or [])
    one = Addresses()
    asked = [asyncio.ensure_future(one("fra.internal", 8000)) for _ in range(64)]
    await asyncio.sleep(0)
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 5) == 7
    finally:
        gone.set()
    with pytest.raises(TypeError):  # what the stand-in gives is no address
        await asyncio.gather(*asked)
    await asyncio.wait(asked)


async def test_answers_are_read_beside_the_event_loop() -> None:
    """One of a thousand addresses takes a tenth of a second: all streams stood still for it."""
    where: list[threading.Thread] = []

    class Told(Names):
        async def _service(self, name: str) -> Service:
            where.append(threading.current_thread())
            return Service((), 1.0)

    assert await Told().service(NAME) == Service((), 1.0)
    assert where != [threading.current_thread()]
