"""Requests of which two readers could think differently where they end: nobody behind gets in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.router.house import House, house
from tests.router.wire import ASK, Wire, request

CHUNKED = b"transfer-encoding: chunked"
SIZE = b"%x" % len(ASK)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    async with house(folder) as found:
        yield found


pytestmark = pytest.mark.asyncio(loop_scope="module")


def coded(size: bytes = SIZE, end: bytes = b"\r\n0\r\n\r\n", line: bytes = CHUNKED) -> bytes:
    """A request in chunks: what says that it is, its first size line, and its end."""
    return request(size + b"\r\n" + ASK + end, line, length=b"-")


REFUSED = {
    "length before chunks": request(ASK, CHUNKED),
    "other coding": coded(line=b"transfer-encoding: xchunked"),
    "coding after chunks": coded(line=b"transfer-encoding: chunked, identity"),
    "coding with a parameter": coded(line=b"transfer-encoding: chunked;q=1"),
    "coding in quotes": coded(line=b'transfer-encoding: "chunked"'),
    "coding after a vertical tab": coded(line=b"transfer-encoding: \x0bchunked"),
    "blank before the colon": coded(line=b"transfer-encoding : chunked"),
    "lengths in a list": request(ASK, length=b"%d, %d" % (len(ASK), len(ASK))),
    "length twice": request(ASK, b"content-length: %d" % len(ASK)),
    "length in hex": request(ASK, length=b"0x%x" % len(ASK)),
    "line feeds": request(ASK).replace(b"\r\n", b"\n"),
    "one line feed": request(ASK).replace(b"\r\n", b"\n", 1),
    "size and a line feed": coded(SIZE + b"\n").replace(b"\n\r\n", b"\n", 1),
    "size in hex": coded(b"0x" + SIZE),
    "size with a sign": coded(b"+" + SIZE),
    "size and a blank": coded(SIZE + b" "),
    "size above 64 bits": coded(b"10000000000000000" + SIZE),
    "line end in a quoted extension": coded(SIZE + b';a="\r\n0\r\n\r\n'),
    "data and a line feed": coded(end=b"\n0\r\n\r\n"),
    "end in line feeds": coded(end=b"\r\n0\n\n"),
    "length in a trailer": coded(end=b"\r\n0\r\ncontent-length: 9\r\n\r\n"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_it_is_refused_and_the_connection_ends(running: House, name: str) -> None:
    """Also what stands behind it, a whole request, is never read as one."""
    before = running.hits("self:fra1") + running.hits("self:par1")
    wire = await Wire.to(running)
    await wire.send(REFUSED[name] + request())
    async with asyncio.timeout(20):
        answered = await wire.answer()
        assert (answered.status, answered.code) == (400, "invalid_http")
        assert await wire.reader.read() == b""
    await wire.close()
    assert running.hits("self:fra1") + running.hits("self:par1") == before


async def test_what_is_only_unusual_is_read_as_everybody_reads_it(running: House) -> None:
    usual = {
        "tab": coded(line=b"transfer-encoding:\tchunked"),
        "capitals": coded(line=b"Transfer-Encoding: CHUNKED"),
        "extension": coded(SIZE + b';a="b;c"'),
        "zeros": coded(b"000" + SIZE),
        "zeros in a length": request(ASK, length=b"000%d" % len(ASK)),
        "whole url": request(ASK, line=b"POST http://other/v1/chat/completions HTTP/1.1"),
    }
    for name, asked in usual.items():
        wire = await Wire.to(running)
        await wire.send(asked + request())
        async with asyncio.timeout(20):
            assert [(await wire.answer()).status for _ in range(2)] == [200, 200], name
        await wire.close()
