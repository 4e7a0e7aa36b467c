"""A router whose outside is a script: no sockets, every answer and fault chosen by the test."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from router.app import SURFACES, Clocks, Router
from router.audit.settings import LogSettings
from router.ids import Ids
from router.inbound.exchange import Headers, RequestHead
from router.transport.messages import (
    AnswerTimeout,
    ConnectFailed,
    ConnectionLost,
    Fate,
    OutboundRequest,
    OutboundResponse,
    Timeouts,
)
from router.types import Arrival, Purpose
from tests.router.house import KEYS, Plan, signing_key, snapshot

JSON = ((b"content-type", b"application/json"),)
SSE = ((b"content-type", b"text/event-stream"),)


class Reply:
    """A scripted answer: its chunks come one by one; an exception among them is raised."""

    def __init__(
        self,
        status: int,
        headers: tuple[tuple[bytes, bytes], ...] = JSON,
        chunks: Sequence[bytes | Exception] = (),
    ) -> None:
        self.status = status
        self.headers = headers
        self.aborted = False
        self._chunks = list(chunks)

    async def chunk(self, until: float) -> bytes:
        """The next piece."""
        if not self._chunks:
            return b""
        piece = self._chunks.pop(0)
        if isinstance(piece, Exception):
            try:
                raise piece
            finally:
                del piece  # it holds this frame
        return piece

    def abort(self) -> None:
        """Given up."""
        self.aborted = True


def answer(text: str = "hi", model: str = "tiny") -> Reply:
    """A whole chat completion."""
    body = {
        "id": "x", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }  # fmt: skip
    return Reply(200, JSON, [json.dumps(body).encode()])


def event(**delta: object) -> bytes:
    """One chunk event of a stream."""
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny",
             "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}  # fmt: skip
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def stream(*pieces: bytes | Exception) -> Reply:
    """An event stream."""
    return Reply(200, SSE, pieces)


def failure(status: int, **headers: str) -> Reply:
    """An error status with an OpenAI-shaped body."""
    more = tuple((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items())
    return Reply(status, (*JSON, *more), [b'{"error":{"message":"no","type":"server_error"}}'])


def refused() -> ConnectFailed:
    """Nothing listens."""
    return ConnectFailed("refused", "refused")


def lost() -> ConnectionLost:
    """The connection broke after the request was written."""
    return ConnectionLost("lost", Fate.UNKNOWN)


def silent() -> AnswerTimeout:
    """No answer in time."""
    return AnswerTimeout("silent", Fate.UNKNOWN)


Script = Callable[[str, int], Reply | Exception]


class ScriptedTransport:
    """Answers by `script(host, number of the call at that host)`; keeps every request, and in
    `given` the timeouts of each."""

    def __init__(self, script: Script) -> None:
        self.sent: list[OutboundRequest] = []
        self.given: list[Timeouts] = []
        self.replies: list[Reply] = []
        self._script = script

    def at(self, host: str) -> int:
        """Requests sent to a host."""
        return sum(1 for request in self.sent if request.origin.host == host)

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        if request.target in ("/health", "/metrics"):  # probes and scrapes: nobody here knows them
            return Reply(404)
        number = self.at(request.origin.host)
        self.sent.append(request)
        self.given.append(timeouts)
        await asyncio.sleep(0)
        made = self._script(request.origin.host, number)
        if isinstance(made, Exception):
            try:
                raise made
            finally:
                del made  # it holds this frame
        self.replies.append(made)
        return made


class FakeExchange:
    """A request in memory; keeps what was answered."""

    def __init__(self, body: bytes, headers: Headers) -> None:
        self.head = RequestHead("POST", "/v1/chat/completions", b"", headers)
        self.status = 0
        self.sent: dict[str, str] = {}
        self.written = b""
        self.ended = False
        self._body = body
        self._gone = False
        self._on_gone: Callable[[], None] | None = None

    @property
    def gone(self) -> bool:
        """See `Exchange`."""
        return self._gone

    @property
    def started(self) -> bool:
        """See `Exchange`."""
        return self.status != 0

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """See `Exchange`."""
        yield self._body

    async def body(self, limit: int) -> bytes:
        """See `Exchange`."""
        return self._body

    def on_gone(self, callback: Callable[[], None] | None) -> Callable[[], None] | None:
        """See `Exchange`."""
        before, self._on_gone = self._on_gone, callback
        return before

    def leave(self) -> None:
        """The client goes away."""
        self._gone = True
        callback, self._on_gone = self._on_gone, None
        if callback is not None:
            callback()

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        self.status = status
        self.sent = {k.decode(): v.decode() for k, v in headers}

    async def write(self, data: bytes) -> None:
        """See `Exchange`."""
        self.written += data

    async def end(self, data: bytes = b"") -> None:
        """See `Exchange`."""
        self.written += data
        self.ended = True

    @property
    def code(self) -> str:
        """The error code answered, or `ok`."""
        if self.status == 200:
            return "ok"
        code = json.loads(self.written)["error"]["code"]
        return str(code)


class Scripted:
    """The router and its script."""

    def __init__(self, router: Router, transport: ScriptedTransport, clocks: Clocks) -> None:
        self.router = router
        self.transport = transport
        self._clocks = clocks

    def exchange(self, tenant: str = "eu", headers: Headers = (), **body: object) -> FakeExchange:
        """A chat request of a tenant."""
        whole = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}], **body}
        key = (b"authorization", b"Bearer " + KEYS.get(tenant, f"dom-{tenant}").encode())
        return FakeExchange(json.dumps(whole).encode(), [key, *headers])

    async def run(self, exchange: FakeExchange) -> FakeExchange:
        """Walk it through the twelve steps."""
        live, now = self.router.live, self._clocks.loop()
        arrival = Arrival(
            exchange,
            Ids(self._clocks.wall, self._clocks.entropy)(),
            live.stamp(),
            now,
            now + live.snapshot.config.router.limits.deadline,
            SURFACES[0],
            Purpose.INTERACTIVE,
            live.snapshot,
        )
        await self.router.pipeline.run(arrival)
        return exchange

    async def ask(self, tenant: str = "eu", headers: Headers = (), **body: object) -> FakeExchange:
        """Make a request and run it."""
        return await self.run(self.exchange(tenant, headers, **body))


URLS = {"self:fra1": "http://fra1:80", "self:par1": "http://par1:80", "self:iad1": "http://iad1:80"}


@asynccontextmanager
async def scripted(
    folder: Path, script: Script, plan: Plan | None = None
) -> AsyncIterator[Scripted]:
    """A router over a script; `fra1` and `par1` are in the EU, `iad1` is not."""
    clocks = Clocks(time.time, asyncio.get_running_loop().time, os.urandom)
    transport = ScriptedTransport(script)
    settings = LogSettings(folder / "log", "eu-1", signing_key(folder))
    shot = snapshot(plan or Plan(), URLS, folder)
    router = await Router.open(shot, settings, clocks, transport)
    try:
        yield Scripted(router, transport, clocks)
    finally:
        await router.close(0.5)
