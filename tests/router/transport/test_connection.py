"""One connection: framings, endings, and what never crosses to another request."""

from __future__ import annotations

import asyncio
import sys

import pytest

from router.transport.client import HttpTransport
from router.transport.messages import (
    AnswerTooLarge,
    ConnectionLost,
    Fate,
    GarbledAnswer,
    Origin,
    OutboundRequest,
)
from tests.rawserver import (
    OK,
    Line,
    ask,
    now,
    saying,
    served,
    settled,
    whole,
    within,
)


async def test_a_request_is_what_the_endpoint_reads() -> None:
    seen: list[bytes] = []

    async def script(line: Line) -> None:
        seen.append(await line.request())
        await line.say(OK)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server, b'{"a":1}'), within(5))
        assert (response.status, await whole(response)) == (200, b"ok")
    host = b"host: 127.0.0.1:%d\r\n" % server.port
    rest = b'content-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}'
    assert seen == [b"POST /v1/x HTTP/1.1\r\n" + host + rest]


FRAMINGS = {
    "length": (OK,),
    "length in pieces": (b"HTTP/1.1 200 O", b"K\r\ncontent-len", b"gth: 2\r\n\r", b"\no", b"k"),
    "chunked": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n",
        b"1\r\nk\r\n0\r\n\r\n",
    ),
    "chunked with trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n",
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK,
    ),
}


@pytest.mark.parametrize("name", sorted(FRAMINGS))
async def test_framings_that_keep_the_connection(name: str) -> None:
    async with served(saying(*FRAMINGS[name])) as (server, transport):
        for _ in range(3):
            response = await transport.send(ask(server), within(5))
            assert response.status == 200
            assert (b"link", b"x") not in response.headers
            assert (b"x", b"y") not in response.headers
            assert await whole(response) == b"ok"
        assert len(server.lines) == 1


CLOSING = {
    "until close": b"HTTP/1.1 200 OK\r\n\r\nok",
    "1.0": b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "said": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
}


@pytest.mark.parametrize("name", sorted(CLOSING))
async def test_framings_that_end_the_connection(name: str) -> None:
    async with served(saying(CLOSING[name], close=True)) as (server, transport):
        for _ in range(2):
            response = await transport.send(ask(server), within(5))
            assert await whole(response) == b"ok"
        assert len(server.lines) == 2
        await settled(transport, 0)


@pytest.mark.parametrize("status", [204, 304])
async def test_statuses_without_a_body(status: int) -> None:
    head = b"HTTP/1.1 %d X\r\nx: y\r\n\r\n" % status
    async with served(saying(head)) as (server, transport):
        for _ in range(2):
            response = await transport.send(ask(server), within(5))
            assert (response.status, await whole(response)) == (status, b"")
        assert len(server.lines) == 1


async def test_a_head_request_has_no_body_whatever_its_headers_say() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
    async with served(saying(head)) as (server, transport):
        response = await transport.send(ask(server, b"", "HEAD"), within(5))
        assert await whole(response) == b""


async def test_an_empty_get_has_no_content_length() -> None:
    seen: list[bytes] = []

    async def script(line: Line) -> None:
        seen.append(await line.request())
        await line.say(OK)

    async with served(script) as (server, transport):
        await whole(await transport.send(ask(server, b"", "GET"), within(5)))
    assert b"content-length" not in seen[0]


async def test_a_large_first_read_is_not_a_large_head() -> None:
    body = b"x" * 200_000
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    async with served(saying(answer)) as (server, transport):
        assert await whole(await transport.send(ask(server), within(5))) == body


@pytest.mark.parametrize("form", ["one header", "many headers", "no end", "reason", "trailers"])
async def test_a_large_head_is_refused(form: str) -> None:
    """Also when all of it comes with the body in one read."""
    big = b"y" * 20_000
    answers = {
        "one header": b"HTTP/1.1 200 OK\r\nx: " + big + b"\r\ncontent-length: 2\r\n\r\nok",
        "many headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 5000 + b"\r\n",
        "no end": b"HTTP/1.1 200 OK\r\nx: " + big,
        "reason": b"HTTP/1.1 200 " + big + b"\r\ncontent-length: 2\r\n\r\nok",
        "trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: "
        + big
        + b"\r\n\r\n",
    }
    async with served(saying(answers[form])) as (server, transport):
        with pytest.raises(AnswerTooLarge):
            await whole(await transport.send(ask(server), within(5)))
        await settled(transport, 0)


GARBAGE = {
    "not http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "both lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
    "bad chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "bad header": b"HTTP/1.1 200 OK\r\nx y: z\r\ncontent-length: 2\r\n\r\nok",
    "no status": b"HTTP/1.1 000 Nothing\r\ncontent-length: 0\r\n\r\n" + OK,
    "body before the answer": b"HTTP/1.1 103 Early\r\ncontent-length: 2\r\n\r\nxx" + OK,
}


@pytest.mark.parametrize("name", sorted(GARBAGE))
async def test_garbage_is_a_typed_error(name: str) -> None:
    async with served(saying(GARBAGE[name])) as (server, transport):
        with pytest.raises(GarbledAnswer) as caught:
            await whole(await transport.send(ask(server), within(5)))
        assert caught.value.fate is Fate.UNKNOWN
        await settled(transport, 0)


