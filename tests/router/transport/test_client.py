"""The transport against real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver
from router.transport.messages import (
    Aborted,
    AnswerTimeout,
    AnswerTooLarge,
    ConnectFailed,
    ConnectionLost,
    Fate,
    GarbledAnswer,
    Origin,
    OutboundRequest,
    OutboundResponse,
    Timeouts,
    TransportError,
    UnsafeRequest,
    read_body,
)
from tests.rawserver import Line, RawServer, Script

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def now() -> float:
    return asyncio.get_running_loop().time()


def within(seconds: float, *, first_byte: float = float("inf"), connect: float = 5.0) -> Timeouts:
    return Timeouts(now() + seconds, connect, first_byte)


@asynccontextmanager
async def served(
    script: Script, limit: int = 16, keep_alive: float = 4.0
) -> AsyncIterator[tuple[RawServer, HttpTransport]]:
    async with RawServer(script) as server:
        transport = HttpTransport(limit=limit, keep_alive=keep_alive, head_limit=16384)
        try:
            yield server, transport
        finally:
            await transport.close()


def ask(
    server: RawServer, body: bytes = b"{}", method: str = "POST", *, replay_safe: bool = False
) -> OutboundRequest:
    origin = Origin("http", "127.0.0.1", server.port)
    headers = ((b"content-type", b"application/json"),)
    return OutboundRequest(origin, method, "/v1/x", headers, body, replay_safe)


async def whole(response: OutboundResponse, seconds: float = 5.0) -> bytes:
    return await read_body(response, 1 << 30, now() + seconds)


async def echo(line: Line) -> None:
    """Answers each request with its own body."""
    while True:
        request = await line.request()
        await line.json(request.split(b"\r\n\r\n", 1)[1])


def saying(*parts: bytes, close: bool = False) -> Script:
    """Answers each request with these writes."""

    async def script(line: Line) -> None:
        while True:
            await line.request()
            for part in parts:
                await line.say(part)
                await asyncio.sleep(0)
            if close:
                return

    return script


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


async def test_connections_are_reused() -> None:
    async with served(echo) as (server, transport):
        for number in range(20):
            response = await transport.send(ask(server, b"%d" % number), within(5))
            assert await whole(response) == b"%d" % number
        assert len(server.lines) == 1
        assert (transport.counts.open, transport.counts.idle) == (1, 1)
        assert transport.counts.created == 1


async def test_an_answer_read_late_is_not_the_next_request_s() -> None:
    """A connection is free again when its answer has ended, though nobody has read it yet."""
    async with served(echo, limit=1) as (server, transport):
        first = await transport.send(ask(server, b"first"), within(5))
        second = await transport.send(ask(server, b"second"), within(5))
        third = await transport.send(ask(server, b"third"), within(5))
        assert await whole(third) == b"third"
        assert await whole(first) == b"first"
        assert await whole(second) == b"second"
        assert len(server.lines) == 1


async def test_bursts_over_few_connections_keep_their_answers() -> None:
    """balancing-07: requests after the first burst fail only through the router."""
    async with served(echo, limit=3) as (server, transport):

        async def one(number: int) -> None:
            body = b"%d" % number if number % 3 else b""
            response = await transport.send(ask(server, body), within(10))
            await asyncio.sleep(0.001 * (number % 4))
            assert await whole(response) == body

        for burst in range(3):
            await asyncio.gather(*(one(burst * 50 + number) for number in range(50)))
        assert len(server.lines) == 3
        assert transport.counts.idle == 3


async def test_waiting_requests_go_in_order_of_arrival() -> None:
    order: list[bytes] = []

    async def script(line: Line) -> None:
        while True:
            request = await line.request()
            order.append(request.rsplit(b"\r\n\r\n", 1)[1])
            await asyncio.sleep(0.002)
            await line.say(OK)

    async with served(script, limit=1) as (server, transport):

        async def one(number: int) -> None:
            await whole(await transport.send(ask(server, b"%d" % number), within(10)))

        await asyncio.gather(*(one(number) for number in range(10)))
    assert order == [b"%d" % number for number in range(10)]


async def test_a_waiter_that_gives_up_leaves_the_queue_whole() -> None:
    release = asyncio.Event()

    async def script(line: Line) -> None:
        while True:
            await line.request()
            await release.wait()
            await line.say(OK)

    async with served(script, limit=1) as (server, transport):
        first = asyncio.create_task(transport.send(ask(server), within(5)))
        await asyncio.sleep(0.02)
        quitter = asyncio.create_task(transport.send(ask(server), within(5)))
        late = asyncio.create_task(transport.send(ask(server), within(5)))
        await asyncio.sleep(0.02)
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(ask(server), within(0.05))
        assert (caught.value.reason, caught.value.fate) == ("full", Fate.NOT_SENT)
        quitter.cancel()
        release.set()
        assert (await first).status == 200
        assert (await late).status == 200
        assert transport.counts.open == 1


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


async def settled(transport: HttpTransport, count: int) -> None:
    """Wait until that many connections are open."""
    give_up = now() + 3
    while transport.counts.open != count:
        assert now() < give_up, transport.counts
        await asyncio.sleep(0.005)


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


async def test_a_large_body_is_refused_before_and_while_it_comes() -> None:
    async with served(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")) as (
        server,
        transport,
    ):
        response = await transport.send(ask(server), within(5))
        with pytest.raises(AnswerTooLarge):
            await read_body(response, 100, now() + 5)
    async with served(saying(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 9999)) as (server, transport):
        response = await transport.send(ask(server), within(5))
        with pytest.raises(AnswerTooLarge):
            await read_body(response, 100, now() + 5)
        await settled(transport, 0)


GARBAGE = {
    "not http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "both lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
    "bad chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "bad header": b"HTTP/1.1 200 OK\r\nx y: z\r\ncontent-length: 2\r\n\r\nok",
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


async def test_an_endpoint_that_reads_nothing_times_out_as_partly_sent() -> None:
    async def script(line: Line) -> None:
        await asyncio.sleep(5)

    async with served(script) as (server, transport):
        with pytest.raises(AnswerTimeout) as caught:
            await transport.send(ask(server, b"x" * 30_000_000), within(5, first_byte=0.1))
        assert caught.value.fate is Fate.PARTLY_SENT


async def test_an_early_answer_to_a_half_written_request_is_heard() -> None:
    async def script(line: Line) -> None:
        await line.reader.read(1000)
        await line.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(0.2)

    async with served(script) as (server, transport):
        response = await transport.send(ask(server, b"x" * 30_000_000), within(5))
        assert (response.status, await whole(response)) == (413, b"big")
        await settled(transport, 0)


async def test_nobody_listens() -> None:
    async with served(echo) as (server, transport):
        origin = Origin("http", "127.0.0.1", 1)
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert (caught.value.reason, caught.value.fate) == ("refused", Fate.NOT_SENT)
        assert transport.counts.open == 0


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


async def test_a_passed_deadline_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        await whole(await transport.send(ask(server), within(5)))
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(ask(server), within(-1))
        assert caught.value.fate is Fate.NOT_SENT


async def hang(line: Line) -> None:
    while True:
        await line.request()
        await line.closed_by_peer()


@pytest.mark.parametrize("limit", ["first_byte", "deadline"])
async def test_a_silent_endpoint_is_left_in_time(limit: str) -> None:
    async with served(hang) as (server, transport):
        began = now()
        times = within(0.2) if limit == "deadline" else within(9, first_byte=0.2)
        with pytest.raises(AnswerTimeout) as caught:
            await transport.send(ask(server), times)
        assert caught.value.fate is Fate.UNKNOWN
        assert 0.15 < now() - began < 1
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
        await settled(transport, 0)


async def test_one_deadline_bounds_all_attempts() -> None:
    """retries-04: each attempt must not get the whole time anew."""
    async with served(hang) as (server, transport):
        times = within(0.3)
        began = now()
        for _ in range(3):
            with pytest.raises((AnswerTimeout, ConnectFailed)):
                await transport.send(ask(server), times)
        assert now() - began < 1
        assert len(server.lines) == 1


async def test_a_stall_within_an_answer_is_found() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await line.part(b"one")
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert await response.chunk(now() + 5) == b"one"
        with pytest.raises(AnswerTimeout):
            await response.chunk(now() + 0.1)
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_an_unread_answer_does_not_outlive_its_deadline() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        await transport.send(ask(server), within(0.2))
        await asyncio.wait_for(server.lines[0].gone.wait(), 2)
        await settled(transport, 0)


async def test_cancelling_a_send_closes_the_connection() -> None:
    async with served(hang) as (server, transport):
        task = asyncio.create_task(transport.send(ask(server), within(60)))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
        await settled(transport, 0)


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


async def test_abort_closes_the_connection_at_once() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.stream_head()
        await line.part(b"one")
        await line.closed_by_peer()

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(60))
        waiting = asyncio.create_task(response.chunk(now() + 60))
        assert await waiting == b"one"
        waiting = asyncio.create_task(response.chunk(now() + 60))
        await asyncio.sleep(0.02)
        response.abort()
        response.abort()
        with pytest.raises(Aborted):
            await waiting
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_a_slow_reader_holds_the_endpoint_back() -> None:
    sent = 0

    async def script(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(400):
            await line.say(b"w" * 100_000)
            sent += 100_000

    async with served(script) as (server, transport):
        response = await transport.send(ask(server), within(30))
        await asyncio.sleep(0.3)
        assert sent < 20_000_000
        assert len(await whole(response, 20)) == 40_000_000


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


async def test_idle_connections_are_closed_in_time() -> None:
    """failover-10: earlier than the peer does it."""
    async with served(echo, keep_alive=0.15) as (server, transport):
        await whole(await transport.send(ask(server), within(5)))
        assert transport.counts.idle == 1
        await settled(transport, 0)
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_the_endpoint_s_own_keep_alive_limit_is_kept() -> None:
    answer = b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=1, max=9\r\ncontent-length: 2\r\n\r\nok"
    async with served(saying(answer)) as (server, transport):
        for _ in range(2):
            await whole(await transport.send(ask(server), within(5)))
        assert len(server.lines) == 2


async def test_draining_ends_idle_connections_and_lets_answers_end() -> None:
    release = asyncio.Event()

    async def script(line: Line) -> None:
        while True:
            request = await line.request()
            if b"slow" in request:
                await release.wait()
            await line.say(OK)

    async with served(script) as (server, transport):
        slow = asyncio.create_task(transport.send(ask(server, b"slow"), within(5)))
        await asyncio.sleep(0.02)
        await whole(await transport.send(ask(server), within(5)))
        assert transport.counts.open == 2
        transport.drain(Origin("http", "127.0.0.1", server.port))
        await settled(transport, 1)
        release.set()
        assert await whole(await slow) == b"ok"
        await settled(transport, 0)
        assert await whole(await transport.send(ask(server), within(5))) == b"ok"


async def test_close_waits_for_answers_but_not_for_ever() -> None:
    async with RawServer(hang) as server:
        transport = HttpTransport()
        task = asyncio.create_task(transport.send(ask(server), within(60)))
        await asyncio.sleep(0.02)
        began = now()
        await transport.close(grace=0.1)
        assert 0.05 < now() - began < 1
        with pytest.raises(Aborted):
            await task
        with pytest.raises(ConnectFailed):
            await transport.send(ask(server), within(5))


async def test_redirects_are_not_followed() -> None:
    answer = (
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\n"
        b"content-length: 0\r\n\r\n"
    )
    async with served(saying(answer)) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert (response.status, await whole(response)) == (307, b"")
        assert len(server.lines) == 1


async def test_environment_variables_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(echo) as (server, transport):
        assert (await transport.send(ask(server), within(5))).status == 200


async def test_a_foreign_host_header_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        request = OutboundRequest(
            Origin("http", "127.0.0.1", server.port), "POST", "/", ((b"Host", b"evil.example"),)
        )
        with pytest.raises(UnsafeRequest):
            await transport.send(request, within(5))
        assert server.lines == []


async def test_errors_name_no_path() -> None:
    """security-09: a key can be part of an URL."""
    async with served(hang) as (server, transport):
        origin = Origin("http", "127.0.0.1", server.port)
        request = OutboundRequest(origin, "POST", "/x?key=SECRET", ((b"a", b"SECRET"),), b"SECRET")
        with pytest.raises(TransportError) as caught:
            await transport.send(request, within(0.1))
        assert "SECRET" not in repr(caught.value)
