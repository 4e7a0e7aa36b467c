"""CPU time of the transport and of the relay, beside aiohttp's client, against one upstream.

    python bench/transport.py [--requests 20000] [--chunks 20000]

Prints microseconds of this process's CPU time per request and per streamed event: the upstream
is another process. Compare ratios, not absolutes.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import sysconfig
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import cast

import httptools
import uvloop

from router.answers.readings import ModelName, SseDecoder, read_chat
from router.inbound.exchange import Headers, Lines, Prompt, RequestHead
from router.opening import open_stream
from router.relay import Pace, relay
from router.transport.client import HttpTransport
from router.transport.messages import Origin, OutboundRequest, Timeouts, read_body

CHUNK = (
    b'data: {"id":"chatcmpl-9f3d2c1b","object":"chat.completion.chunk","created":1732900000,'
    b'"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":" hello"},'
    b'"logprobs":null,"finish_reason":null}]}\n\n'
)
BODY = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % (b"x" * 900)
ANSWER = b'{"id":"1","choices":[{"message":{"content":"%b"}}]}' % (b"y" * 900)
EVENTS = 100


class Upstream(asyncio.Protocol):
    """Answers at once; `/stream` is EVENTS events, each in a write of its own."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self.parser = httptools.HttpRequestParser(self)
        self.url = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_message_complete(self) -> None:
        if self.url == b"/stream":
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            self.tell(EVENTS)
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(ANSWER), ANSWER)
        )

    def tell(self, left: int) -> None:
        data = CHUNK if left else b"data: [DONE]\n\n"
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        if left:
            asyncio.get_running_loop().call_later(0.002, self.tell, left - 1)
        else:
            self.transport.write(b"0\r\n\r\n")


def upstream(pipe: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


class Sink(Prompt):
    """An exchange that takes everything and keeps nothing."""

    head = RequestHead("POST", "/", b"", ())
    gone = False
    started = False

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        return callback

    def here(self, limit: int) -> bytes | None:
        return None

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        return True

    def answer(self, status: int, head: Lines, body: bytes) -> bool:
        return True

    def put(self, data: bytes) -> bool:
        return True

    async def drained(self) -> None:
        return

    async def start(self, status: int, headers: Headers) -> None:
        return

    async def write(self, data: bytes) -> None:
        return

    async def end(self, data: bytes = b"") -> None:
        return


async def load(one: Callable[[], Awaitable[object]], count: int, width: int) -> float:
    """CPU microseconds per call of `one`, `width` at a time, after a warm-up."""

    async def work(calls: int) -> None:
        for _ in range(calls):
            await one()

    await asyncio.gather(*(work(5) for _ in range(width)))
    began = time.process_time()
    await asyncio.gather(*(work(count // width) for _ in range(width)))
    return (time.process_time() - began) * 1e6 / (count // width * width)


async def ours(port: int, requests: int, chunks: int) -> None:
    transport = HttpTransport()
    now = asyncio.get_running_loop().time
    origin = Origin("http", "127.0.0.1", port)
    headers = ((b"content-type", b"application/json"), (b"authorization", b"Bearer x"))
    plain = OutboundRequest(origin, "POST", "/", headers, BODY)
    stream = OutboundRequest(origin, "POST", "/stream", headers, BODY)

    async def whole() -> None:
        response = await transport.send(plain, Timeouts(now() + 60))
        await read_body(response, 1 << 20, now() + 60)

    async def streamed() -> None:
        response = await transport.send(stream, Timeouts(now() + 60))
        decoder = SseDecoder(read_chat, ModelName("assistant"))
        opened = await open_stream(response, decoder, now() + 60, now)
        done = await relay(Sink(), opened, Lines(), Pace(30, now() + 60), now)  # type: ignore[arg-type]
        assert done.complete, done

    print(f"ours     {await load(whole, requests, 64):6.1f} us a request")
    per = await load(streamed, chunks // EVENTS, 20) / EVENTS
    print(f"ours     {per:6.1f} us an event, read and renamed, {chunks // EVENTS} streams")
    await transport.close()


async def theirs(port: int, requests: int, chunks: int) -> None:
    try:
        import aiohttp
    except ImportError:
        print("aiohttp  is not installed")
        return
    url = f"http://127.0.0.1:{port}/"
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def whole() -> None:
            async with session.post(url, data=BODY, headers=headers) as response:
                await response.read()

        async def streamed() -> None:
            async with session.post(url + "stream", data=BODY, headers=headers) as response:
                async for _ in response.content.iter_any():
                    pass

        print(f"aiohttp  {await load(whole, requests, 64):6.1f} us a request")
        per = await load(streamed, chunks // EVENTS, 20) / EVENTS
        print(f"aiohttp  {per:6.1f} us an event, only received, {chunks // EVENTS} streams")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--chunks", type=int, default=40_000)
    options = parser.parse_args()
    print(f"python {sys.version.split()[0]}, {sysconfig.get_config_var('CONFIG_ARGS')}")
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=upstream, args=(there,))
    process.start()
    try:
        port = here.recv()
        for _ in range(3):
            uvloop.run(ours(port, options.requests, options.chunks))
            uvloop.run(theirs(port, options.requests, options.chunks))
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
