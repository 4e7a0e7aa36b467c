"""A head that came before means what the parser makes of it: nothing more, nothing less."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from router.errors import ClientGone
from router.inbound.direct import Direct, direct
from router.inbound.exchange import Exchange, RequestHead, Route
from router.inbound.heads import LONGEST, PATIENCE, Heads

HEAD = (
    b"POST /v1/x?q=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\n"
    b"Content-Length: %b\r\nX-B: 2\r\n\r\n"
)


class Said:
    """A route that answers at once and keeps what came."""

    def __init__(self) -> None:
        self.came: list[tuple[object, ...]] = []

    def route(self, path: bytes) -> Route | None:
        return self.answer if path == b"/v1/x" else None

    async def answer(self, exchange: Exchange, method: str) -> None:
        head = exchange.head
        try:
            body = await exchange.body(1 << 20)
        except ClientGone:
            return
        self.came.append((method, head.path, head.query, tuple(head.headers), head.own, body))
        assert head.get(b"content-length") in (None, dict(head.headers).get(b"content-length"))
        await exchange.start(200, [(b"content-length", b"2")])
        await exchange.end(b"ok")


class Gone:
    """A client's connection: what is written is kept."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> object:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Blind(Heads):
    """Knows nothing again: every request goes to the parser."""

    def again(self, data: bytes) -> tuple[RequestHead, int, int] | None:
        return None


class Line:
    """One connection, and what it came to."""

    def __init__(self, heads: Heads) -> None:
        self.said, self.client = Said(), Gone()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            self.said.came.append(("asgi", tuple(scope["headers"])))
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        config = uvicorn.Config(cast(Any, app), http="httptools", log_config=None)
        config.load()
        self.door: Direct = direct(self.said)(config, server_state=ServerState(), app_state={})
        self.door.connection_made(cast(Any, self.client))
        self.door._heads = heads
        self.fed = 0
        parser, feed = self.door.parser, self.door.parser.feed_data

        class Counting:
            def feed_data(_, data: bytes) -> None:  # noqa: N805
                self.fed += len(data)
                feed(data)

            def __getattr__(_, name: str) -> object:  # noqa: N805
                return getattr(parser, name)

        self.door.parser = cast(Any, Counting())

    async def take(self, pieces: Sequence[bytes], pause: bool) -> None:
        for piece in pieces:
            if not self.client.closed:
                self.door.data_received(piece)
            if pause:
                await _turns()
        await _turns()

    @property
    def told(self) -> tuple[object, ...]:
        return self.said.came, self.client.written, self.client.closed


async def _turns() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


def ask(body: bytes, length: bytes | None = None) -> bytes:
    return HEAD % (b"%d" % len(body) if length is None else length) + body


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    found = Line(Heads())
    yield found
    found.door.connection_lost(None)


async def test_the_same_head_and_one_of_another_length_pass_the_parser(line: Line) -> None:
    first = ask(b"one")
    await line.take([first, ask(b"two"), ask(b"another"), ask(b"")], pause=True)
    assert line.fed == len(first)
    assert [came[-1] for came in line.said.came] == [b"one", b"two", b"another", b""]
    lengths = [dict(cast(Any, came[3]))[b"content-length"] for came in line.said.came]
    assert lengths == [b"3", b"3", b"7", b"0"]
    assert {came[:3] for came in line.said.came} == {("POST", "/v1/x", b"q=1")}


async def test_a_body_that_comes_later_and_a_request_right_behind_it(line: Line) -> None:
    first, second, third = ask(b"one"), ask(b"second"), ask(b"third")
    at = len(second) - 4
    await line.take([first, second[:at], second[at:-1], second[-1:] + third], pause=True)
    assert [came[-1] for came in line.said.came] == [b"one", b"second", b"third"]
    assert line.client.written.count(b"HTTP/1.1 200") == 3


async def test_another_key_is_another_head(line: Line) -> None:
    other = ask(b"two").replace(b"Bearer k", b"Bearer l")
    await line.take([ask(b"one"), other, ask(b"three"), other], pause=True)
    keys = [dict(cast(Any, came[3]))[b"authorization"] for came in line.said.came]
    assert keys == [b"Bearer k", b"Bearer l", b"Bearer k", b"Bearer l"]


