"""Converse's answers as OpenAI's: a whole one, and an event stream as chunks.

Text, by far the most events, is written straight into a chunk; all else goes through the
translation library. Only known members come out: never a guardrail's trace, which may hold text
that it took out, and never padding.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from router.answers.eventstream import EventStreamError, Message, MessageScanner
from router.answers.frames import UNUSABLE
from router.providers.base import Ask, Failure, Kind
from router.providers.bedrock_failures import bedrock_error
from router.providers.converse import Converse, Untranslatable
from router.providers.converse_schemas import inside
from router.providers.failures import bad_answer
from router.usage import Usage, read_bedrock

Object = Mapping[str, object]
_UNTOLD: Object = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def openai_usage(usage: Usage, end: Object) -> dict[str, object]:
    """The `usage` object of an OpenAI answer; `end` is what may tell how much of it was reasoning,
    an answer or the event that stops one."""
    made: dict[str, object] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
    }
    details = inside(end, "additionalModelResponseFields", "usage", "output_tokens_details")
    if type(thought := details.get("thinking_tokens")) is int:
        made["completion_tokens_details"] = {"reasoning_tokens": thought}
    return made


def _parsed(data: bytes) -> Object | None:
    try:
        found: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, Mapping) else None


class WholeAnswer:
    """A whole Converse answer; nothing comes out before its end."""

    content_type = "application/json"

    def __init__(self, ask: Ask, converse: Converse, json_tool: bool) -> None:
        self._ask = ask
        self._converse = converse
        self._json_tool = json_tool
        self._parts: list[bytes] = []
        self.usage: Usage | None = None
        self.failure: Failure | None = None

    def feed(self, data: bytes) -> bytes:
        """See `Decoder`."""
        self._parts.append(data)
        return b""

    def finish(self) -> bytes:
        """The answer in OpenAI's words."""
        body = b"".join(self._parts)
        answer = _parsed(body)
        try:
            if answer is not None and not isinstance(answer.get("usage"), Mapping):
                body = orjson.dumps({**answer, "usage": _UNTOLD})  # the translation relies on it
            made = self._converse.answer(body, self._json_tool)
            return orjson.dumps(self._answer(answer or {}, made))
        except (Untranslatable, KeyError, IndexError, TypeError):
            self.failure = bad_answer(200, "it is no answer of converse")
            return b""

    def _answer(self, answer: Object, made: Object) -> dict[str, object]:
        choices = made["choices"]
        if not isinstance(choices, list):
            raise TypeError
        choice = choices[0]
        self.usage = read_bedrock(answer.get("usage"))
        whole: dict[str, object] = {
            "id": f"chatcmpl-{self._ask.request_id}",
            "object": "chat.completion",
            "created": self._ask.created,
            "model": self._ask.model,
            "choices": [
                {
                    "index": 0,
                    "message": _message(choice["message"]),
                    "logprobs": None,
                    "finish_reason": _reason(answer) or choice["finish_reason"],
                }
            ],
        }
        if self.usage is not None:
            whole["usage"] = openai_usage(self.usage, answer)
        return whole


def _reason(answer: Object) -> str | None:
    """The reason to stop of an answer or event that can't be used; it has no name in OpenAI's."""
    said = answer.get("stopReason")
    return said if isinstance(said, str) and said in UNUSABLE else None


def _message(made: Object) -> dict[str, object]:
    calls = made.get("tool_calls")
    content = made.get("content")
    message: dict[str, object] = {"role": "assistant", "content": content, "refusal": None}
    if isinstance(calls, list) and calls:
        message["content"] = content or None
        message["tool_calls"] = [
            {key: call[key] for key in ("id", "type", "function")} for call in calls
        ]
    for name in ("reasoning_content", "thinking_blocks"):
        if made.get(name):
            message[name] = made[name]
    return message


