"""The exchange over a real ASGI server: bodies, headers, and a client that leaves at any time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import ClientGone, RequestError
from router.inbound.exchange import (
    AsgiExchange,
    Message,
    RequestHead,
    check_headers,
    lines,
    while_connected,
)  # fmt: skip
from tests.exchanges import FakeExchange, hang_up, on_uvicorn, post

PLAIN = [(b"content-type", b"text/plain")]


async def test_a_request_and_its_answer() -> None:
    seen: list[object] = []

    async def route(exchange: AsgiExchange) -> None:
        head = exchange.head
        seen.extend((head.method, head.path, head.query, head.get(b"x-a"), head.all(b"x-a")))
        seen.append(await exchange.body(100))
        await exchange.start(201, PLAIN)
        await exchange.write(b"one ")
        await exchange.write(b"")
        await exchange.end(b"two")

    async with on_uvicorn(route) as port:
        reader = await post(port, b"hello", b"X-A: 1\r\nx-a: 2\r\n")
        answer = await reader.readuntil(b"0\r\n\r\n")
        hang_up(reader)
    assert seen == ["POST", "/v1/chat/completions", b"a=b", b"1", [b"1", b"2"], b"hello"]
    assert answer.startswith(b"HTTP/1.1 201")
    assert b"4\r\none \r\n3\r\ntwo\r\n" in answer


async def test_a_body_above_its_limit_is_refused() -> None:
    caught: list[RequestError] = []

    async def route(exchange: AsgiExchange) -> None:
        with pytest.raises(RequestError) as error:
            await exchange.body(10)
        caught.append(error.value)
        await exchange.start(error.value.status, PLAIN)
        await exchange.end()

    async with on_uvicorn(route) as port:
        reader = await post(port, b"x" * 11)
        assert b" 413 " in await reader.readline()
        hang_up(reader)
    assert caught[0].code == "body_too_large"


def scripted(*messages: Message, sent: list[Message] | None = None) -> AsgiExchange:
    """An exchange whose server says these messages."""
    waiting = list(messages)

    async def receive() -> Message:
        if not waiting:
            await asyncio.sleep(3600)
        return waiting.pop(0)

    async def send(message: Message) -> None:
        if sent is None:
            raise OSError("gone")
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    return AsgiExchange(scope, receive, send)


def part(data: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


async def test_a_body_without_a_length_is_counted() -> None:
    parts = [part(b"123456", more=True), part(b"789012", more=False)]
    assert await scripted(*parts).body(12) == b"123456789012"
    with pytest.raises(RequestError):
        await scripted(*parts).body(11)


async def test_a_client_that_leaves_within_its_body() -> None:
    exchange = scripted(part(b"123", more=True), {"type": "http.disconnect"})
    with pytest.raises(ClientGone):
        await exchange.body(100)
    assert exchange.gone
    called: list[int] = []
    exchange.on_gone(lambda: called.append(1))
    assert called == [1]


async def test_a_server_that_refuses_bytes_means_the_client_left() -> None:
    exchange = scripted(part(b"", more=False))
    await exchange.body(100)
    called: list[int] = []
    exchange.on_gone(lambda: called.append(1))
    await exchange.start(200, PLAIN)
    assert exchange.gone
    assert called == [1]
    await exchange.write(b"x")
    await exchange.end()


async def test_a_client_that_leaves_before_an_answer_is_noticed() -> None:
    """disconnect-02: nothing has been written and nothing is read."""
    left = asyncio.Event()
    late: list[BaseException] = []

    async def route(exchange: AsgiExchange) -> None:
        await exchange.body(100)
        try:
            async with while_connected(exchange):
                await asyncio.sleep(60)
        except ClientGone as gone:
            late.append(gone)
        left.set()

    async with on_uvicorn(route) as port:
        reader = await post(port)
        await asyncio.sleep(0.05)
        hang_up(reader)
        await asyncio.wait_for(left.wait(), 1)
    assert len(late) == 1


async def test_an_answer_s_end_is_not_a_leaving() -> None:
    exchanges: list[AsgiExchange] = []

    async def route(exchange: AsgiExchange) -> None:
        exchanges.append(exchange)
        await exchange.body(100)
        exchange.on_gone(lambda: None)
        await exchange.start(200, PLAIN)
        await exchange.end(b"x")
        await asyncio.sleep(0.05)

    async with on_uvicorn(route) as port:
        reader = await post(port)
        await reader.readuntil(b"0\r\n\r\n")
        await asyncio.sleep(0.1)
        hang_up(reader)
    assert [exchange.gone for exchange in exchanges] == [False]


async def test_an_answer_s_end_that_waits_is_not_a_leaving() -> None:
    """Some servers say `disconnect` as soon as the last bytes were handed over."""
    ended = asyncio.Event()

    async def receive() -> Message:
        if not body:
            await ended.wait()
            return {"type": "http.disconnect"}
        return body.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            ended.set()
            await asyncio.sleep(0.01)

    body = [part(b"", more=False)]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    exchange = AsgiExchange(scope, receive, send)
    await exchange.body(100)
    called: list[int] = []
    exchange.on_gone(lambda: called.append(1))
    await exchange.start(200, PLAIN)
    await asyncio.sleep(0.001)
    await exchange.end(b"x")
    assert (exchange.gone, called) == (False, [])


async def test_while_connected_lets_results_and_errors_through() -> None:
    exchange = FakeExchange()
    async with while_connected(exchange):
        await asyncio.sleep(0)
    with pytest.raises(KeyError):
        async with while_connected(exchange):
            raise KeyError
    exchange.leave()
    with pytest.raises(ClientGone):
        async with while_connected(exchange):
            pytest.fail("a client that has left waits for nothing")


async def test_while_connected_cancels_only_its_own_block() -> None:
    exchange = FakeExchange()
    asyncio.get_running_loop().call_soon(exchange.leave)
    with pytest.raises(ClientGone):
        async with while_connected(exchange):
            await asyncio.sleep(60)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_while_connected_leaves_others_cancellations_alone() -> None:
    exchange = FakeExchange()

    async def work() -> None:
        async with while_connected(exchange):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    both = asyncio.create_task(work())
    await asyncio.sleep(0)
    both.cancel()
    exchange.leave()
    await asyncio.wait([both])
    assert both.cancelled()


async def test_a_leaving_in_the_last_turn_hits_nothing_later() -> None:
    exchange = FakeExchange()
    made = None
    async with while_connected(exchange):
        await asyncio.sleep(0)
        exchange.leave()
        made = "an answer to be given up by its owner"
    await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert made
    assert exchange.gone


NAMES = [b"", b"A", b"a b", b"a:", b"a\r\nb", b"\xff"]
VALUES = [b"a\r\nset-cookie: x", b"a\nb", b"a\rb", b"\0", b"\r\n\r\n<script>"]


@pytest.mark.parametrize("pair", [(n, b"x") for n in NAMES] + [(b"a", v) for v in VALUES])
async def test_no_header_can_break_out(pair: tuple[bytes, bytes]) -> None:
    sent: list[Message] = []
    exchange = scripted(part(b"", more=False), sent=sent)
    with pytest.raises(ValueError):
        await exchange.start(200, [(b"ok", b"fine"), pair])
    assert sent == []
    assert not exchange.started


@given(st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=4))
def test_headers_that_pass_are_one_line_each(headers: list[tuple[bytes, bytes]]) -> None:
    try:
        check_headers(headers)
    except ValueError:
        return
    text = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    assert text.count(b"\n") == text.count(b"\r") == len(headers)
    assert lines(headers) == text
    assert lines(headers).pairs() == headers


def test_lines_are_checked() -> None:
    with pytest.raises(ValueError):
        lines([(b"a", b"x\r\nset-cookie: y")])


def test_a_head_without_a_header() -> None:
    assert RequestHead("GET", "/", b"", ()).get(b"x") is None


def test_a_head_gives_the_first_of_several_and_knows_what_is_ours() -> None:
    ours = (b"x-domicile-tier", b"large")
    head = RequestHead("GET", "/", b"", [(b"a", b"1"), ours, (b"a", b"2")])
    assert head.get(b"a") == b"1"
    assert head.all(b"a") == [b"1", b"2"]
    assert head.own == (ours,)
