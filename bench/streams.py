"""An endpoint that streams, and clients that time every chunk: two programs in one file.

`python -m bench.streams upstream PORT CHUNKS MILLIS` and `… client PORT KEY STREAMS BODY_FILE
[HEADER...]`. Every chunk carries the time at which it was sent, so that a client on the same
machine knows its delay.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import uvloop

HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_START: Final = (
    b'data: {"id":"chatcmpl-bench0001","object":"chat.completion.chunk","created":1700000000,'
    b'"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"t='
)
_END: Final = b'; token"},"logprobs":null,"finish_reason":null}]}\n\n'
_LAST: Final = (
    b'data: {"id":"chatcmpl-bench0001","object":"chat.completion.chunk","created":1700000000,'
    b'"model":"gpt-4o-mini","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
)
WHOLE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_ONE: Final = (
    b'{"id":"chatcmpl-bench0001","object":"chat.completion","created":1700000000,'
    b'"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"a"},'
    b'"finish_reason":"length"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}'
)
_STREAM: Final = re.compile(rb'"stream": *true')
_STAMP: Final = re.compile(rb"t=(\d+);")
_RAMP: Final = 2.0
_PATIENCE: Final = 120.0


class Upstream(asyncio.Protocol):
    """Answers every request with `count` chunks, `every` seconds apart, on a kept connection."""

    def __init__(self, count: int, every: float) -> None:
        self._count = count
        self._every = every
        self._got = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, separator, rest = self._got.partition(b"\r\n\r\n")
        if not separator:
            return
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        chunked = b"transfer-encoding: chunked" in head.lower()
        if (chunked and not rest.endswith(b"0\r\n\r\n")) or len(rest) < int(
            found[1] if found else 0
        ):
            return
        self._got = b""
        if not head.startswith(b"POST"):  # health and metrics, as gateways ask for them
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            return
        if _STREAM.search(rest) is None:  # a gateway's own question, as an engine answers it
            self._transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (WHOLE, len(_ONE), _ONE))
            return
        self._transport.write(HEAD)
        self._tell(0, asyncio.get_running_loop().time())

    def _tell(self, number: int, began: float) -> None:
        if number == self._count:
            end = _chunk(_LAST) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
            self._transport.write(end)
            return
        self._transport.write(_chunk(b"%b%d%b" % (_START, time.monotonic_ns(), _END)))
        at = began + (number + 1) * self._every
        self._timer = asyncio.get_running_loop().call_at(at, self._tell, number + 1, began)


class Client(asyncio.Protocol):
    """One stream, read to its end."""

    def __init__(self, request: bytes, delays: list[int]) -> None:
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._request = request
        self._delays = delays
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._tail + data
        end = 0
        for found in _STAMP.finditer(data):
            end = found.end()
            self._delays.append(now - int(found[1]))
        self._tail = data[max(end, len(data) - 64) :]
        if b"[DONE]" in self._tail and not self.ended.done():
            self.ended.set_result(True)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(False)


async def upstream(port: int, count: int, every: float) -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Upstream(count, every), "127.0.0.1", port, backlog=1024
    )
    await server.serve_forever()


async def clients(port: int, request: bytes, count: int) -> dict[str, float]:
    """Open `count` streams, evenly over two seconds; delays in microseconds."""
    delays: list[int] = []

    async def one(number: int) -> bool:
        await asyncio.sleep(_RAMP * number / count)
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: Client(request, delays), "127.0.0.1", port)
        try:
            return await asyncio.wait_for(client.ended, _PATIENCE)
        except TimeoutError:
            return False

    done = sum(await asyncio.gather(*(one(number) for number in range(count))))
    delays.sort()
    p50, p99 = (_at(delays, share) for share in (0.5, 0.99))
    return {"done": done, "chunks": len(delays), "p50": p50, "p99": p99}


def _at(values: list[int], share: float) -> float:
    return round(values[min(len(values) - 1, int(len(values) * share))] / 1e3, 1) if values else 0.0


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def asked(port: int, key: str, body: bytes, headers: Sequence[str]) -> bytes:
    """The bytes of one request."""
    lines = [
        "POST /v1/chat/completions HTTP/1.1", f"host: 127.0.0.1:{port}",
        "content-type: application/json", f"authorization: Bearer {key}",
        f"content-length: {len(body)}", *headers,
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def main(arguments: Sequence[str]) -> None:
    """See the top of the file."""
    if arguments[0] == "upstream":
        port, count, millis = arguments[1:4]
        uvloop.run(upstream(int(port), int(count), float(millis) / 1000))
        return
    port, key, count, path, *headers = arguments[1:]
    request = asked(int(port), key, Path(path).read_bytes(), headers)
    print(json.dumps(uvloop.run(clients(int(port), request, int(count)))))


if __name__ == "__main__":
    main(sys.argv[1:])
