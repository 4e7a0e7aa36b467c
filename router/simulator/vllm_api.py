"""vLLM's OpenAI-compatible bodies: what a request asks for, and the frames that answer it.

Pure: a `Call` is parsed from JSON or refused in vLLM's error shape; an `Output` is what the seeded
model will say, one piece a token; `chat_frames` and friends put pieces into chunks.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from router.simulator import text
from router.simulator.faults import Fault, Frame, Frames, Part

JsonMap = Mapping[str, object]


class ApiError(Exception):
    """A refusal in vLLM's shape."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.param = status, message, kind, param

    def body(self) -> bytes:
        """The JSON error body."""
        error = {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.status,
        }  # fmt: skip
        return dumps({"error": error})


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the client offers."""

    name: str
    schema: JsonMap


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed generation request. `prompt` is all that the model reads, as one string; `shape`
    the schema of the JSON that it is to answer with."""

    model: str
    prompt: str
    last: str
    chat: bool
    stream: bool
    usage_in_stream: bool
    max_tokens: int | None
    exact: bool
    tools: tuple[Tool, ...]
    forced: tuple[str, ...]
    salt: str = ""
    shape: JsonMap | None = None

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the tools this call will be answered with."""
        names = [tool.name for tool in self.tools]
        return self.forced or tuple(text.wanted_tools(self.last, names))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an answer; `pieces` are the fragments of its JSON arguments."""

    id: str
    name: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """What the model says: text pieces, then tool calls; one token a piece."""

    id: str
    pieces: tuple[str, ...]
    tools: tuple[ToolCall, ...]
    finish: str
    prompt_tokens: int

    @property
    def tokens(self) -> int:
        """Number of tokens that come out."""
        return len(self.pieces) + sum(1 + len(tool.pieces) for tool in self.tools)


def dumps(document: object) -> bytes:
    """Compact UTF-8 JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def parse(body: bytes, *, chat: bool, served: Sequence[str]) -> Call:
    """A `Call` from a request body, or `ApiError`."""
    found = document(body)
    model = found.get("model")
    if not isinstance(model, str) or model not in served:
        raise ApiError(404, f"The model `{model}` does not exist.", "NotFoundError", "model")
    if found.get("n") not in {None, 1}:
        raise ApiError(400, "this simulator answers n=1 only", "BadRequestError", "n")
    prompt, last = _messages(found) if chat else _prompt(found)
    tools = _tools(found) if chat else ()
    limit = found.get("max_completion_tokens") or found.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ApiError(400, "max_tokens must be at least 1", "BadRequestError", "max_tokens")
    options = found.get("stream_options")
    return Call(
        model, prompt, last, chat,
        stream=found.get("stream") is True,
        usage_in_stream=isinstance(options, Mapping) and options.get("include_usage") is True,
        max_tokens=limit,
        exact=found.get("ignore_eos") is True,
        tools=tools,
        forced=_forced(found.get("tool_choice"), tools),
        salt=_salt(found.get("cache_salt")),
        shape=_shape(found.get("response_format")) if chat else None,
    )  # fmt: skip


def _shape(asked: object) -> JsonMap | None:
    """The schema that `response_format` asks for; of `json_object` any object will do."""
    if not isinstance(asked, Mapping) or asked.get("type") in {None, "text"}:
        return None
    if asked["type"] == "json_object":
        return {"type": "object"}
    given = asked.get("json_schema")
    schema = given.get("schema") if isinstance(given, Mapping) else None
    if asked["type"] != "json_schema" or not isinstance(schema, Mapping):
        raise ApiError(
            400, "`response_format` can't be taken", "BadRequestError", "response_format"
        )
    return schema


def _salt(said: object) -> str:
    """What keeps this prompt's blocks from others', as vLLM takes it."""
    if said is None:
        return ""
    if not isinstance(said, str) or not said or len(said) > 128 or set(said) & set("@/\\\0"):
        raise ApiError(400, "`cache_salt` can't be taken", "BadRequestError", "cache_salt")
    return said


def document(body: bytes) -> JsonMap:
    """The JSON object of a body, or `ApiError` 400."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise ApiError(400, "the body is not JSON", "BadRequestError") from error
    if not isinstance(found, dict):
        raise ApiError(400, "the body is not a JSON object", "BadRequestError")
    return found


def _messages(document: JsonMap) -> tuple[str, str]:
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "messages must be a non-empty list", "BadRequestError", "messages")
    lines: list[str] = []
    last = ""
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ApiError(400, "a message needs a role", "BadRequestError", "messages")
        said = content_text(message.get("content"))
        lines.append(f"<|{message['role']}|>{said}")
        last = said if message["role"] == "user" else ""
    return "\n".join([*lines, "<|assistant|>"]), last


def content_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def _prompt(document: JsonMap) -> tuple[str, str]:
    prompt = document.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise ApiError(400, "prompt must be one non-empty string", "BadRequestError", "prompt")
    return prompt, ""


