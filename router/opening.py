"""Step 10, second half: hold an answer back until it is one.

Until first content (text, reasoning, tool call, refusal, finish) nothing was shown to the client,
so everything that goes wrong is a failure that another endpoint can still make good. After it,
the answer is this endpoint's, to the end.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from router.answers.frames import Decoder, Frame, StreamError, WholeDecoder
from router.answers.readings import read_chat
from router.frozen import frozen, maker
from router.providers.failures import ILL
from router.sse import EVENT_LIMIT
from router.transport.messages import (
    AttemptFailed,
    Fate,
    Headers,
    OutboundResponse,
    TransportError,
    header,
    media_type_of,
    read_body,
)

ERROR_LIMIT = 64 * 1024
_EXCERPT_TIME = 5.0
HELD_LIMIT = EVENT_LIMIT
"""Bytes held back at most: the first content may be a picture, in one event."""
_NOT_DONE = frozenset((503, 529))
_JSON = b"application/json"


class StatusRefused(AttemptFailed):
    """The endpoint answered with a status outside 200 to 299. `body` is at most `ERROR_LIMIT`."""

    code = "status"

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        super().__init__(f"the endpoint answered {status}", fate_of(status))
        self.status = status
        self.headers = headers
        self.body = body


class StreamFailed(AttemptFailed):
    """An answer with a status of success that holds an error and no content."""

    code = "stream_error"

    def __init__(self, error: StreamError) -> None:
        super().__init__(
            f"the endpoint's answer holds an error: {error.kind}", fate_of(error.status)
        )
        self.error = error
        self.status = error.status


class EmptyAnswer(AttemptFailed):
    """An answer that ended cleanly without content or a reason to stop."""

    code = "empty"


class BadAnswer(AttemptFailed):
    """Bytes that are not an answer: broken JSON, an endless preamble, a coding."""

    code = "bad_answer"

    def __init__(self, message: str) -> None:
        super().__init__(message, Fate.UNKNOWN)


def fate_of(status: int) -> Fate:
    """What an error status says of the work: a 4xx, 503 or 529 did none. But a model that took
    too long or broke at it, or a proxy that lost it, may be told by a 4xx, too."""
    refused = 400 <= status < 500 and status not in ILL
    return Fate.REFUSED if refused or status in _NOT_DONE else Fate.UNKNOWN


@frozen
class OpenedStream:
    """A stream whose first content has come: it may now be relayed.

    `held` are the frames so far, the first content among the last of them.
    """

    status: int
    headers: Headers
    held: tuple[Frame, ...]
    response: OutboundResponse
    decoder: Decoder


@frozen
class OpenedWhole:
    """A whole answer that is one; `frame.data` is for the client."""

    status: int
    headers: Headers
    frame: Frame


_whole = maker(OpenedWhole)


async def open_stream(
    response: OutboundResponse,
    decoder: Decoder,
    until: float,
    clock: Callable[[], float],
    limit: int = HELD_LIMIT,
) -> OpenedStream:
    """Read a stream up to its first content, by `until` (loop time), at most `limit` bytes of it.

    Raises AttemptFailed; the response is then given up.
    """
    try:
        if not _fits(response, decoder.media_type):
            raise await _unfit(response, decoder.media_type, until, clock)
        held = await _hold(response, decoder, until, limit)
    except BaseException:
        response.abort()
        raise
    return OpenedStream(response.status, response.headers, held, response, decoder)


async def open_whole(
    response: OutboundResponse,
    decode: WholeDecoder,
    until: float,
    clock: Callable[[], float],
    limit: int,
) -> OpenedWhole:
    """Read a whole JSON answer, by `until` (loop time), at most `limit` bytes.

    Raises AttemptFailed; the response is then given up.
    """
    try:
        if not _fits(response, _JSON):
            raise await _unfit(response, _JSON, until, clock)
        body = await read_body(response, limit, until)
        try:
            frame = decode(body)
        except ValueError as error:
            raise BadAnswer("the endpoint's answer is not valid json") from error
        if frame.error is not None:
            raise StreamFailed(frame.error)
        if not (frame.content or frame.finish):
            raise EmptyAnswer("the endpoint's answer holds no content", Fate.UNKNOWN)
    except BaseException:
        response.abort()
        raise
    return _whole(response.status, response.headers, frame)


def _fits(response: OutboundResponse, media_type: bytes) -> bool:
    """Status, content type and coding, before a byte of the body is believed."""
    coding = kind = None
    for name, value in response.headers:
        if kind is None and name == b"content-type":
            kind = value
        elif coding is None and name == b"content-encoding":
            coding = value
    plain = coding is None or coding.lower() == b"identity"
    return plain and 200 <= response.status < 300 and media_type_of(kind) == media_type


async def _unfit(
    response: OutboundResponse, media_type: bytes, until: float, clock: Callable[[], float]
) -> AttemptFailed:
    """Why an answer is not believed."""
    soon = min(until, clock() + _EXCERPT_TIME)
    if not 200 <= response.status < 300:
        return await status_refused(response, soon)
    coding = header(response.headers, b"content-encoding")
    if coding is not None and coding.lower() != b"identity":
        return BadAnswer("the endpoint's answer is compressed, which was not asked for")
    await look_into(response, soon)
    return BadAnswer(f"the endpoint's answer is not {media_type.decode()}")


async def look_into(response: OutboundResponse, until: float) -> None:
    """Look for an error in an answer of another kind than was asked for: some servers write that
    of a stream as JSON, with status 200.

    Raises StreamFailed if there is one.
    """
    if media_type_of(header(response.headers, b"content-type")) == _JSON:
        _look_for_error(await _excerpt(response, until))


async def status_refused(response: OutboundResponse, until: float) -> StatusRefused:
    """The failure of an answer whose status is no success, with what its body says.

    Give it seconds, not the attempt's whole time: the next endpoint waits for it.
    """
    return StatusRefused(response.status, response.headers, await _excerpt(response, until))


async def _excerpt(response: OutboundResponse, until: float) -> bytes:
    """The start of an error's body; no failure to read it hides the error."""
    parts, size = [], 0
    try:
        while size < ERROR_LIMIT and (part := await response.chunk(until)):
            parts.append(part)
            size += len(part)
    except TransportError:
        pass
    return b"".join(parts)[:ERROR_LIMIT]


def _look_for_error(body: bytes) -> None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    error = read_chat(document).error if isinstance(document, dict) else None
    if error is not None:
        raise StreamFailed(error)


async def _hold(
    response: OutboundResponse, decoder: Decoder, until: float, limit: int
) -> tuple[Frame, ...]:
    held: list[Frame] = []
    size = 0
    while True:
        data = await response.chunk(until)
        size += len(data)
        frames = _decode(decoder, data)
        held += frames
        if _opens(frames):
            return tuple(held)
        if not data:
            raise EmptyAnswer("the endpoint's stream ended without content", Fate.UNKNOWN)
        if size > limit:
            raise BadAnswer(f"the endpoint sent {limit} bytes without content")


def _decode(decoder: Decoder, data: bytes) -> list[Frame]:
    try:
        return decoder.feed(data) if data else decoder.finish()
    except ValueError as error:
        raise BadAnswer(f"the endpoint's stream is not {decoder.media_type.decode()}") from error


def _opens(frames: list[Frame]) -> bool:
    """Whether content comes before an error or the end."""
    for frame in frames:
        if frame.error is not None:
            raise StreamFailed(frame.error)
        if frame.content or frame.finish:
            return True
        if frame.done:
            raise EmptyAnswer("the endpoint's stream ended without content", Fate.UNKNOWN)
    return False
