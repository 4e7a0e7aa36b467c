"""The bytes of an opened answer go to the client, and its end is always said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import openai
import pytest

from router.answers.frames import Frame
from router.answers.readings import ModelName, SseDecoder, read_chat
from router.errors import ClientGone
from router.inbound.exchange import AsgiExchange, Exchange, lines, while_connected
from router.opening import OpenedWhole, open_stream
from router.relay import (
    Pace,
    Relayed,
    chat_error,
    deliver,
    messages_error,
    relay,
    responses_error,
)
from router.transport.client import HttpTransport
from tests.exchanges import FakeExchange, PromptExchange, hang_up, on_uvicorn, post
from tests.rawserver import Line, RawServer, ask, now, within

HEADERS = lines([(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")])
STOP = b'data: {"model":"asked","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"model":"asked","choices":[],"usage":{"prompt_tokens":3,"total_tokens":9}}\n\n'
DONE = b"data: [DONE]\n\n"

Say = Callable[[Line], Awaitable[None]]


@pytest.fixture(params=[FakeExchange, PromptExchange], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds for both ways: chunk by chunk, and in the turn in which they come."""
    monkeypatch.setattr(f"{__name__}.FakeExchange", request.param)


def token(text: str = "x") -> bytes:
    chunk = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "asked",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


@asynccontextmanager
async def upstream(say: Say) -> AsyncIterator[tuple[RawServer, HttpTransport]]:
    async def script(line: Line) -> None:
        while True:
            await line.request()
            await line.stream_head()
            await say(line)

    async with RawServer(script) as server:
        transport = HttpTransport()
        try:
            yield server, transport
        finally:
            await transport.close()


def telling(*parts: bytes, then: str = "end") -> Say:
    async def say(line: Line) -> None:
        for part in parts:
            await line.part(part)
            await asyncio.sleep(0)
        if then == "end":
            await line.part(b"")
            return
        await asyncio.sleep(0.02)
        if then == "stall":
            await line.closed_by_peer()
        elif then == "reset":
            line.reset()
        elif then == "garbage":
            await line.say(b"zz\r\n")
            await line.closed_by_peer()
        raise ConnectionError(then)

    return say


async def pass_on(
    exchange: Exchange, server: RawServer, transport: HttpTransport, idle: float = 5.0
) -> Relayed:
    """What the pipeline does: send, open, relay."""
    response = await transport.send(ask(server), within(30))
    decoder = SseDecoder(read_chat, ModelName("asked"))
    opened = await open_stream(response, decoder, now() + 30, now)
    return await relay(exchange, opened, HEADERS, Pace(idle, now() + 30), now)


async def run(say: Say, idle: float = 5.0) -> tuple[FakeExchange, Relayed]:
    exchange = FakeExchange()
    async with upstream(say) as (server, transport):
        done = await pass_on(exchange, server, transport, idle)
        return exchange, done


async def test_a_whole_stream() -> None:
    parts = [token("a"), token("b"), STOP, USAGE, DONE]
    exchange, done = await run(telling(*parts))
    assert (exchange.status, exchange.headers, exchange.ended) == (200, HEADERS.pairs(), True)
    assert exchange.sent == b"".join(parts)
    usage = {"prompt_tokens": 3, "total_tokens": 9}
    assert done == Relayed(True, False, None, None, len(exchange.sent), 5, 0, True, usage)


async def test_the_connection_lives_on_after_a_whole_stream() -> None:
    async with upstream(telling(token(), STOP, DONE)) as (server, transport):
        for _ in range(3):
            assert (await pass_on(FakeExchange(), server, transport)).complete
        assert len(server.lines) == 1


async def test_a_slow_end_of_the_body_does_not_hold_the_client() -> None:
    exchange = FakeExchange()
    async with upstream(telling(token(), DONE, then="stall")) as (server, transport):
        task = asyncio.create_task(pass_on(exchange, server, transport))
        await asyncio.sleep(0.2)
        assert exchange.ended
        assert (await task).complete
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)


async def test_a_stream_without_a_mark_of_its_end_but_with_a_reason_is_whole() -> None:
    exchange, done = await run(telling(token(), STOP))
    assert done.complete
    assert exchange.sent == token() + STOP