def _tools(document: JsonMap) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    offered = document.get("tools")
    for offer in offered if isinstance(offered, list) else []:
        function = offer.get("function") if isinstance(offer, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ApiError(400, "a tool needs a function with a name", "BadRequestError", "tools")
        schema = function.get("parameters")
        tools.append(Tool(function["name"], schema if isinstance(schema, dict) else {}))
    return tuple(tools)


def _forced(choice: object, tools: Sequence[Tool]) -> tuple[str, ...]:
    if choice == "required" and tools:
        return (tools[0].name,)
    if isinstance(choice, dict) and isinstance(function := choice.get("function"), dict):
        named = str(function.get("name"))
        if named not in [tool.name for tool in tools]:
            raise ApiError(400, f"no tool is named `{named}`", "BadRequestError", "tool_choice")
        return (named,)
    return ()


def answer(call: Call, seed: int, context: int) -> Output:
    """What the seeded model says to a call; `ApiError` 400 if it does not fit the context."""
    prompt_tokens = max(1, len(text.tokenize(call.prompt)))
    room = context - prompt_tokens
    if room < 1 or (call.max_tokens or 0) > room:
        wanted = prompt_tokens + (call.max_tokens or 1)
        raise ApiError(
            400,
            f"This model's maximum context length is {context} tokens. However, you requested "
            f"{wanted} tokens.",
            "BadRequestError",
        )
    rng = text.generator(seed, call.model, call.prompt)
    digest = hashlib.blake2b(f"{seed}\0{call.model}\0{call.prompt}".encode(), digest_size=12)
    name = ("chatcmpl-" if call.chat else "cmpl-") + digest.hexdigest()
    if call.called:
        schemas = {tool.name: tool.schema for tool in call.tools}
        tools = tuple(_tool_call(rng, tool, schemas[tool]) for tool in call.called)
        return Output(name, (), tools, "tool_calls", prompt_tokens)
    limit = min(room, call.max_tokens or room)
    if call.shape is not None:
        said = _pieces(text.fitting(rng, call.shape))
        finish = "stop" if len(said) <= limit else "length"
        return Output(name, said[:limit], (), finish, prompt_tokens)
    natural = rng.randrange(8, 49)
    count = limit if call.exact else min(natural, limit)
    finish = "length" if call.exact or natural >= limit else "stop"
    return Output(name, tuple(text.words(rng, count)), (), finish, prompt_tokens)


def _tool_call(rng: random.Random, name: str, schema: JsonMap) -> ToolCall:
    pieces = _pieces(text.arguments(rng, schema))
    return ToolCall(f"chatcmpl-tool-{rng.getrandbits(64):016x}", name, pieces)


def _pieces(value: object) -> tuple[str, ...]:
    """A JSON text in pieces of a token each."""
    document = json.dumps(value, ensure_ascii=False)
    return tuple(document[at : at + 6] for at in range(0, len(document), 6))


def usage(output: Output, cached: int = 0) -> dict[str, object]:
    """Token counts in OpenAI's shape."""
    return {
        "prompt_tokens": output.prompt_tokens,
        "total_tokens": output.prompt_tokens + output.tokens,
        "completion_tokens": output.tokens,
        "prompt_tokens_details": {"cached_tokens": cached} if cached else None,
    }


def completion(call: Call, output: Output, created: int, cached: int) -> bytes:
    """The body of a plain answer."""
    said = "".join(output.pieces)
    choice: dict[str, object] = {"index": 0, "logprobs": None, "finish_reason": output.finish}
    if call.chat:
        calls = [_whole_tool(tool) for tool in output.tools]
        choice["message"] = {
            "role": "assistant", "content": None if calls else said, "refusal": None,
            "tool_calls": calls, "reasoning_content": None,
        }  # fmt: skip
    else:
        choice["text"] = said
    document = {
        "id": output.id, "object": "chat.completion" if call.chat else "text_completion",
        "created": created, "model": call.model, "choices": [choice],
        "usage": usage(output, cached),
    }  # fmt: skip
    return dumps(document)


def _whole_tool(tool: ToolCall) -> dict[str, object]:
    function = {"name": tool.name, "arguments": "".join(tool.pieces)}
    return {"id": tool.id, "type": "function", "function": function}


def _deltas(output: Output) -> list[JsonMap]:
    deltas: list[JsonMap] = [{"content": piece} for piece in output.pieces]
    for index, tool in enumerate(output.tools):
        function = {"name": tool.name, "arguments": ""}
        opening = {"index": index, "id": tool.id, "type": "function", "function": function}
        deltas.append({"tool_calls": [opening]})
        deltas.extend(
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in tool.pieces
        )
    return deltas


async def stream(
    call: Call, output: Output, created: int, tokens: AsyncGenerator[int, None]
) -> Frames:
    """The SSE frames of a streamed answer, each when its token comes out of the engine."""
    base: dict[str, object] = {
        "id": output.id, "object": "chat.completion.chunk" if call.chat else "text_completion",
        "created": created, "model": call.model,
    }  # fmt: skip
    deltas = _deltas(output)
    async with aclosing(tokens):
        async for token in tokens:
            if token == 1 and call.chat:
                opening = {"role": "assistant", "content": ""}
                yield _event(base, Part.START, _choice(call, opening, None))
            yield _event(base, Part.CONTENT, _choice(call, deltas[token - 1], None))
    yield _event(base, Part.FINISH, _choice(call, {}, output.finish))
    if call.usage_in_stream:
        yield _event({**base, "choices": [], "usage": usage(output)}, Part.USAGE)
    yield Frame(b"data: [DONE]\n\n", Part.END)


def _choice(call: Call, delta: JsonMap, finish: str | None) -> dict[str, object]:
    said = {"delta": delta} if call.chat else {"text": delta.get("content", "")}
    return {"index": 0, **said, "logprobs": None, "finish_reason": finish}


def _event(base: JsonMap, part: Part, choice: JsonMap | None = None) -> Frame:
    document = base if choice is None else {**base, "choices": [choice]}
    return Frame(b"data: " + dumps(document) + b"\n\n", part)


def refusal(fault: Fault) -> ApiError:
    """The error a STATUS fault answers with."""
    kind = fault.error or ("RateLimitError" if fault.status == 429 else "InternalServerError")
    return ApiError(fault.status, f"simulated {fault.status}", kind)


def error_frame(fault: Fault) -> bytes:
    """An in-stream error, as vLLM sends one: an error event, then the end mark."""
    return b"data: " + refusal(fault).body() + b"\n\ndata: [DONE]\n\n"
