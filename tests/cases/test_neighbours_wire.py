"""Neighbours of the reports on balancing and timeouts: what clients of all ages and kinds write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from tests.router.house import House, house
from tests.router.wire import ASK, CHAT, Wire, request

STREAM = ASK[:-1] + b',"stream":true}'
JAVA = (
    b"connection: Upgrade, HTTP2-Settings",
    b"http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    b"upgrade: h2c",
    b"user-agent: Java-http-client/21.0.2",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("house")) as found:
        yield found


pytestmark = pytest.mark.asyncio(loop_scope="module")


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("step", [1, 40, 1 << 20])
@pytest.mark.parametrize("body", [ASK, STREAM])
@pytest.mark.parametrize("sized", [True, False])
async def test_a_client_that_asks_for_another_protocol_first(
    running: House, body: bytes, sized: bool, step: int
) -> None:
    """Java's client does, with its body: it is served by the one that it spoke."""
    asked = request(body, *JAVA)
    if not sized:
        whole = request(b"", *JAVA, b"transfer-encoding: chunked", length=b"-")
        asked = whole + chunked(body)
    wire = await Wire.to(running)
    async with asyncio.timeout(60):
        for again in (asked, request(ASK), asked, asked + request(ASK)):
            for at in range(0, len(again), step):
                await wire.send(again[at : at + step])
                if step == 1:
                    await asyncio.sleep(0)
            assert (await wire.answer()).code == "ok"
        assert (await wire.answer()).code == "ok"  # of the one behind
    await wire.close()


async def test_and_says_that_it_closes(running: House) -> None:
    fields = (b"connection: close, upgrade", b"upgrade: h2c")
    wire = await Wire.to(running)
    await wire.send(request(ASK, *fields))
    async with asyncio.timeout(20):
        assert b"\r\nconnection: close\r\n" in (await wire.answer()).head
        assert await wire.reader.read() == b""
    await wire.close()


async def test_many_that_ask_for_it_behind_each_other_are_refused(running: House) -> None:
    """Each would be read anew within the one before: nobody has so many to ask."""
    wrong: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: wrong.append(told))
    wire = await Wire.to(running)
    await wire.send(request(ASK, *JAVA) * 700)
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):  # all of it is not read
            assert (await wire.reader.read()).startswith(b"HTTP/1.1 400")
    await wire.close()
    assert wrong == []
    asyncio.get_running_loop().set_exception_handler(None)


@pytest.mark.parametrize("line", [b"CONNECT x:80 HTTP/1.1", b"CONNECT /v1/x HTTP/1.1"])
async def test_no_tunnel_is_opened(running: House, line: bytes) -> None:
    wire = await Wire.to(running)
    await wire.send(request(ASK, *JAVA, line=line))
    async with asyncio.timeout(20):
        assert (await wire.answer()).status in {400, 404, 405}
    await wire.close()


@pytest.mark.parametrize("fields", [(), (b"connection: keep-alive",), (b"connection: close",)])
@pytest.mark.parametrize("body", [ASK, STREAM])
async def test_a_client_of_http_1_0_gets_no_chunks(
    running: House, body: bytes, fields: tuple[bytes, ...]
) -> None:
    """It would take their sizes for the answer: the answer ends with its connection."""
    wire = await Wire.to(running)
    await wire.send(request(body, *fields, line=CHAT.replace(b"/1.1", b"/1.0")))
    async with asyncio.timeout(20):
        head, _, answer = (await wire.reader.read()).partition(b"\r\n\r\n")
    assert b" 200 " in head
    assert b"transfer-encoding" not in head
    assert b"\r\nconnection: close" in head
    if body is STREAM:
        assert answer.startswith(b"data: {")
        assert answer.endswith(b"data: [DONE]\n\n")
    else:
        assert answer.startswith(b"{")
        assert b"content-length: %d" % len(answer) in head
    await wire.close()


@pytest.mark.parametrize(
    ("path", "status"), [(b"/v1/chat/completions", 405), (b"/healthz", 200), (b"/v1/nothing", 404)]
)
async def test_nothing_follows_the_head_of_an_answer_to_head(
    running: House, path: bytes, status: int
) -> None:
    """On a connection that a proxy shares, its body would be the next client's answer."""
    wire = await Wire.to(running)
    for _ in range(2):
        await wire.send(request(b"", line=b"HEAD " + path + b" HTTP/1.1", length=b"-"))
        async with asyncio.timeout(20):
            head = await wire.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
    await wire.send(request(ASK))
    async with asyncio.timeout(20):
        assert (await wire.answer()).code == "ok"
    await wire.close()
