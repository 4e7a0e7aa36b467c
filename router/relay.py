"""Step 11, relay: the bytes of an opened answer go to the client, and nothing else ever does.

No other endpoint's words are spliced in. A stream that breaks off ends with an error event that
a machine can read, and without the mark of a good end. One that ends well is given that mark where
its endpoint wrote none: clients wait for it, or take what has none for cut off. The endpoint is
cut off as soon as the client leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import orjson

from router.answers.frames import Frame, StreamError
from router.frozen import frozen, maker
from router.inbound.exchange import Exchange, Lines, Prompt
from router.opening import OpenedStream, OpenedWhole
from router.sse import only_alive
from router.transport.messages import AnswerTimeout, AttemptFailed, Pushing

# After the last event the endpoint has this long to end its body, so that the connection lives.
_LINGER = 1.0
# What may follow the last reason to stop, usage and the mark of the end, comes within this.
_TAIL = 5.0
# Added to the deadline for a client that takes nothing any more.
_GRACE = 1.0

ErrorEvent = Callable[[str], bytes]


@frozen
class Pace:
    """How long a stream may take: `idle` seconds between two pieces of its answer (a comment or a
    ping is none), `deadline` in loop time."""

    idle: float
    deadline: float


@frozen
class Relayed:
    """How an answer went to the client.

    Attributes:
        complete: the endpoint's good end was passed on.
        gone: the client left first.
        failure: why it is incomplete, a stable code; None if complete or the client left.
        error: the error that the endpoint wrote after content, if that was why.
        sent: bytes of the body given to the server.
        events: frames passed on.
        malformed: events left out because they can't be read.
        finish: a reason to stop was seen.
        usage: the token counts as the endpoint wrote them; later ones laid over earlier ones.
        answer: the SHA-256 of the body that the client was given; empty where it isn't bound.
    """

    complete: bool
    gone: bool
    failure: str | None
    error: StreamError | None
    sent: int
    events: int
    malformed: int
    finish: bool
    usage: Mapping[str, object] | None
    answer: bytes = b""


_relayed = maker(Relayed)


def chat_error(reason: str) -> bytes:
    """The error event of OpenAI's chat and completions streams; `reason` is a stable code."""
    return b"data: " + orjson.dumps({"error": _error(reason)}) + b"\n\n"


def messages_error(reason: str) -> bytes:
    """The error event of Anthropic's messages streams."""
    error = {"type": "api_error", "message": _MESSAGE, "code": "incomplete", "reason": reason}
    return b"event: error\ndata: " + orjson.dumps({"type": "error", "error": error}) + b"\n\n"


def responses_error(reason: str) -> bytes:
    """The error event of OpenAI's responses streams."""
    return b"event: error\ndata: " + orjson.dumps({**_error(reason), "type": "error"}) + b"\n\n"


_MESSAGE = "the answer broke off: what came before is incomplete, ask again for a whole one"


def _error(reason: str) -> dict[str, object]:
    kind = {"type": "upstream_incomplete", "code": "incomplete", "reason": reason}
    return {"message": _MESSAGE, "param": None, **kind}


class _Tally:
    """What the frames said so far. Ends at the first error or the last frame.

    `last` are the last bytes of a good end, where they are kept to go out with the answer's own;
    so many `answers` were asked for. `belied`: more content came after the reasons to stop. `bare`:
    the last of these came without any.
    """

    __slots__ = (
        "answers",
        "bare",
        "belied",
        "done",
        "error",
        "events",
        "finish",
        "last",
        "sent",
        "usage",
    )

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.bare = False
        self.belied = False
        self.done = False
        self.error: StreamError | None = None
        self.events = 0
        self.finish = 0
        self.sent = 0
        self.last = b""
        self.usage: Mapping[str, object] | None = None

    @property
    def ended(self) -> bool:
        """Whether each answer has its reason to stop."""
        return self.finish.bit_count() >= self.answers

    @property
    def stopped(self) -> bool:
        """Whether nothing but the end can come: who writes a reason to stop beside each piece of
        the answer has not said so."""
        return self.ended and not self.belied

    def take(self, frames: list[Frame] | tuple[Frame, ...]) -> bytes:
        """The bytes to pass on."""
        out = []
        for frame in frames:
            if frame.error is not None:
                self.error = frame.error
                break
            out.append(frame.data)
            if frame.content and self.ended:
                self.belied = True
            if frame.finish:
                self.finish |= frame.finish
                self.bare = not frame.content
            if frame.usage is not None:
                self.usage = {**(self.usage or {}), **frame.usage}
            if frame.done:
                self.done = True
                break
        self.events += len(out)
        joined = out[0] if len(out) == 1 else b"".join(out)
        self.sent += len(joined)
        return joined


async def relay(
    exchange: Exchange,
    opened: OpenedStream,
    headers: Lines,
    pace: Pace,
    clock: Callable[[], float],
    error_event: ErrorEvent = chat_error,
    answers: int = 1,
    mark: bytes = b"",
) -> Relayed:
    """Pass an opened stream on, to its end or to the client's; so many `answers` were asked for.

    `mark` is what tells the client of a good end, for an endpoint that doesn't.

    The record is whole in every case but cancellation. Never call it inside `while_connected`: it
    watches the client itself.
    """
    tally = _Tally(answers)
    before = exchange.on_gone(opened.response.abort)
    failure: str | None = None
    try:
        async with asyncio.timeout_at(pace.deadline + _GRACE):
            failure = await _run(exchange, opened, headers, pace, clock, tally)
            if failure is None and not tally.done:
                tally.take([Frame(mark)])
                tally.last = mark
            if not exchange.gone:
                await exchange.end(error_event(failure) if failure is not None else tally.last)
            await _linger(opened, clock, failure)
    except TimeoutError:
        failure = "client_stalled"
    finally:
        exchange.on_gone(before)
        opened.response.abort()
    return _record(opened, tally, failure, exchange.gone)