class EventAnswer:
    """ConverseStream's events as chunks of OpenAI's stream.

    Tool calls count from 0 in the order their blocks began, whatever the numbers of the blocks.
    """

    content_type = "text/event-stream"

    def __init__(self, ask: Ask, converse: Converse, json_tool: bool) -> None:
        self._ask = ask
        self._json_tool = json_tool
        self._chunks = converse.chunks(json_tool)
        self._scanner = MessageScanner()
        self._calls: dict[object, int] = {}
        self._argued: set[object] = set()
        self._stopped: Object = {}
        self._done = False
        head: dict[str, object] = {
            "id": f"chatcmpl-{ask.request_id}",
            "object": "chat.completion.chunk",
            "created": ask.created,
            "model": ask.model,
        }
        self._head = b"data: " + orjson.dumps(head)[:-1]
        self.usage: Usage | None = None
        self.failure: Failure | None = None

    def feed(self, data: bytes) -> bytes:
        """See `Decoder`: one chunk per event that tells something."""
        out: list[bytes] = []
        try:
            messages = self._scanner.feed(data)
        except EventStreamError:
            self.failure = self.failure or bad_answer(200, "it is no event stream")
            return b""
        for message in messages:
            if self.failure is not None or self._done:
                break
            out.append(self._one(message))
        return b"".join(out)

    def finish(self) -> bytes:
        """The end mark, if the answer was whole but its usage did not come."""
        if self.failure is not None or self._done:
            return b""
        if not self._stopped:
            self.failure = bad_answer(200, "it ended before the answer did")
            return b""
        return self._end()

    def _one(self, message: Message) -> bytes:
        if message.kind != "event":
            self.failure = bedrock_error(message.name, message.payload)
            return b""
        event = _parsed(message.payload)
        if event is None:
            self.failure = bad_answer(200, "an event of it is not JSON")
            return b""
        if message.name == "metadata":
            return self._metadata(event)
        if message.name == "messageStart":
            return self._chunk({"role": "assistant", "content": ""})
        delta = event.get("delta")
        if message.name == "contentBlockDelta" and isinstance(delta, Mapping) and "text" in delta:
            return self._chunk({"content": delta["text"]})
        return self._translated(event)

    def _translated(self, event: Object) -> bytes:
        try:
            made, reason = self._chunks.delta(event)
        except Untranslatable:
            self.failure = bad_answer(200, "an event of it is not one of converse")
            return b""
        if "stopReason" in event:
            self._stopped = event
            if self._json_tool and reason == "tool_calls" and not self._calls:
                reason = "stop"
            return self._chunk({}, _reason(event) or reason)
        block = event.get("contentBlockIndex")
        delta = self._delta(made, block) if event.keys() & {"start", "delta"} else self._stop(block)
        return self._chunk(delta) if delta else b""

    def _stop(self, block: object) -> dict[str, object]:
        """A call that ended without arguments has none: an empty object."""
        if block not in self._calls or block in self._argued:
            return {}
        function = {"arguments": "{}"}
        return {"tool_calls": [{"index": self._calls[block], "function": function}]}

    def _delta(self, made: Object, block: object) -> dict[str, object]:
        delta: dict[str, object] = {}
        if made.get("content"):
            delta["content"] = made["content"]
        for name in ("reasoning_content", "thinking_blocks"):
            if made.get(name):
                delta[name] = made[name]
        calls = made.get("tool_calls")
        if isinstance(calls, list) and calls:
            delta["tool_calls"] = [self._call(call, block) for call in calls]
        return delta

    def _call(self, call: Object, block: object) -> dict[str, object]:
        index = self._calls.setdefault(block, len(self._calls))
        function = call.get("function")
        said = function if isinstance(function, Mapping) else {}
        if said.get("arguments"):
            self._argued.add(block)
        if call.get("id") is None:
            return {"index": index, "function": {"arguments": said.get("arguments", "")}}
        started = {"name": said.get("name"), "arguments": said.get("arguments", "")}
        return {"index": index, "id": call["id"], "type": "function", "function": started}

    def _metadata(self, event: Object) -> bytes:
        self.usage = read_bedrock(event.get("usage"))
        return self._end() if self._stopped else b""

    def _end(self) -> bytes:
        self._done = True
        end = b"data: [DONE]\n\n"
        if self.usage is None or not self._ask.wants_usage:
            return end
        usage = orjson.dumps(openai_usage(self.usage, self._stopped))
        return self._head + b',"choices":[],"usage":' + usage + b"}\n\n" + end

    def _chunk(self, delta: Object, reason: str | None = None) -> bytes:
        choice = orjson.dumps({"index": 0, "delta": delta, "finish_reason": reason})
        return self._head + b',"choices":[' + choice + b"]}\n\n"


def not_a_stream(kind: bytes) -> Failure:
    """The failure of a streaming call that was answered with another content type."""
    what = "json instead of a stream" if kind == b"application/json" else "no event stream"
    return Failure(Kind.BAD_ANSWER, f"the endpoint answered with {what}", 200)
