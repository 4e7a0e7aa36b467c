"""Connections that come together while the loop's turns are long are all taken soon."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import uvloop

from router.inbound.backlog import AT_ONCE, Backlog
from router.server import bind
from tests.router.house import house
from tests.router.wire import Wire, request

MANY = 3 * AT_ONCE


class Taken(asyncio.Protocol):
    """Counts itself, and those behind it are looked at."""

    def __init__(self, backlog: Backlog | None, there: list[asyncio.BaseTransport]) -> None:
        self.backlog = backlog
        self.there = there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.there.append(transport)
        if self.backlog is not None:
            self.backlog.look(lambda: Taken(self.backlog, self.there))


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    with bind(("127.0.0.1", 0), "listen") as found:
        yield found


@contextlib.contextmanager
def clients(found: socket.socket, number: int = MANY) -> Iterator[list[socket.socket]]:
    """So many connections, which the kernel has made and nobody has taken."""
    with contextlib.ExitStack() as kept:
        yield [
            kept.enter_context(socket.create_connection(found.getsockname())) for _ in range(number)
        ]


async def turns(there: list[asyncio.BaseTransport], wanted: int) -> int:
    """How many turns of the loop it takes until so many are there."""
    for turn in range(10 * wanted):
        if len(there) >= wanted:
            return turn
        await asyncio.sleep(0)
    raise AssertionError(f"{len(there)} of {wanted}")


def test_all_who_wait_are_taken_within_a_few_turns() -> None:
    async def taken(backlog: Backlog | None, found: socket.socket) -> int:
        there: list[asyncio.BaseTransport] = []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Taken(backlog, there), sock=found, backlog=2048)
        try:
            with clients(found):
                return await turns(there, MANY)
        finally:
            for one in there:
                one.close()
            server.close()

    with listening() as found:
        alone = uvloop.run(taken(None, found))
    with listening() as found:
        together = uvloop.run(taken(Backlog(found), found))
    assert together <= alone / 4
    with listening() as found:  # asyncio's own loop takes all by itself
        assert asyncio.run(taken(Backlog(found), found)) <= 10


def test_a_connection_taken_so_is_like_any_other() -> None:
    options = (
        (socket.IPPROTO_TCP, socket.TCP_NODELAY),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    )

    async def taken(found: socket.socket) -> list[list[int]]:
        there: list[asyncio.BaseTransport] = []
        backlog = Backlog(found)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Taken(backlog, there), sock=found, backlog=2048)
        with clients(found, 20):
            await turns(there, 20)
            kinds = [
                [one.get_extra_info("socket").getsockopt(*option) for option in options]
                for one in there
            ]
            assert {one.get_extra_info("sockname") for one in there} == {found.getsockname()}
            for one in there:
                one.close()
        server.close()
        return kinds

    with listening() as found:
        kinds = uvloop.run(taken(found))
    assert len(kinds) == 20
    assert all(kind == kinds[0] and all(kind) for kind in kinds)


def test_who_has_left_meanwhile_hurts_nobody() -> None:
    async def taken(found: socket.socket) -> None:
        there: list[asyncio.BaseTransport] = []
        backlog = Backlog(found)
        loop = asyncio.get_running_loop()
        wrong: list[object] = []
        loop.set_exception_handler(lambda _, context: wrong.append(context))
        server = await loop.create_server(lambda: Taken(backlog, there), sock=found, backlog=2048)
        with clients(found) as waiting:
            for gone in waiting[1::2]:  # it resets, as one that is killed
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.close()
            await turns(there, MANY // 2)
            await asyncio.sleep(0.05)
            for one in there:
                one.close()
        server.close()
        await asyncio.sleep(0)
        backlog.look(lambda: Taken(backlog, there))  # after the end there is nobody
        await asyncio.sleep(0.01)
        assert wrong == []

    with listening() as found:
        uvloop.run(taken(found))


def test_a_router_takes_them_and_answers_each(tmp_path: Path) -> None:
    async def answered() -> int:
        async with house(tmp_path) as found:
            wires = [await Wire.to(found) for _ in range(100)]
            for wire in wires:
                await wire.send(request())
            async with asyncio.timeout(30):
                codes = [(await wire.answer()).status for wire in wires]
            for wire in wires:
                await wire.close()
            await asyncio.sleep(0.05)
            return codes.count(200)

    assert uvloop.run(answered()) == 100
