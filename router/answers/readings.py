"""What the events of each surface mean to a router: content, end, usage, error.

A reading looks at one parsed event and never changes it. What it doesn't know it takes for
nothing, except inside a delta, where any new kind of text counts as content: holding an answer
back for ever would be worse than passing it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import orjson

from router.answers.calls import StreamedCalls
from router.answers.frames import NO_CALLS, UNUSABLE, Frame, StreamError
from router.answers.mould import Mould
from router.answers.numbers import parsed
from router.answers.words import NAMED, WORDED
from router.sse import EVENT_LIMIT, Event, Scanner

Object = Mapping[str, object]


class Reading(NamedTuple):
    """What one event says; see `Frame`."""

    content: bool = False
    finish: int = 0
    done: bool = False
    usage: Object | None = None
    error: StreamError | None = None


Reader = Callable[[Object], Reading]
_CONTENT = Reading(content=True)
_EMPTY_PROMISE = Reading(error=StreamError(500, NO_CALLS, "a call was promised, and none came"))
_CHOICES = 128
# Reasons to stop of engines, and of the vendors behind them, that mean: not by the model.
_BROKEN = frozenset(
    ("error", "abort", "aborted", "cancelled", "canceled", "failed", "error_finish",
     "network_error", "insufficient_system_resource", *UNUSABLE)
)  # fmt: skip
_CALLS = frozenset(("tool_calls", "function_call"))
_RESPONSE_ENDS = frozenset(("response.completed", "response.incomplete", "response.failed"))


def _usage(document: Object) -> Object | None:
    usage = document.get("usage")
    if usage is None:
        return None  # as in nearly every event
    return usage if type(usage) is dict or isinstance(usage, Mapping) else None


def read_chat(document: Object) -> Reading:
    """Chat completions and completions, chunks and whole answers."""
    if document.get("error"):  # some servers write an empty one beside a good answer
        return Reading(error=StreamError.read(document["error"], document))
    choices = document.get("choices")
    if not choices and (complaint := _complaint(document)) is not None:
        return Reading(error=StreamError.read(complaint, document))
    content, finish, usage = False, 0, _usage(document)
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if choice.get("error"):  # of aggregators, beside any reason to stop
            return Reading(error=StreamError.read(choice["error"]))
        reason = _reason(choice)
        if reason:
            if (broken := _given_up(reason, choice.get("native_finish_reason"))) is not None:
                error = StreamError(500, broken, "the engine gave this answer up")
                return Reading(error=error)
            finish |= _bit(choice)
            usage = usage or _usage(choice)  # as Moonshot tells it
        content = content or _chat_content(choice)
    return Reading(content, finish, usage=usage)


def _promises_calls(document: Object) -> bool:
    """Whether the reason to stop is a call: with none before it, it is an empty promise, after
    which agents ask the same again for ever."""
    choices = document.get("choices")
    return isinstance(choices, list) and any(
        [isinstance(one, dict) and _reason(one) in _CALLS for one in choices]
    )


def _reason(choice: Object) -> str | bool:
    """Why a choice ended; what is no word tells only whether it did."""
    reason = choice.get("finish_reason")
    if isinstance(reason, dict):  # SGLang's native shape
        reason = reason.get("type")
    return reason if isinstance(reason, str) else bool(reason)


def _given_up(*reasons: object) -> str | None:
    """The reason to stop that is none of the model's, of an engine or an aggregator's own."""
    for one in reasons:
        if isinstance(one, str) and one.lower() in _BROKEN:
            return one
    return None


def _complaint(document: Object) -> Object | None:
    """What holds no answer, if it is an error without the name of one."""
    if document.get("object") == "error" or isinstance(document.get("detail"), str):
        return document
    inner = document.get("response")
    if document.get("type") == "response.failed" and isinstance(inner, dict):
        error = inner.get("error")  # of a server that speaks the responses API inside
        return error if isinstance(error, dict) else inner
    outcome = document.get("base_resp")
    if isinstance(outcome, dict) and outcome.get("status_code"):
        return outcome
    listed = document.get("errors")
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        return listed[0]
    if not any([isinstance(document.get(key), str) for key in WORDED]):
        return None
    failed = document.get("success") is False or type(document.get("status")) is int
    named = any([key in document for key in NAMED if key != "status"])  # a job has one as well
    return document if failed or named else None


def _bit(choice: Object) -> int:
    """Of a choice; one without a number of its own is the first."""
    index = choice.get("index", 0)
    return 1 << index if type(index) is int and 0 <= index < _CHOICES else 1


def _chat_content(choice: Object) -> bool:
    delta = choice.get("delta") or choice.get("message")
    if isinstance(delta, dict):
        if delta.get("content"):
            return True
        return any([value for key, value in delta.items() if key != "role"])
    return bool(choice.get("text"))


def read_messages(document: Object) -> Reading:
    """Anthropic's messages: events, and whole answers."""
    kind = document.get("type")
    if kind == "error":
        return Reading(error=StreamError.read(document.get("error")))
    if kind == "content_block_delta":
        return Reading(content=True)
    if kind == "content_block_start":
        block = document.get("content_block")
        plain = ("text", "thinking")
        return Reading(content=isinstance(block, Mapping) and block.get("type") not in plain)
    if kind == "message_start":
        message = document.get("message")
        return Reading(usage=_usage(message) if isinstance(message, Mapping) else None)
    if kind == "message_delta":
        delta = document.get("delta")
        ended = isinstance(delta, Mapping) and bool(delta.get("stop_reason"))
        return Reading(finish=ended, usage=_usage(document))
    if kind == "message_stop":
        return Reading(done=True)
    if kind == "message":
        whole = (bool(document.get("content")), bool(document.get("stop_reason")))
        return Reading(*whole, usage=_usage(document))
    return Reading()