async def test_bytes_after_an_answer_never_reach_the_next_request() -> None:
    """A second answer to one request closes the connection, in the same read or later."""
    poison = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"
    async with served(saying(OK + poison)) as (server, transport):
        for _ in range(3):
            assert await whole(await transport.send(ask(server), within(5))) == b"ok"
        assert len(server.lines) == 3

    async def late(line: Line) -> None:
        await line.request()
        await line.say(OK)
        await asyncio.sleep(0.02)
        await line.say(poison)
        await line.closed_by_peer()

    async with served(late) as (server, transport):
        assert await whole(await transport.send(ask(server), within(5))) == b"ok"
        await asyncio.sleep(0.06)
        assert await whole(await transport.send(ask(server), within(5))) == b"ok"
        assert len(server.lines) == 2


@pytest.mark.parametrize(
    ("after", "ends"), [(b"0\r\n\r\n", "whole"), (b"zz\r\n", "garbled"), (b"", "open")]
)
async def test_what_came_in_one_read_is_pushed_before_its_end_is_told(
    after: bytes, ends: str
) -> None:
    """Also before an error, and after a taker said no."""

    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await asyncio.sleep(0.02)
        await line.say(b"3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n" + after)
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(5))
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            return ends != "open"  # else the rest waits

        if ends == "garbled":
            with pytest.raises(GarbledAnswer):
                await response.push(take, 5, now)
        else:
            assert await response.push(take, 5, now) == (ends == "whole")
            if ends == "open":
                taken.append(await response.chunk(within(5).deadline))
        assert b"".join(taken) == b"onetwothree"
        response.abort()


async def test_an_answer_cut_short_is_an_error() -> None:
    for answer in (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
    ):
        async with served(saying(answer, close=True)) as (server, transport):
            response = await transport.send(ask(server), within(5))
            assert await response.chunk(now() + 5) == b"ok"
            with pytest.raises(ConnectionLost) as caught:
                await response.chunk(now() + 5)
            assert (caught.value.fate, caught.value.stale) == (Fate.UNKNOWN, False)


async def test_a_reset_within_an_answer_without_a_length_is_an_error() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\nsome")
        await asyncio.sleep(0.02)
        line.reset()

    async with served(script) as (server, transport):
        with pytest.raises(ConnectionLost):
            await whole(await transport.send(ask(server), within(5)))


async def test_a_request_that_was_written_and_lost_has_an_unknown_fate() -> None:
    async def script(line: Line) -> None:
        await line.request()

    async with served(script) as (server, transport):
        with pytest.raises(ConnectionLost) as caught:
            await transport.send(ask(server), within(5))
        assert (caught.value.fate, caught.value.stale) == (Fate.UNKNOWN, False)
        assert len(server.lines) == 1


async def test_a_request_whose_end_did_not_leave_was_only_partly_sent() -> None:
    async def script(line: Line) -> None:
        await line.reader.read(1000)
        await asyncio.sleep(0.05)
        line.reset()

    async with served(script) as (server, transport):
        with pytest.raises(ConnectionLost) as caught:
            await transport.send(ask(server, b"x" * 30_000_000), within(5))
        assert caught.value.fate is Fate.PARTLY_SENT


async def test_an_early_answer_to_a_half_written_request_is_heard() -> None:
    async def script(line: Line) -> None:
        await line.reader.read(1000)
        await line.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(5)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server, b"x" * 30_000_000), within(5))
        assert (response.status, await whole(response)) == (413, b"big")
        assert transport.counts.idle == 0
        await settled(transport, 0)


# A process of its own: only then does it reset while this one is in the middle of a write.
REFUSES = r"""
import socket, struct
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    found, _ = listening.accept()
    found.recv(1000)
    found.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    found.close()
"""


async def test_an_early_answer_is_heard_though_the_connection_was_reset() -> None:
    """Who closes on bytes that it did not read resets (RFC 9112, 9.6); its answer came before."""
    out = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", REFUSES, stdout=out)
    transport = HttpTransport()
    try:
        assert server.stdout is not None
        origin = Origin("http", "127.0.0.1", int(await server.stdout.readline()))
        for size in (200_000, 1_500_000) * 15:
            request = OutboundRequest(origin, "POST", "/", (), b"x" * size)
            response = await transport.send(request, within(5))
            assert (response.status, await whole(response)) == (413, b"big")
            await settled(transport, 0)
    finally:
        await transport.close()
        server.kill()
        await server.communicate()


async def test_a_stale_connection_is_seen_before_it_is_used() -> None:
    """failover-10: the endpoint closed an idle connection; the request goes to a fresh one."""

    async def script(line: Line) -> None:
        await line.request()
        await line.say(OK)

    async with served(script) as (server, transport):
        for _ in range(3):
            assert await whole(await transport.send(ask(server), within(5))) == b"ok"
        assert len(server.lines) == 3


async def test_a_close_that_crosses_the_request_is_repeated_once_if_that_is_safe() -> None:
    """failover-10: without a byte of an answer, and only for a request that may run twice."""
    ran: list[int] = []

    async def script(line: Line) -> None:
        ran.append(line.number)
        await line.request()
        await line.say(OK)
        # The next request is read, and the connection closed without a word.
        await line.reader.read(10)

    async with served(script) as (server, transport):
        assert await whole(await transport.send(ask(server), within(5))) == b"ok"
        response = await transport.send(ask(server, replay_safe=True), within(5))
        assert await whole(response) == b"ok"
        assert ran == [0, 1]
        with pytest.raises(ConnectionLost) as caught:
            await transport.send(ask(server), within(5))
        assert (caught.value.stale, caught.value.fate) == (True, Fate.UNKNOWN)
        assert ran == [0, 1]
