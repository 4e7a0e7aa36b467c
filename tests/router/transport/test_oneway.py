"""Bytes to a peer that answers nothing: only its own end, after ours, says that it read them."""

from __future__ import annotations

import asyncio

import pytest

from router.transport.dial import SystemResolver
from router.transport.messages import (
    ConnectFailed,
    ConnectionLost,
    Origin,
    Tls,
    TransportError,
)
from router.transport.oneway import OneWay
from tests.rawserver import Line, RawServer, Script, now
from tests.router.transport.test_dial_tls import Papers, papers, server_side

__all__ = ("papers",)
DATA = b"".join(b"%07d" % number for number in range(200_000))


class Reading:
    """Reads to the end, then ends; keeps what came."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def __call__(self, line: Line) -> None:
        self.got.append(await line.reader.read())


async def deliver(script: Script, data: bytes = DATA, seconds: float = 5.0) -> None:
    async with RawServer(script) as server:
        await OneWay().deliver(Origin("http", "127.0.0.1", server.port), data, now() + seconds)


@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=["nothing", "a byte", "1.4 MB"])
async def test_what_is_delivered_was_read(data: bytes) -> None:
    reading = Reading()
    await deliver(reading, data)
    assert reading.got == [data]


async def test_a_slow_reader_holds_the_sender_back() -> None:
    got = bytearray()

    async def slow(line: Line) -> None:
        while part := await line.reader.read(50_000):
            got.extend(part)
            await asyncio.sleep(0.002)

    await deliver(slow)
    assert bytes(got) == DATA


async def nothing(line: Line) -> None:
    """Reads nothing and never ends."""
    line.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(30)


async def reset(line: Line) -> None:
    await line.reader.read(1000)
    line.reset()


async def ends_unread(line: Line) -> None:
    """Its end comes after ours, and yet it took nothing."""
    line.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(0.2)
    line.writer.write_eof()
    await asyncio.sleep(30)


async def ends_at_once(line: Line) -> None:
    line.writer.close()


async def ends_in_the_middle(line: Line) -> None:
    await line.reader.readexactly(70_000)
    line.writer.close()


@pytest.mark.parametrize("script", [nothing, reset, ends_unread, ends_at_once, ends_in_the_middle])
@pytest.mark.parametrize("data", [b"x" * 400_000, DATA], ids=["short", "long"])
async def test_anything_else_is_a_failure(script: Script, data: bytes) -> None:
    with pytest.raises(TransportError):
        await deliver(script, data, 1.0)


async def test_a_peer_that_ends_first_has_read_nothing() -> None:
    """However little there is to say."""

    async def ends_first(line: Line) -> None:
        line.reset()

    for _ in range(20):
        with pytest.raises(TransportError):
            await deliver(ends_first, b"x", 1.0)


async def test_nobody_listens() -> None:
    with pytest.raises(ConnectFailed):
        await OneWay().deliver(Origin("http", "127.0.0.1", 1), b"x", now() + 2)


async def over_tls(papers: Papers, script: Script, data: bytes, files: Tls | None) -> None:
    async with RawServer(script, server_side(papers)) as server:
        line = OneWay(SystemResolver({"eu.internal": ("127.0.0.1", server.port)}))
        await line.deliver(Origin("https", "eu.internal", 6514, files), data, now() + 5)


@pytest.mark.parametrize("data", [b"x", DATA], ids=["a byte", "1.4 MB"])
async def test_over_tls(papers: Papers, data: bytes) -> None:
    reading = Reading()
    await over_tls(papers, reading, data, Tls(ca=papers.ca))
    for _ in range(200):
        if reading.got:
            break
        await asyncio.sleep(0.01)
    assert reading.got == [data]


async def test_over_tls_to_nobody_known(papers: Papers) -> None:
    with pytest.raises(ConnectFailed):
        await over_tls(papers, Reading(), b"x", None)


async def test_over_tls_a_broken_connection_is_a_failure(papers: Papers) -> None:
    with pytest.raises(ConnectionLost):
        await over_tls(papers, reset, DATA, Tls(ca=papers.ca))
