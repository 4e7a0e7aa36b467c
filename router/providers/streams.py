"""Decoders of an equal surface: the upstream's bytes, with the model's public name in them.

Events pass as they came. Each carries the upstream's model name at the same place, so the
bytes up to it are found once and then compared; an event of another shape is parsed.
"""

from __future__ import annotations

import re

import orjson

from router.numbers import parsed
from router.providers.base import Failure
from router.providers.failures import bad_answer
from router.usage import Usage, in_answer, merged

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_SCALARS = (
    rb"\{\s*+(?:(?!\"model\")" + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb'|[^\s\[\]{}",:]++)'
    rb"\s*+,\s*+)*+"
)
_JSON_HEAD = re.compile(rb"\s*+" + _SCALARS + rb'"model"\s*+:\s*+(' + _STRING + rb")", re.DOTALL)
_EVENT_HEAD = re.compile(
    rb"(data: ?+" + _SCALARS + rb'"model"\s*+:\s*+)(' + _STRING + rb")", re.DOTALL
)
_EVENT_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r(?!\Z))")  # a last CR may be half a CRLF
_BOM = b"\xef\xbb\xbf"
_DATA = re.compile(rb"^data(?:: ?|$)", re.MULTILINE)
_LINES = re.compile(rb"\r\n|\n|\r")
MAX_EVENT = 8 << 20
"""Bytes of one event; more is no answer of ours."""


def renamed(answer: object, model: str) -> bool:
    """Put `model` where this answer or event names its model; whether there was such a place."""
    if not isinstance(answer, dict):
        return False
    found = False
    for holder in (answer, answer.get("response"), answer.get("message")):
        if isinstance(holder, dict) and isinstance(holder.get("model"), str):
            holder["model"] = model
            found = True
    return found


def renamed_json(body: bytes, model: str) -> bytes:
    """A JSON answer with `model` as its model; unchanged when it names none.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
    """
    head = _JSON_HEAD.match(body)
    if head is not None:
        return body[: head.start(1)] + orjson.dumps(model) + body[head.end(1) :]
    answer: object = orjson.loads(body)
    return orjson.dumps(answer) if renamed(answer, model) else body


class JsonDecoder:
    """A whole JSON answer: nothing comes out before its end. `answer` is it, parsed."""

    content_type = "application/json"

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: list[bytes] = []
        self.answer: dict[str, object] | None = None
        self.failure: Failure | None = None

    @property
    def usage(self) -> Usage | None:
        """See `Decoder`."""
        return in_answer(self.answer)

    def feed(self, data: bytes) -> bytes:
        """See `Decoder`."""
        self._parts.append(data)
        return b""

    def finish(self) -> bytes:
        """The answer, under its public model name."""
        return self.whole(b"".join(self._parts))

    def whole(self, body: bytes) -> bytes:
        """The same of a body that is here in one piece."""
        try:
            body, answer = parsed(body)
        except orjson.JSONDecodeError:
            self.failure = bad_answer(200, "it is not JSON")
            return b""
        if not isinstance(answer, dict):
            self.failure = bad_answer(200, "it is not a JSON object")
            return b""
        self.answer = answer
        return renamed_json(body, self._model)


class EventDecoder:
    """Events of an equal surface.

    Args:
        model: the public name to put in.
        drops_usage: the client did not ask for usage, we did: the chunk that holds nothing
            else is kept from it.
    """

    content_type = "text/event-stream"

    def __init__(self, model: str, *, drops_usage: bool) -> None:
        # A copy: what orjson gives keeps the room it was written in, 4 KB, for each open stream.
        self._model = memoryview(orjson.dumps(model)).tobytes()
        self.model = model
        self.drops_usage = drops_usage
        self._rest = b""
        self._seen: bytes | None = None
        self._said = b""
        self.usage: Usage | None = None
        self.failure: Failure | None = None

    def feed(self, data: bytes) -> bytes:
        """Whole events out of what has come; the start of the next one waits."""
        if self.failure is not None:
            return b""
        known = max(0, len(self._rest) - 3)
        data = self._rest + data
        cut = 0
        out: list[bytes] = []
        for end in _EVENT_END.finditer(data, known):
            out.append(self._event(data[cut : end.end()]))
            cut = end.end()
        self._rest = data[cut:]
        if len(self._rest) > MAX_EVENT:
            self.failure = bad_answer(200, "one event is too long")
            self._rest = b""
        return b"".join(out)

    def finish(self) -> bytes:
        """An unfinished event; a reader of events ignores it, and so can we not judge it."""
        rest, self._rest = self._rest, b""
        return self._event(rest) if rest else b""

    def _event(self, event: bytes) -> bytes:
        if b'"usage"' in event and self._takes_usage(event):
            return b""
        if self._seen is not None and event.startswith(self._seen):
            return self._said + event[len(self._seen) :]
        if b'"model"' not in event:
            return event
        if (head := _EVENT_HEAD.match(event)) is not None:
            self._seen, self._said = head[0], head[1] + self._model
            return self._said + event[head.end() :]
        return self._rewritten(event)

    def _takes_usage(self, event: bytes) -> bool:
        """Note an event's usage; whether the event is ours alone and to be dropped."""
        try:
            chunk: object = orjson.loads(data_of(event))
        except orjson.JSONDecodeError:
            return False
        self.usage = merged(self.usage, in_answer(chunk))
        if not self.drops_usage or not isinstance(chunk, dict):
            return False
        return chunk.get("choices") == [] and bool(chunk.get("usage"))

    def _rewritten(self, event: bytes) -> bytes:
        try:
            chunk: object = orjson.loads(data_of(event))
        except orjson.JSONDecodeError:
            return event  # not ours to mend; the scanner counts it
        if not renamed(chunk, self.model):
            return event
        lines = _LINES.split(event.removeprefix(_BOM))
        others = [line for line in lines if line and not _DATA.match(line)]
        return b"".join(line + b"\n" for line in others) + b"data: " + orjson.dumps(chunk) + b"\n\n"


def data_of(event: bytes) -> bytes:
    """The data of one event, its lines joined, by the rules of HTML's event streams."""
    if event.startswith(b"data: ") and event.count(b"\ndata") == 0:
        return event[6:].rstrip(b"\r\n")
    lines = _LINES.split(event.removeprefix(_BOM))
    return b"\n".join(line[found.end() :] for line in lines if (found := _DATA.match(line)))
