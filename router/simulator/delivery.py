"""Carries one answer to the client, through whatever faults were drawn for it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from router.simulator.faults import (
    Cut,
    Drawn,
    ErrorFrame,
    Fault,
    Frame,
    Frames,
    Kind,
    Part,
    Sleep,
    distort,
)
from router.simulator.wire import Headers, Reply, head

# Long enough for bytes already written to be read by the client before the reset overtakes them.
_SETTLE = 0.01


@dataclass(frozen=True, slots=True)
class Response:
    """An answer on its way: head, frames, and the body's length if it is known (else chunked)."""

    status: int
    headers: Headers
    frames: Frames
    length: int | None = None


async def whole(body: bytes) -> Frames:
    """A plain body as two frames, so that stream faults can hit its middle."""
    middle = len(body) // 2
    yield Frame(body[:middle], Part.CONTENT)
    yield Frame(body[middle:], Part.END)


def plain(
    status: int, body: bytes, *headers: tuple[str, str], kind: str = "application/json"
) -> Response:
    """A response with a whole body."""
    return Response(status, (("content-type", kind), *headers), whole(body), len(body))


async def misanswer(reply: Reply, fault: Fault, sleep: Sleep) -> None:
    """Carry out an *instead* fault, except STATUS, whose body is the dialect's business."""
    match fault.kind:
        case Kind.HANG:
            await reply.gone.wait()
        case Kind.RESET_HEAD:
            reply.raw(head(200, (("content-type", "text/event-stream"),))[: fault.after])
            await sleep(_SETTLE if fault.after else 0.0)
            reply.reset()
        case Kind.HTML:
            page = b"<html><head><title>error</title></head><body><h1>upstream</h1></body></html>"
            await reply.answer(fault.status, page, "text/html")
        case Kind.REDIRECT:
            status = fault.status if 300 <= fault.status < 400 else 307
            await reply.answer(status, b"", "text/plain", ("location", fault.location))
        case _:
            garbage = fault.body.encode() or b'\xff\xfe{"choices": [}\x00'
            await reply.answer(200, garbage, "application/json")


async def deliver(
    reply: Reply,
    response: Response,
    drawn: Drawn,
    error_frame: ErrorFrame,
    sleep: Sleep = asyncio.sleep,
) -> str:
    """Write the response; how it ended: `answered`, or the cut that stopped it."""
    if (slow := drawn.find(Kind.SLOW_HEAD)) is not None:
        await sleep(slow.seconds)
    length = response.length
    if length is not None and (wrong := drawn.find(Kind.WRONG_LENGTH)) is not None:
        length = max(0, length + wrong.size)
    reply.start(response.status, (*response.headers, *_extra(drawn)), length)
    ended = await _write(reply, distort(response.frames, drawn, sleep, error_frame), sleep)
    short = length is not None and length != response.length
    if short or drawn.find(Kind.DROP_IDLE) is not None:
        reply.close()  # a client that waits for missing bytes must see the end of them
    return ended


def _extra(drawn: Drawn) -> Headers:
    huge = drawn.find(Kind.HUGE_HEADERS)
    return () if huge is None else (("x-padding", "x" * huge.size),)


async def _write(reply: Reply, frames: Frames, sleep: Sleep) -> str:
    async with aclosing(frames):
        async for frame in frames:
            if isinstance(frame, Cut):
                await _stop(reply, frame, sleep)
                return frame.value
            await reply.send(frame.data)
            await sleep(0)
    reply.end()
    return "answered"


async def _stop(reply: Reply, cut: Cut, sleep: Sleep) -> None:
    match cut:
        case Cut.RESET:
            await sleep(_SETTLE)
            reply.reset()
        case Cut.CLOSE:
            reply.close()
        case Cut.HANG:
            await reply.gone.wait()
