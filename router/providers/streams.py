"""Answers of an equal surface: the upstream's bytes, with the model's public name in them.

A whole answer is decoded here; `router.answers.framing` reads events, as `EqualEvents` says.
"""

from __future__ import annotations

import re

import orjson

from router.answers.calls import mend_whole
from router.answers.numbers import parsed
from router.providers.base import Failure
from router.providers.failures import bad_answer
from router.usage import Usage, in_answer

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_SCALARS = (
    rb"\{\s*+(?:(?!\"model\")" + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb'|[^\s\[\]{}",:]++)'
    rb"\s*+,\s*+)*+"
)
_JSON_HEAD = re.compile(rb"\s*+" + _SCALARS + rb'"model"\s*+:\s*+(' + _STRING + rb")", re.DOTALL)


def renamed(answer: object, model: str) -> bool:
    """Put `model` where this answer names its model; whether there was such a place."""
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
        orjson.JSONEncodeError: it is nested deeper than can be written.
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
        try:
            if b'"tool_calls"' in body and mend_whole(answer):
                body = orjson.dumps(answer)
            written = renamed_json(body, self._model)
        except (orjson.JSONEncodeError, ValueError):
            self.failure = bad_answer(200, "it is nested too deeply")
            return b""
        self.answer = answer
        return written