def read_responses(document: Object) -> Reading:
    """OpenAI's responses: events, and whole answers."""
    if document.get("object") == "response":
        return _response(document)
    kind = document.get("type")
    if kind == "error":
        return Reading(error=StreamError.read(document.get("error") or document))
    if not isinstance(kind, str):
        error = document.get("error")
        return Reading(error=StreamError.read(error) if error is not None else None)
    response = document.get("response")
    if isinstance(response, Mapping) and kind in _RESPONSE_ENDS:
        return _response(response)._replace(done=True)
    return Reading(content=kind.endswith((".delta", ".output_item.done")))


def _response(response: Object) -> Reading:
    status = response.get("status")
    if status in ("failed", "cancelled"):
        error = response.get("error") or {"type": str(status)}
        return Reading(error=StreamError.read(error))
    ended = status in ("completed", "incomplete")
    return Reading(bool(response.get("output")), ended, usage=_usage(response))


def read_whole(reader: Reader, document: Object) -> Reading:
    """What an answer says that is all in one piece."""
    reading = reader(document)
    promised = reading.finish and not reading.content and _promises_calls(document)
    return _EMPTY_PROMISE if promised else reading


class ModelName:
    """Makes an answer name the model that was asked for.

    The served name is taken from the parsed event, and its place in the bytes is certain: a quote
    within a JSON string is always escaped, so `"model":"x"` can't be part of one. If it isn't
    there, or anything else is called `model`, the event is written anew.
    """

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._served: object = asked
        self._swaps: tuple[tuple[bytes, bytes], ...] = ()

    def splice(self, raw: bytes, document: Object) -> bytes | None:
        """`raw` with the name asked for; None if it has to be written anew, by `renamed`.

        Both raise ValueError for what is nested too deeply to be written.
        """
        served = _holder(document).get("model")
        if served is None or served == self._asked:
            return raw
        if served != self._served:
            self._learn(served)
        if raw.count(b'"model"') == 1:
            for old, new in self._swaps:
                if old in raw:
                    return raw.replace(old, new)
        return None

    def _learn(self, served: object) -> None:
        self._served = served
        before, after = _anew(served), orjson.dumps(self._asked)
        keys = (b'"model":', b'"model": ')
        self._swaps = tuple((key + before, key + after) for key in keys)

    def renamed(self, document: Object) -> bytes:
        """The document's JSON with the name asked for."""
        holder = _holder(document)
        changed: Object = {**holder, "model": self._asked}
        if holder is document:
            return _anew(changed)
        return _anew(
            {key: changed if value is holder else value for key, value in document.items()}
        )