async def _run(
    exchange: Exchange,
    opened: OpenedStream,
    headers: Lines,
    pace: Pace,
    clock: Callable[[], float],
    tally: _Tally,
) -> str | None:
    """The stream itself; why it is incomplete, or None."""
    first = tally.take(opened.held)
    if isinstance(exchange, Prompt):
        if not exchange.begin(opened.status, headers, first):
            await exchange.drained()
    else:
        await exchange.start(opened.status, headers.pairs())
        await exchange.write(first)
    try:
        if isinstance(exchange, Prompt) and isinstance(opened.response, Pushing):
            await _pushed(exchange, exchange, opened, opened.response, pace, clock, tally)
        else:
            await _pulled(exchange, opened, pace, clock, tally)
    except AttemptFailed as error:
        if not (isinstance(error, AnswerTimeout) and tally.stopped):
            return "deadline" if error.hurried else error.code
    except ValueError:
        return "garbled"
    if tally.error is not None:
        return "upstream_error"
    # Some servers end without a last event: a reason to stop of each answer is then a good end.
    return None if tally.done or tally.ended else "connection_lost"


async def _pulled(
    exchange: Exchange, opened: OpenedStream, pace: Pace, clock: Callable[[], float], tally: _Tally
) -> None:
    """Chunk by chunk: read, then written, before the next is read."""
    chunk, decoder = opened.response.chunk, opened.decoder
    until = clock() + _patience(pace, tally)
    while not (tally.done or tally.error or exchange.gone):
        data = await chunk(until)
        out = tally.take(decoder.feed(data) if data else decoder.finish())
        if out:
            await exchange.write(out)
        if not data:
            break
        anew = clock() + _patience(pace, tally)
        until = min(until, anew) if only_alive(data) else anew


def _patience(pace: Pace, tally: _Tally) -> float:
    """Seconds of silence that are waited through: few once nothing but the end is to come. Beside a
    piece of the answer a reason to stop may be one of many: whether more comes is not known."""
    return min(pace.idle, _TAIL) if tally.stopped and tally.bare else pace.idle


async def _pushed(
    exchange: Exchange,
    prompt: Prompt,
    opened: OpenedStream,
    response: Pushing,
    pace: Pace,
    clock: Callable[[], float],
    tally: _Tally,
) -> None:
    """Each chunk passes in the turn in which it comes, while the client keeps up: nobody is
    woken for it."""
    put, feed, like = prompt.put, opened.decoder.feed, opened.decoder.like

    def take(data: bytes) -> bool:
        same = like(data)
        if same is not None and not tally.finish:  # most of a stream: content, by its shape
            tally.events += 1
            tally.sent += len(same)
            return put(same)
        if only_alive(data):
            response.unheard()
        stopped, out = tally.stopped, tally.take(feed(data))
        if tally.done:
            tally.last = out
            return False
        more = put(out) if out else True
        return more and tally.stopped is stopped and not (tally.error or exchange.gone)

    while not (tally.done or tally.error or exchange.gone):
        if await response.push(take, _patience(pace, tally), clock):
            await exchange.write(tally.take(opened.decoder.finish()))
            return
        await prompt.drained()


async def _linger(opened: OpenedStream, clock: Callable[[], float], failure: str | None) -> None:
    """Let the endpoint end its body: a connection with an unread end can't be used again."""
    if failure is not None:
        return
    try:
        while await opened.response.chunk(clock() + _LINGER):
            pass
    except AttemptFailed:
        return


def _record(opened: OpenedStream, tally: _Tally, failure: str | None, gone: bool) -> Relayed:
    return Relayed(
        complete=failure is None and not gone,
        gone=gone,
        failure=None if gone else failure,
        error=tally.error,
        sent=tally.sent,
        events=tally.events,
        malformed=opened.decoder.malformed,
        finish=tally.finish > 0,
        usage=tally.usage,
    )


async def deliver(
    exchange: Exchange, opened: OpenedWhole, headers: Lines, deadline: float
) -> Relayed:
    """Pass a whole answer on, by `deadline` (loop time); content-length is added to `headers`."""
    frame = opened.frame
    body = frame.data
    failure = None
    try:
        if isinstance(exchange, Prompt):
            if not exchange.answer(opened.status, headers, body):
                async with asyncio.timeout_at(deadline + _GRACE):
                    await exchange.drained()
        else:
            sized = [*headers.pairs(), (b"content-length", b"%d" % len(body))]
            async with asyncio.timeout_at(deadline + _GRACE):
                await exchange.start(opened.status, sized)
                await exchange.end(body)
    except TimeoutError:
        failure = "client_stalled"
    gone = exchange.gone
    whole, ended = failure is None and not gone, frame.finish > 0
    return _relayed(
        whole, gone, None if gone else failure, None, len(body), 1, 0, ended, frame.usage
    )
