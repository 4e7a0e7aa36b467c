"""The generation surfaces of a replica: path → parse, say, and put into that surface's shape."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from router.simulator import anthropic_api, converse, vllm_api
from router.simulator.faults import ErrorFrame, Fault, Frame, Frames
from router.simulator.speech import Speech, speak
from router.simulator.vllm_api import ApiError, Call


@dataclass(frozen=True, slots=True)
class Serving:
    """What a replica serves: model names, seed, context (tokens), and the time in its answers."""

    models: Sequence[str]
    seed: int
    context: int
    created: int


@dataclass(frozen=True, slots=True)
class Generation:
    """One call about to be generated. `frames` turns token numbers into the stream's frames."""

    id: str
    call: Call
    prompt_tokens: int
    tokens: int
    finish: str
    body: Callable[[], bytes]
    frames: Callable[[AsyncGenerator[int, None]], Frames]


@dataclass(frozen=True, slots=True)
class Surface:
    """How one path is spoken: its calls, and its errors plain and in a stream."""

    open: Callable[[bytes, Serving], Generation]
    error: Callable[[ApiError], bytes]
    error_frame: ErrorFrame


def _openai(body: bytes, serving: Serving, *, chat: bool) -> Generation:
    call = vllm_api.parse(body, chat=chat, served=serving.models)
    output = vllm_api.answer(call, serving.seed, serving.context)
    return Generation(
        output.id, call, output.prompt_tokens, output.tokens, output.finish,
        lambda: vllm_api.completion(call, output, serving.created, 0),
        lambda tokens: vllm_api.stream(call, output, serving.created, tokens),
    )  # fmt: skip


def _messages(body: bytes, serving: Serving) -> Generation:
    document = vllm_api.document(body)
    model = str(document.get("model"))
    if model not in serving.models:
        raise ApiError(404, f"model: {model}", "not_found_error")
    try:
        call = anthropic_api.parse(document, model, stream=document.get("stream") is True)
    except ValueError as error:
        raise ApiError(400, str(error), "invalid_request_error") from error
    reasoning = converse.wants_reasoning(document)
    said = speak(call, serving.seed, serving.context, reasoning=reasoning)
    finish = "length" if said.stop_reason == "max_tokens" else "stop"
    return Generation(
        said.id, call, said.prompt_tokens, said.tokens, finish,
        lambda: vllm_api.dumps(anthropic_api.message(call, said)),
        lambda tokens: _events(call, said, tokens),
    )  # fmt: skip


async def _events(call: Call, said: Speech, tokens: AsyncGenerator[int, None]) -> Frames:
    events = anthropic_api.events(call, said, tokens)
    async with aclosing(events):
        async for name, payload, part in events:
            yield Frame(_event(name, payload), part)


def _event(name: str, payload: Mapping[str, object]) -> bytes:
    return f"event: {name}\ndata: ".encode() + vllm_api.dumps(payload) + b"\n\n"


def _messages_error(error: ApiError) -> bytes:
    return vllm_api.dumps(_problem(error.status, error.message))


def _problem(status: int, message: str) -> Mapping[str, object]:
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _messages_error_frame(fault: Fault) -> bytes:
    return _event("error", _problem(fault.status, f"simulated {fault.status}"))


_KINDS = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip

SURFACES: Mapping[str, Surface] = {
    "/v1/chat/completions": Surface(
        lambda body, serving: _openai(body, serving, chat=True),
        ApiError.body, vllm_api.error_frame,
    ),
    "/v1/completions": Surface(
        lambda body, serving: _openai(body, serving, chat=False),
        ApiError.body, vllm_api.error_frame,
    ),
    "/v1/messages": Surface(_messages, _messages_error, _messages_error_frame),
}  # fmt: skip
