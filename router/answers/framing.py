"""A provider's decoder of bytes as the relay needs it: frames that say what they hold."""

from __future__ import annotations

from router.answers.frames import Frame, StreamError
from router.answers.readings import (
    ModelName,
    Reader,
    SseDecoder,
    WholeReading,
    read_chat,
    read_messages,
    read_responses,
    read_whole,
)
from router.providers.base import Decoder, EqualEvents, Failure, Kind
from router.providers.streams import JsonDecoder
from router.transport.messages import Headers, header, media_type_of

_STATUS = {
    Kind.LOAD: 429,
    Kind.ILL: 500,
    Kind.AUTH: 401,
    Kind.MISSING: 404,
    Kind.BAD_ANSWER: 502,
    Kind.UNUSABLE: 500,
    Kind.CLIENT: 400,
    Kind.REFUSED: 400,
    Kind.CONTEXT_LENGTH: 400,
}
_READERS = {"messages": read_messages, "responses": read_responses}


def reader_of(surface: str) -> Reader:
    """What a surface's events mean."""
    return _READERS.get(surface, read_chat)


class Framed:
    """Upstream bytes → the provider's client bytes → frames.

    `failure` keeps what the provider made of an error inside the stream.
    """

    __slots__ = ("_decoder", "_media", "_sse", "failure")

    def __init__(self, decoder: Decoder, surface: str, headers: Headers) -> None:
        self._decoder = decoder
        self._sse = SseDecoder(reader_of(surface))
        # The provider has judged the media type already; the opening compares with its own.
        self._media = media_type_of(header(headers, b"content-type"))
        self.failure: Failure | None = None

    @property
    def media_type(self) -> bytes:
        """See `frames.Decoder`."""
        return self._media

    @property
    def malformed(self) -> int:
        """See `frames.Decoder`."""
        return self._sse.malformed

    def feed(self, data: bytes) -> list[Frame]:
        """See `frames.Decoder`."""
        out = self._decoder.feed(data)
        return self._and_failure(self._sse.feed(out) if out else [])

    def like(self, data: bytes) -> bytes | None:
        """See `frames.Decoder`: what a provider makes of bytes is never known before."""
        return None

    def finish(self) -> list[Frame]:
        """See `frames.Decoder`."""
        out = self._decoder.finish()
        frames = self._sse.feed(out) if out else []
        return self._and_failure([*frames, *self._sse.finish()])

    def _and_failure(self, frames: list[Frame]) -> list[Frame]:
        failure, told = self._decoder.failure, self._decoder.usage
        if failure is not None and self.failure is None:
            self.failure = failure
            frames = [*frames, Frame(b"", error=stream_error(failure))]
        if told is not None and frames:
            usage = {"prompt_tokens": told.input, "completion_tokens": told.output}
            frames[-1] = frames[-1]._replace(usage=usage)
        return frames


class Passed:
    """The events of an equal surface: read once, while the model's name is put in."""

    __slots__ = ("_sse", "failure", "feed", "finish", "like")

    def __init__(self, events: EqualEvents, surface: str) -> None:
        model = ModelName(events.model)
        self._sse = SseDecoder(reader_of(surface), model, drops_usage=events.drops_usage)
        self.feed = self._sse.feed
        self.finish = self._sse.finish
        self.like = self._sse.like
        self.failure: Failure | None = None

    @property
    def media_type(self) -> bytes:
        """See `frames.Decoder`."""
        return self._sse.media_type

    @property
    def malformed(self) -> int:
        """See `frames.Decoder`."""
        return self._sse.malformed


def framed(decoder: Decoder | EqualEvents, surface: str, headers: Headers) -> Framed | Passed:
    """What reads a stream: in one go where bytes pass, else what the provider makes of them."""
    if isinstance(decoder, EqualEvents):
        return Passed(decoder, surface)
    return Framed(decoder, surface, headers)


class FramedWhole:
    """A whole answer through the provider's decoder, as one frame."""

    __slots__ = ("_decoder", "_reader", "failure")

    def __init__(self, decoder: Decoder, surface: str) -> None:
        self._decoder = decoder
        self._reader = reader_of(surface)
        self.failure: Failure | None = None

    def __call__(self, body: bytes) -> Frame:
        """See `frames.WholeDecoder`."""
        decoder = self._decoder
        if isinstance(decoder, JsonDecoder):
            out = decoder.whole(body)
        else:
            out = decoder.feed(body) + decoder.finish()
        self.failure = decoder.failure
        if self.failure is not None:
            return Frame(b"", error=stream_error(self.failure))
        # Parsed already, and the model's name is all that differs.
        answer = decoder.answer if isinstance(decoder, JsonDecoder) else None
        if answer is None:
            return WholeReading(self._reader)(out)
        return Frame(out, *read_whole(self._reader, answer))


def stream_error(failure: Failure) -> StreamError:
    """A provider's failure as an error in a stream; the words are ours.

    503 and 529 keep their number, which says that no work was done; any other says it by kind.
    """
    told = failure.status
    status = told if told in (503, 529) else _STATUS[failure.kind]
    return StreamError(status, failure.provider_code or failure.kind, failure.message)