def _anew(value: object) -> bytes:
    """A parsed value as JSON. Raises ValueError: it is nested deeper than can be written."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ValueError("it is nested too deeply") from error


def _holder(document: Object) -> Object:
    """The object that names the model: the event, or the response or message within it."""
    if "model" in document:
        return document
    for key in ("message", "response"):
        inner = document.get(key)
        if isinstance(inner, Mapping):
            return inner
    return document


class SseDecoder:
    """A surface's own event stream, passed on as it came but for the model's name.

    Events that are not JSON objects are left out and counted. With `drops_usage` (the client
    didn't ask for usage, we did) the chunk that holds nothing else is kept from it.
    """

    media_type = b"text/event-stream"

    def __init__(
        self,
        reader: Reader,
        model: ModelName | None = None,
        limit: int = EVENT_LIMIT,
        *,
        drops_usage: bool = False,
    ) -> None:
        self.malformed = 0
        self._reader = reader
        self._model = model
        # What is made here of another surface's events is right.
        self._calls = None if model is None else StreamedCalls()
        self._drops = drops_usage
        self._said = False
        self._scanner = Scanner(limit)
        self._begun = self._scanner.begun
        self._mould = Mould()
        self._cast = self._mould.cast

    def feed(self, data: bytes) -> list[Frame]:
        """See `Decoder`."""
        cast = self.like(data)
        if cast is not None:
            return [Frame(cast, content=True)]
        return self._frames(self._scanner.feed(data))

    def like(self, data: bytes) -> bytes | None:
        """See `Decoder`."""
        return None if self._begun else self._cast(data)

    def finish(self) -> list[Frame]:
        """See `Decoder`."""
        return self._frames(self._scanner.finish())

    def _frames(self, events: list[Event]) -> list[Frame]:
        frames = []
        for event in events:
            if not event.data:
                frames.append(Frame(event.raw))
            elif event.data.strip() == b"[DONE]":
                frames.append(Frame(event.raw, done=True))
            else:
                frame = self._frame(event)
                if frame is None and event.name == b"error":
                    said = event.data.decode("utf-8", "replace")
                    frame = Frame(event.raw, error=StreamError.read(said))
                if frame is None:
                    self.malformed += 1
                else:
                    frames.append(frame)
        return frames

    def _frame(self, event: Event) -> Frame | None:
        cast = self._cast(event.raw)
        if cast is not None:
            return Frame(cast, content=True)
        try:
            data, document = parsed(event.data)
        except orjson.JSONDecodeError:
            return None
        if isinstance(document, list) and len(document) == 1:
            document = document[0]  # as some write an error
        if not isinstance(document, dict):
            return None
        raw = event.raw if data is event.data else _written(event, data)
        if self._calls is not None and b'"tool_calls"' in data and self._calls.mend(document):
            raw = _written(event, _anew(document))
        if self._model is not None:
            spliced = self._model.splice(raw, document)
            raw = _rewritten(event, self._model, document) if spliced is None else spliced
        reading = self._read(event, document)
        if self._drops and reading.usage and not document.get("choices"):
            return Frame(b"", usage=reading.usage)
        if reading == _CONTENT:
            self._mould.learn(event.raw, raw)
        return Frame(raw, *reading)

    def _read(self, event: Event, document: Object) -> Reading:
        reading = self._reader(document)
        if event.name == b"error" and reading.error is None:
            return Reading(error=StreamError.read(document.get("error") or document))
        if reading.content:
            self._said = True
        elif reading.finish and not self._said and _promises_calls(document):
            return _EMPTY_PROMISE
        return reading


def _rewritten(event: Event, model: ModelName, document: Object) -> bytes:
    return _written(event, model.renamed(document))


def _written(event: Event, data: bytes) -> bytes:
    name = b"event: " + event.name + b"\n" if event.name else b""
    return name + b"".join([b"data: " + line + b"\n" for line in data.split(b"\n")]) + b"\n"


class WholeReading:
    """A surface's own answer that is not a stream: a `WholeDecoder`."""

    def __init__(self, reader: Reader, model: ModelName | None = None) -> None:
        self._reader = reader
        self._model = model

    def __call__(self, body: bytes) -> Frame:
        """The answer as one frame. Raises ValueError if it isn't a JSON object."""
        document = orjson.loads(body)
        if not isinstance(document, dict):
            raise ValueError("the answer is not a json object")
        if self._model is not None:
            spliced = self._model.splice(body, document)
            body = self._model.renamed(document) if spliced is None else spliced
        return self.read(body, document)

    def read(self, body: bytes, document: Object) -> Frame:
        """The same of an answer that is parsed already and named as asked."""
        return Frame(body, *read_whole(self._reader, document))