BROKEN = {
    "closed": (telling(token(), token(), then="close"), "connection_lost"),
    "reset": (telling(token(), token(), then="reset"), "connection_lost"),
    "stalled": (telling(token(), token(), then="stall"), "timeout"),
    "garbled": (telling(token(), token(), then="garbage"), "garbled"),
    "ended without a reason": (telling(token(), token()), "connection_lost"),
    "its own error": (telling(token(), token(), b'data: {"error":{"code":500}}\n\n'), None),
    "cut event": (telling(token(), token(), b'data: {"choices":[{"del', then="close"), None),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
async def test_a_stream_that_breaks_off_ends_with_a_typed_error(name: str) -> None:
    """streaming-06: one behaviour for every way to break off; nothing is spliced in."""
    say, failure = BROKEN[name]
    exchange, done = await run(say, idle=0.2)
    assert (done.complete, done.gone) == (False, False)
    assert done.failure == failure or failure is None
    assert exchange.ended
    start = token() + token()
    assert exchange.sent.startswith(start)
    event = exchange.sent[len(start) :]
    assert event == chat_error(str(done.failure))
    error = json.loads(event[6:])["error"]
    assert (error["type"], error["code"]) == ("upstream_incomplete", "incomplete")
    assert DONE not in exchange.sent


async def test_an_endpoint_s_own_error_is_recorded_and_not_repeated() -> None:
    """errors-06: after content an explicit error event, with the kind in the record."""
    event = b'data: {"error":{"message":"CANARY","type":"modelStreamErrorException"}}\n\n'
    exchange, done = await run(telling(token(), event, token("never")))
    assert done.failure == "upstream_error"
    assert done.error is not None
    assert done.error.kind == "modelStreamErrorException"
    assert b"CANARY" not in exchange.sent
    assert b"never" not in exchange.sent


async def test_a_broken_line_is_left_out_and_the_rest_passes() -> None:
    exchange, done = await run(telling(token("a"), b'data: {"br\n\n', token("b"), STOP, DONE))
    assert (done.complete, done.malformed) == (True, 1)
    assert exchange.sent == token("a") + token("b") + STOP + DONE


async def test_a_client_that_leaves_cuts_the_endpoint_off() -> None:
    """disconnect: after the first token, with nothing more coming."""
    exchange = FakeExchange()
    async with upstream(telling(token(), then="stall")) as (server, transport):
        task = asyncio.create_task(pass_on(exchange, server, transport, idle=60))
        await asyncio.sleep(0.1)
        began = now()
        exchange.leave()
        done = await task
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
        assert now() - began < 0.5
    assert (done.gone, done.complete, done.failure) == (True, False, None)
    assert not exchange.ended


async def test_a_slow_client_holds_the_endpoint_back_and_loses_nothing() -> None:
    sent = 0

    async def say(line: Line) -> None:
        nonlocal sent
        for _ in range(600):
            await line.part(token("y" * 20_000))
            sent += 1
        await line.part(DONE)
        await line.part(b"")

    exchange = FakeExchange()
    exchange.gate.clear()
    async with upstream(say) as (server, transport):
        task = asyncio.create_task(pass_on(exchange, server, transport))
        await asyncio.sleep(0.3)
        assert sent < 500
        exchange.gate.set()
        done = await task
    assert done.complete
    assert exchange.sent == token("y" * 20_000) * 600 + DONE


@pytest.mark.parametrize("then", ["whole", "cut"])
async def test_events_that_come_together_are_each_told(then: str) -> None:
    """Three chunks and the start of a fourth event in one read; its rest comes, or doesn't."""
    parts = [token("a"), token("b"), token("c"), STOP[:20]]

    async def say(line: Line) -> None:
        await line.part(token())
        await asyncio.sleep(0.02)
        await line.say(b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts))
        await asyncio.sleep(0.02)
        if then == "cut":
            raise ConnectionError(then)
        await line.say(b"%x\r\n%b\r\n0\r\n\r\n" % (len(STOP[20:] + DONE), STOP[20:] + DONE))

    exchange, done = await run(say)
    tokens = token() + b"".join(parts[:3])
    if then == "whole":
        assert (done.complete, done.events, exchange.sent) == (True, 6, tokens + STOP + DONE)
    else:
        assert (done.failure, done.events) == ("connection_lost", 4)
        assert exchange.sent == tokens + chat_error("connection_lost")


async def test_a_client_that_takes_nothing_does_not_outlive_the_deadline() -> None:
    exchange = FakeExchange()
    exchange.gate.clear()
    async with upstream(telling(token(), then="stall")) as (server, transport):
        response = await transport.send(ask(server), within(30))
        opened = await open_stream(response, SseDecoder(read_chat), now() + 30, now)
        done = await relay(exchange, opened, HEADERS, Pace(60, now() - 0.8), now)
        await asyncio.wait_for(server.lines[0].gone.wait(), 1)
    assert done.failure == "client_stalled"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_characters_cut_anywhere_arrive_whole(size: int) -> None:
    """streaming-15 through the whole path."""
    stream = token("你好 👩‍👩‍👧 é\u0301") + STOP + DONE
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    exchange, done = await run(telling(*parts))
    assert done.complete
    assert exchange.sent == stream


