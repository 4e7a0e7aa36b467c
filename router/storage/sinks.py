"""Collectors of other systems: events by HTTP, or as syslog over TCP or TLS.

A collector gets one batch at a time, and the cursor moves when it has taken it: one that is away
stops its own sink and nothing else, and gets everything later, some of it twice. Only the events of
`FEW` lines are ever in memory. What a collector refuses is offered again, in smaller pieces if it
says that it was too large: nothing is dropped to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import orjson

from router.audit.batches import http_body, syslog_frames
from router.audit.errors import AuditError
from router.audit.exporting import Event
from router.audit.following import Follower, Progress
from router.providers.waits import retry_after
from router.transport.messages import (
    Headers,
    Origin,
    OutboundRequest,
    Timeouts,
    Transport,
    TransportError,
    read_body,
)
from router.transport.oneway import OneWay

FEW: Final = 500
TURNS: Final = 20
"""Batches of one look: a sink that is far behind catches up 10,000 lines at a time."""
SECONDS: Final = 15.0
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 60.0
_MAX_ANSWER: Final = 64 << 10


class TooLarge(AuditError):
    """A collector takes no batch as large as this."""


class SinkFailed(AuditError):
    """A collector did not take a batch. `after` are the seconds it asked to be left alone."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


Deliver = Callable[[Sequence[Event]], Awaitable[None]]


class RemoteSink:
    """One collector: batches in order, each until it is taken. `clock` gives loop seconds."""

    def __init__(self, follower: Follower, deliver: Deliver, clock: Callable[[], float]) -> None:
        self._follower = follower
        self._deliver = deliver
        self._clock = clock
        self._most = FEW
        self._failed = 0
        self._not_before = 0.0
        self._said: SinkFailed | None = None

    async def turn(self, size: int) -> Progress:
        """Follow by a few batches; `size` is the number of durable lines.

        Raises:
            SinkFailed: it didn't take one; it is left alone for a while, then gets the same again.
            SinkRefused, LineInvalid, OSError: the log or the cursor can't be read or moved.
        """
        if self._said is not None and self._clock() < self._not_before:
            raise self._said
        written = withheld = 0
        for _ in range(TURNS):
            batch = await asyncio.to_thread(self._follower.batch, size, self._most)
            if batch.last == await asyncio.to_thread(self._follower.at):
                break
            if batch.events and not await self._offer(batch.events):
                continue
            await asyncio.to_thread(self._follower.moved, batch.last)
            written, withheld = written + len(batch.events), withheld + batch.withheld
        cursor = await asyncio.to_thread(self._follower.at)
        return Progress(cursor, written, max(0, size - 1 - cursor), withheld)

    async def _offer(self, found: Sequence[Event]) -> bool:
        """Whether it took them; if not, half as many lines are to be offered at once."""
        try:
            try:
                await self._deliver(found)
            except TooLarge as large:
                if self._most == 1:
                    raise SinkFailed(f"{large} with a line of the log; raise its limit") from None
                self._most = max(1, self._most // 2)
                return False
        except SinkFailed as failed:
            self._failed += 1
            pause = min(FIRST_RETRY * 2 ** min(self._failed - 1, 9), LAST_RETRY)
            self._not_before = self._clock() + max(pause, failed.after or 0.0)
            self._said = failed
            raise
        self._failed, self._said = 0, None
        self._most = min(FEW, self._most + 1)  # the next ones may be smaller
        return True


def http_sink(
    url: str, origin: Origin, format_: str, more: Headers, transport: Transport,
    clock: Callable[[], float],
) -> Deliver:  # fmt: skip
    """POSTs batches to a URL. Taken is a 2xx; OTLP's `partialSuccess` with rejections is not."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    async def deliver(found: Sequence[Event]) -> None:
        kind, body = http_body(format_, found)
        until = clock() + SECONDS
        headers = ((b"content-type", kind.encode()), (b"accept", b"application/json"), *more)
        request = OutboundRequest(origin, "POST", target, headers, body, replay_safe=True)
        try:
            response = await transport.send(request, Timeouts(until))
            answer = await read_body(response, _MAX_ANSWER, until)
        except TransportError as error:
            raise SinkFailed(f"`{origin}`: {error}") from None
        # OpenTelemetry's own collector says it under 400.
        if response.status == 413 or (response.status == 400 and b"too large" in answer):
            raise TooLarge(f"`{origin}` answered {response.status}, too large")
        if not 200 <= response.status < 300:
            after = retry_after(response.headers, 0.0, LAST_RETRY)
            raise SinkFailed(f"`{origin}` answered {response.status}", after)
        if format_ == "otel" and (rejected := _rejected(answer)):
            raise SinkFailed(f"`{origin}` rejected {rejected} of {len(found)} records")

    return deliver


def _rejected(answer: bytes) -> int:
    """How many records an OTLP collector says it dropped."""
    try:
        told = orjson.loads(answer or b"{}")
    except orjson.JSONDecodeError:
        return 0
    partial = told.get("partialSuccess") if isinstance(told, dict) else None
    count = partial.get("rejectedLogRecords", 0) if isinstance(partial, dict) else 0
    return int(count) if isinstance(count, int) or str(count).isdigit() else 0


def syslog_sink(
    name: str, origin: Origin, format_: str, line: OneWay, clock: Callable[[], float]
) -> Deliver:
    """Sends batches as framed messages, one connection each."""

    async def deliver(found: Sequence[Event]) -> None:
        try:
            await line.deliver(origin, syslog_frames(format_, found), clock() + SECONDS)
        except TransportError as error:
            raise SinkFailed(f"`{name}`: {error}") from None

    return deliver
