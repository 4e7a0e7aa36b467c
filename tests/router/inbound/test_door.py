"""The parser in front of every route: bounds, shapes, and no second voice in an answer.

How it bears bad input end to end is in `tests/cases/test_bad_input.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import uvicorn

from router.inbound.door import FIELDS_LIMIT, HEAD_LIMIT, Door, refusal
from tests.router.house import listening
from tests.router.wire import Answered, Wire


class Seen:
    """An ASGI application that keeps what came, and answers when it is let."""

    def __init__(self) -> None:
        self.heads: list[list[tuple[bytes, bytes]]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.part = asyncio.Event()

    async def __call__(self, scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]
        self.heads.append(scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"one", "more_body": True})  # type: ignore[operator]
        self.part.set()
        await self.go.wait()
        await send({"type": "http.response.body", "body": b"two"})  # type: ignore[operator]


@pytest.fixture
async def seen() -> Seen:
    return Seen()


@pytest.fixture
async def wire(seen: Seen) -> AsyncIterator[Wire]:
    door = listening()
    config = uvicorn.Config(seen, http=Door, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([door]))
    found = Wire(*await asyncio.open_connection(*door.getsockname()))
    try:
        yield found
    finally:
        await found.close()
        server.should_exit = server.force_exit = True
        await serving
        door.close()


async def answer(wire: Wire) -> Answered:
    return await asyncio.wait_for(wire.answer(), 10)


async def test_requests_pass_one_after_another(wire: Wire, seen: Seen) -> None:
    for _ in range(3):
        await wire.send(b"GET /a HTTP/1.1\r\nhost: x\r\nX-A: b\r\n\r\n")
        assert (await answer(wire)).body == b"onetwo"
    assert seen.heads == [[(b"host", b"x"), (b"x-a", b"b")]] * 3


async def test_the_limits_are_per_request(wire: Wire, seen: Seen) -> None:
    fields = b"".join(b"x-%d: y\r\n" % n for n in range(FIELDS_LIMIT - 1))
    long = b"x: " + b"y" * (HEAD_LIMIT - 100) + b"\r\n"
    for head in (fields, long, fields, long):
        await wire.send(b"GET /a HTTP/1.1\r\nhost: a\r\n" + head + b"\r\n")
        assert (await answer(wire)).status == 200
    await wire.send(b"GET /a HTTP/1.1\r\nhost: a\r\n" + fields + b"x: y\r\n\r\n")
    refused = await answer(wire)
    assert (refused.status, refused.code) == (431, "headers_too_large")
    assert len(seen.heads) == 4


CHUNKED = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_an_endless_element_is_cut_off_wherever_it_stands(wire: Wire) -> None:
    await wire.send(
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;" + b"x" * 300_000
    )
    data = await asyncio.wait_for(wire.reader.read(), 10)
    # One answer at most: none is put into one that has begun, or behind one to the same request.
    assert data.count(b"HTTP/1.1 200") + data.count(b"HTTP/1.1 431") == 1


async def test_extensions_of_chunks_are_bounded_over_all_of_a_body(wire: Wire, seen: Seen) -> None:
    """Each below what one element may have, and a body of them had no end."""
    seen.go.clear()
    await wire.send(CHUNKED)
    with suppress(ConnectionError):  # it may be cut off with something unread
        for _ in range(8):
            await wire.send(b"1;" + b"x" * 30_000 + b"\r\n.\r\n")
            await asyncio.sleep(0.02)
        await asyncio.wait_for(wire.reader.read(), 10)
    seen.go.set()


async def test_many_small_chunks_with_short_extensions_pass(wire: Wire, seen: Seen) -> None:
    seen.go.clear()
    await wire.send(CHUNKED)
    for _ in range(20):
        await wire.send(b"1;a=b\r\n.\r\n" * 1_000)
        await asyncio.sleep(0.001)
    await wire.send(b"0\r\n\r\n")
    seen.go.set()
    assert (await answer(wire)).status == 200


async def test_garbage_ends_an_answer_that_has_begun_without_a_word(wire: Wire, seen: Seen) -> None:
    seen.go.clear()
    await wire.send(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    await asyncio.wait_for(seen.part.wait(), 5)
    await wire.send(b"\x00\x00\r\n\r\n")
    data = await asyncio.wait_for(wire.reader.read(), 10)
    seen.go.set()
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.endswith(b"one\r\n")


async def test_trailers_are_left_out(wire: Wire, seen: Seen) -> None:
    seen.go.clear()
    await wire.send(
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nx-a: b\r\n\r\n1\r\n.\r\n"
    )
    await asyncio.wait_for(seen.part.wait(), 5)
    await wire.send(b"0\r\nauthorization: Bearer other\r\nx-a: c\r\n\r\n")
    seen.go.set()
    assert (await answer(wire)).status == 200
    came = [(b"host", b"a"), (b"transfer-encoding", b"chunked"), (b"x-a", b"b")]
    assert seen.heads == [came]


CODED = b"POST /a HTTP/1.1\r\nhost: a\r\n" + 2 * b"transfer-encoding: %b\r\n" + b"\r\n0\r\n\r\n"
AMBIGUOUS = (
    b"GET /a HTTP/1.1\r\n\r\n",
    b"GET /a HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
    b"POST /a HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    CODED % (b"gzip", b"chunked"),
    CODED % (b"chunked", b"chunked"),
    *(
        b"GET /a HTTP/1.1\r\nhost: %b\r\n\r\n" % host
        for host in (b"a b", b"a/b", b"u@a", b"a:b", b"[::1", b"a\xc3\xa9", b"http://a", b"a%2")
    ),
)


@pytest.mark.parametrize("sent", AMBIGUOUS)
async def test_what_others_may_read_as_another_request_is_refused(
    wire: Wire, seen: Seen, sent: bytes
) -> None:
    await wire.send(sent + b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n")
    found = await answer(wire)
    assert (found.status, found.code) == (400, "invalid_http")
    assert await asyncio.wait_for(wire.reader.read(-1), 10) == b""
    assert seen.heads == []


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /a HTTP/1.0\r\n\r\n",  # a host was not asked for then
        b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        b"GET /a HTTP/1.1\r\nhost:\r\n\r\n",  # no name is one, by RFC 9112, 3.3
        b"GET /a HTTP/1.1\r\nhost: [fe80::1%25eth0]:80\r\n\r\n",
        b"GET /a HTTP/1.1\r\nhost: a_b.c%20d:\r\n\r\n",
        b"GET /a HTTP/1.1\r\nhost: a:80 \t\r\n\r\n",  # spaces behind a value are none of it
    ],
)
async def test_what_has_one_meaning_is_served(wire: Wire, seen: Seen, sent: bytes) -> None:
    await wire.send(sent)
    assert (await answer(wire)).status == 200
    assert len(seen.heads) == 1


@pytest.mark.parametrize(("large", "status"), [(True, 431), (False, 400)])
def test_a_refusal_is_a_whole_answer(large: bool, status: int) -> None:
    head, _, body = refusal(too_large=large).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-length: %d\r\n" % len(body) in head
    assert b"connection: close" in head
    assert json.loads(body)["error"]["type"] == "invalid_request_error"