async def test_a_whole_answer_is_delivered_with_its_length() -> None:
    exchange = FakeExchange()
    frame = Frame(b'{"a":1}', content=True, finish=True, usage={"total_tokens": 1})
    done = await deliver(exchange, OpenedWhole(200, (), frame), lines([(b"x", b"y")]), now() + 5)
    assert exchange.headers == [(b"x", b"y"), (b"content-length", b"7")]
    assert (exchange.sent, exchange.ended) == (b'{"a":1}', True)
    assert (done.complete, done.usage, done.sent) == (True, {"total_tokens": 1}, 7)


def test_error_events_of_each_surface() -> None:
    for event in (messages_error("timeout"), responses_error("timeout")):
        name, data = event.split(b"\n", 1)
        assert name == b"event: error"
        told = json.loads(data[6:])
        assert told["type"] == "error"
        assert told.get("error", told)["code"] == "incomplete"
        assert told.get("error", told)["reason"] == "timeout"


# With a real server and a real client in front.


def routed(server: RawServer, transport: HttpTransport, records: list[Relayed]) -> Route:
    async def route(exchange: AsgiExchange) -> None:
        await exchange.body(1 << 20)
        records.append(await pass_on(exchange, server, transport))

    return route


Route = Callable[[AsgiExchange], Awaitable[None]]


async def ask_openai(port: int) -> list[str | None]:
    async with openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="x", max_retries=0
    ) as client:
        stream = await client.chat.completions.create(
            model="asked", messages=[{"role": "user", "content": "x"}], stream=True
        )
        return [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]


async def test_the_openai_client_survives_keepalives_after_ids() -> None:
    """streaming-12: comments, ids, retries, pings without data, a mark, blank lines."""
    odd = (
        b"\xef\xbb\xbfid: 1\n" + token("a"),
        b": keep alive\n\n",
        b"id: 2\n\n",
        b": keep alive\n\n\n\n: again\r\n\r\n",
        b"event: ping\n\nretry: 100\n\ndata:\n\n",
        b"id: 3\nretry: 5\n" + token("b"),
        b": x\n\n" + STOP + b": y\n\n" + DONE + b": z\n\n",
    )
    records: list[Relayed] = []
    async with (
        upstream(telling(*odd)) as (server, transport),
        on_uvicorn(routed(server, transport, records)) as port,
    ):
        assert await ask_openai(port) == ["a", "b", None]
    assert records[0].complete


async def test_the_same_keepalives_break_the_openai_client_without_the_scanner() -> None:
    """What the test above would be worth nothing without."""

    async def route(exchange: AsgiExchange) -> None:
        await exchange.body(1 << 20)
        await exchange.start(200, HEADERS.pairs())
        await exchange.write(b"id: 1\n" + token("a") + b": keep alive\n\n")
        await exchange.end(token("b") + DONE)

    async with on_uvicorn(route) as port:
        with pytest.raises(json.JSONDecodeError):
            await ask_openai(port)


async def test_the_openai_client_sees_a_stream_that_breaks_off_as_an_error() -> None:
    records: list[Relayed] = []
    async with (
        upstream(telling(token("a"), then="reset")) as (server, transport),
        on_uvicorn(routed(server, transport, records)) as port,
    ):
        with pytest.raises(openai.APIError) as caught:
            await ask_openai(port)
    body = caught.value.body
    assert isinstance(body, dict)
    assert (body["type"], body["code"]) == ("upstream_incomplete", "incomplete")
    assert records[0].failure == "connection_lost"


@pytest.mark.parametrize("stage", ["waiting", "streaming"])
async def test_a_real_client_that_leaves_cuts_the_endpoint_off(stage: str) -> None:
    """disconnect-02: before and after the first token."""
    parts = [token()] if stage == "streaming" else []
    left = asyncio.Event()

    async with upstream(telling(*parts, then="stall")) as (server, transport):

        async def route(exchange: AsgiExchange) -> None:
            await exchange.body(1 << 20)
            try:
                await guarded(exchange, server, transport)
            finally:
                left.set()

        async with on_uvicorn(route) as port:
            reader = await post(port)
            if stage == "streaming":
                await reader.readuntil(b"data: ")
            await asyncio.sleep(0.05)
            hang_up(reader)
            await asyncio.wait_for(left.wait(), 1)
            await asyncio.wait_for(server.lines[0].gone.wait(), 1)
            assert len(server.lines) == 1


async def guarded(exchange: AsgiExchange, server: RawServer, transport: HttpTransport) -> None:
    """Steps up to the opening are left by `while_connected`, the relay watches by itself."""
    decoder = SseDecoder(read_chat)
    try:
        async with while_connected(exchange):
            response = await transport.send(ask(server), within(60))
            opened = await open_stream(response, decoder, now() + 60, now)
    except ClientGone:
        return
    done = await relay(exchange, opened, HEADERS, Pace(60, now() + 60), now)
    assert done.gone