NEVER = (
    ask(b"x", b"+1"), ask(b"x", b"1 "), ask(b"x", b"0x1"), ask(b"x", b""), ask(b"x", b"-1"),
    ask(b"x", b"1,1"), ask(b"x", b"99999999999999999999"), ask(b"x", b"1\r\nContent-Length: 1"),
    ask(b"x", b"1\r\nTransfer-Encoding: chunked"), ask(b"x", b"\xb2"), ask(b"x", b"1\n"),
)  # fmt: skip


@pytest.mark.parametrize("odd", NEVER)
async def test_what_only_looks_alike_is_the_parsers(line: Line, odd: bytes) -> None:
    blind = Line(Blind())
    for one in (line, blind):
        await one.take([ask(b"one"), odd, ask(b"three")], pause=True)
    assert line.told == blind.told
    assert line.fed >= len(ask(b"one")) + len(odd)
    blind.door.connection_lost(None)


@pytest.mark.parametrize(
    "first",
    [
        b"GET /v1/x HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /v1/x HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx",
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\nx",
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"POST /other HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx",
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nx-a: "
        + b"y" * LONGEST
        + b"\r\n\r\nx",
    ],
)
async def test_what_is_not_kept(line: Line, first: bytes) -> None:
    await line.take([first, first], pause=True)
    assert line.fed in (2 * len(first), len(first) if line.client.closed else 0)


async def test_nor_is_one_that_asks_for_another_protocol(line: Line) -> None:
    first = (
        b"POST /v1/x HTTP/1.1\r\nhost: a\r\n"
        b"upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n"
    )
    await line.take([first, first], pause=True)
    assert [one[5] for one in line.said.came] == [b"", b""]
    assert line.door._heads.again(first) is None


def test_a_client_whose_heads_all_differ_is_given_up() -> None:
    heads = Heads()

    def learned(number: int) -> bool:
        data = ask(b"x").replace(b"X-B: 2", b"X-B: %d" % number)
        pairs = [(b"content-length", b"1"), (b"x-b", b"%d" % number)]
        heads.learn(data, RequestHead("POST", "/v1/x", b"", pairs))
        return heads.again(data) is not None

    assert learned(1)
    for number in range(PATIENCE):
        data = ask(b"x").replace(b"X-B: 2", b"X-B: 7%d" % number)
        heads.learn(data, RequestHead("POST", "/v1/x", b"", [(b"content-length", b"1")]))
        assert heads.again(ask(b"x")) is None
    assert not learned(2)


def _talk(chance: random.Random) -> Iterator[bytes]:
    """Requests of one client, most of them alike."""
    for _ in range(chance.randrange(2, 9)):
        body = bytes(chance.choices(b"ab\r\n", k=chance.choice((0, 1, 7, 9, 10, 11, 99, 100))))
        kind = chance.random()
        if kind < 0.7:
            yield ask(body)
        elif kind < 0.75:
            yield b"\r\n" + ask(body)
        elif kind < 0.8:
            yield ask(body).replace(b"\r\nX-B: 2", b"\r\nx-b: %d" % chance.randrange(3))
        elif kind < 0.85:
            head = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            yield head + b"1\r\nx\r\n0\r\n\r\n"
        elif kind < 0.9:
            yield b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        elif kind < 0.96:
            yield chance.choice(NEVER)
        else:
            yield ask(body).replace(b"X-B: 2", b"Connection: close")


@pytest.mark.parametrize("seed", range(12))
async def test_equal_to_the_parser_however_the_bytes_come(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        whole = list(_talk(chance))
        if chance.random() < 0.6:  # not as the client wrote them
            data = b"".join(whole)
            cuts = sorted(chance.sample(range(len(data)), min(len(data), chance.randrange(1, 6))))
            whole = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        pause = chance.random() < 0.7
        lines = Line(Heads()), Line(Blind())
        for one in lines:
            await one.take([piece for piece in whole if piece], pause)
        assert lines[0].told == lines[1].told, whole
        for one in lines:
            one.door.connection_lost(None)
