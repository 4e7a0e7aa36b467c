"""Bedrock's runtime operations: from a request to what is said, in the shape it was asked in.

InvokeModel bodies are the vendor's own: Anthropic Messages for `anthropic.`, the Converse shape for
`amazon.nova`, OpenAI chat for `openai.`; others are refused, not guessed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from router.simulator import anthropic_api, converse, vllm_api
from router.simulator.bedrock_frames import event
from router.simulator.bedrock_world import BedrockError, BedrockWorld, Guardrail
from router.simulator.faults import Cut, Frame, Frames
from router.simulator.speech import Speech, blocked, speak
from router.simulator.timing import EngineSpec
from router.simulator.vllm_api import ApiError, Call, JsonMap
from router.simulator.wire import Headers, Request

_LATENCY_MS = 7
_BLOCKED = "Sorry, the model cannot answer this question."


class Operation(Enum):
    """A runtime operation, by its API name."""

    CONVERSE = "Converse"
    CONVERSE_STREAM = "ConverseStream"
    INVOKE = "InvokeModel"
    INVOKE_STREAM = "InvokeModelWithResponseStream"
    COUNT_TOKENS = "CountTokens"
    APPLY_GUARDRAIL = "ApplyGuardrail"

    @property
    def streams(self) -> bool:
        """Whether it answers with an event stream."""
        return self in {Operation.CONVERSE_STREAM, Operation.INVOKE_STREAM}

    @staticmethod
    def verbs() -> dict[str, Operation]:
        """The last path segment of operations on a model."""
        return {
            "converse": Operation.CONVERSE, "converse-stream": Operation.CONVERSE_STREAM,
            "invoke": Operation.INVOKE, "invoke-with-response-stream": Operation.INVOKE_STREAM,
            "count-tokens": Operation.COUNT_TOKENS,
        }  # fmt: skip


class Offer(Protocol):
    """What is needed of the stub's spec."""

    @property
    def world(self) -> BedrockWorld:
        """Models, profiles, guardrails."""

    @property
    def engine(self) -> EngineSpec:
        """The engine, for its context."""

    @property
    def seed(self) -> int:
        """The seed of all that is said."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What one call says, and how: the plain body, or the frames of a stream."""

    said: Speech
    body: JsonMap
    frames: Callable[[AsyncGenerator[int, None]], Frames]
    headers: Headers
    guardrail: str = ""
    guardrail_version: str = ""
    guardrail_profile: str = ""
    project: str = ""


def invocation(
    operation: Operation, request: Request, document: JsonMap, model: str, offer: Offer, region: str
) -> Invocation:
    """Parse, check and answer one call, or `BedrockError`."""
    if operation is Operation.COUNT_TOKENS:
        operation, document = _counted(document)
    conversed = operation in {Operation.CONVERSE, Operation.CONVERSE_STREAM}
    call, family = _call(document, model, conversed=conversed, stream=operation.streams)
    said = _say(call, offer, reasoning=converse.wants_reasoning(document))
    name, version = _guardrail_of(request, document, conversed=conversed)
    profile = ""
    if name:
        guardrail = offer.world.guardrail(name, version, region)
        profile = guardrail.profile
        if any(word in call.prompt for word in guardrail.blocked):
            said = blocked(call, _BLOCKED)
    body, frames = _SHAPES[family](call, said)
    return Invocation(
        said, body, frames, _headers(said, conversed=conversed), name, version, profile,
        _project(request, document),
    )  # fmt: skip


def _counted(document: JsonMap) -> tuple[Operation, JsonMap]:
    """The call whose tokens are to be counted."""
    asked = document.get("input")
    inner = asked if isinstance(asked, dict) else {}
    if isinstance(inner.get("converse"), dict):
        return Operation.CONVERSE, inner["converse"]
    if isinstance(inner.get("invokeModel"), dict):
        body = json.loads(base64.b64decode(str(inner["invokeModel"].get("body"))))
        return Operation.INVOKE, body
    raise BedrockError("ValidationException", "input must hold converse or invokeModel")


def _call(document: JsonMap, model: str, *, conversed: bool, stream: bool) -> tuple[Call, str]:
    try:
        if conversed:
            return converse.parse(document, model, stream=stream), "converse"
        if model.startswith("anthropic."):
            if "anthropic_version" not in document:
                raise ValueError("anthropic_version: Field required")
            return anthropic_api.parse(document, model, stream=stream), "anthropic"
        if model.startswith("amazon.nova"):
            return converse.parse(document, model, stream=stream), "nova"
        if model.startswith("openai."):
            body = vllm_api.dumps({**document, "model": model, "stream": stream})
            return vllm_api.parse(body, chat=True, served=(model,)), "openai"
    except (ValueError, ApiError) as error:
        raise BedrockError("ValidationException", str(error)) from error
    raise BedrockError("ValidationException", f"InvokeModel is not simulated for {model}")


def _say(call: Call, offer: Offer, *, reasoning: bool) -> Speech:
    try:
        return speak(call, offer.seed, offer.engine.context, reasoning=reasoning)
    except ApiError as error:
        raise BedrockError("ValidationException", "Input is too long for this model.") from error


def _guardrail_of(request: Request, document: JsonMap, *, conversed: bool) -> tuple[str, str]:
    if not conversed:
        prefix = "x-amzn-bedrock-guardrail"
        return (
            request.header(f"{prefix}identifier") or "", request.header(f"{prefix}version") or "",
        )  # fmt: skip
    config = document.get("guardrailConfig")
    if not isinstance(config, dict):
        return "", ""
    return str(config.get("guardrailIdentifier", "")), str(config.get("guardrailVersion", ""))


def _project(request: Request, document: JsonMap) -> str:
    header = request.header("x-amzn-bedrock-projectidentifier")
    return header or str(document.get("projectIdentifier") or "")


def _headers(said: Speech, *, conversed: bool) -> Headers:
    if conversed:
        return ()
    return (
        ("x-amzn-bedrock-content-type", "application/json"),
        ("x-amzn-bedrock-input-token-count", str(said.prompt_tokens)),
        ("x-amzn-bedrock-output-token-count", str(said.tokens)),
        ("x-amzn-bedrock-invocation-latency", str(_LATENCY_MS)),
    )


Shape = tuple[JsonMap, Callable[[AsyncGenerator[int, None]], Frames]]


def _converse_shape(call: Call, said: Speech) -> Shape:
    del call
    return converse.answer(said, _LATENCY_MS), lambda tokens: _framed(
        converse.events(said, tokens, _LATENCY_MS)
    )


def _nova_shape(call: Call, said: Speech) -> Shape:
    del call
    body = {k: v for k, v in converse.answer(said, _LATENCY_MS).items() if k != "metrics"}
    return body, lambda tokens: _chunked(
        converse.events(said, tokens, _LATENCY_MS), lambda name, payload: {name: payload}
    )


def _anthropic_shape(call: Call, said: Speech) -> Shape:
    return anthropic_api.message(call, said), lambda tokens: _chunked(
        anthropic_api.events(call, said, tokens), lambda _, payload: payload
    )


def _openai_shape(call: Call, said: Speech) -> Shape:
    finish = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
    ended = finish.get(said.stop_reason, "content_filter")
    pieces = () if said.tools else said.pieces
    output = vllm_api.Output(said.id, pieces, said.tools, ended, said.prompt_tokens)
    body: JsonMap = json.loads(vllm_api.completion(call, output, 0, 0))
    return body, lambda tokens: _rewrapped(
        vllm_api.stream(call, output, 0, _first(tokens, output.tokens))
    )


_SHAPES: dict[str, Callable[[Call, Speech], Shape]] = {
    "converse": _converse_shape, "nova": _nova_shape, "anthropic": _anthropic_shape,
    "openai": _openai_shape,
}  # fmt: skip


async def _framed(events: anthropic_api.Events) -> Frames:
    async with aclosing(events):
        async for name, payload, part in events:
            yield Frame(event(name, {**payload, "p": "abcdefgh"}), part)


async def _chunked(
    events: anthropic_api.Events, document: Callable[[str, JsonMap], JsonMap]
) -> Frames:
    async with aclosing(events):
        async for name, payload, part in events:
            yield Frame(_chunk(vllm_api.dumps(document(name, payload))), part)


async def _rewrapped(frames: Frames) -> Frames:
    """OpenAI chunks out of their SSE lines into event-stream chunks; no end mark."""
    async with aclosing(frames):
        async for frame in frames:
            if isinstance(frame, Cut):
                yield frame
            elif b"[DONE]" not in frame.data:
                yield Frame(_chunk(frame.data.removeprefix(b"data: ").strip()), frame.part)


async def _first(tokens: AsyncGenerator[int, None], count: int) -> AsyncGenerator[int, None]:
    """The first `count` tokens; the rest (words before a tool call) are not in this shape."""
    async with aclosing(tokens):
        async for token in tokens:
            if token <= count:
                yield token


def _chunk(document: bytes) -> bytes:
    return event("chunk", {"bytes": base64.b64encode(document).decode(), "p": "abcdefgh"})


def guardrail_answer(guardrail: Guardrail, document: JsonMap) -> JsonMap:
    """What ApplyGuardrail says to content: intervened if it holds a blocked word."""
    content = document.get("content")
    said = [_text(part) for part in content] if isinstance(content, list) else []
    if not said or document.get("source") not in {"INPUT", "OUTPUT"}:
        raise BedrockError("ValidationException", "source and content are required")
    stopped = any(word in part for word in guardrail.blocked for part in said)
    return {
        "usage": dict.fromkeys(_UNITS, 0),
        "action": "GUARDRAIL_INTERVENED" if stopped else "NONE",
        "outputs": [{"text": _BLOCKED}] if stopped else [],
        "assessments": [_assessment(guardrail.blocked, said)] if stopped else [],
    }  # fmt: skip


def _text(part: object) -> str:
    inner = part.get("text") if isinstance(part, dict) else None
    return str(inner.get("text", "")) if isinstance(inner, dict) else ""


def _assessment(words: Sequence[str], said: Sequence[str]) -> JsonMap:
    found = [word for word in words if any(word in part for part in said)]
    custom = [{"match": word, "action": "BLOCKED"} for word in found]
    return {"wordPolicy": {"customWords": custom, "managedWordLists": []}}


_UNITS = (
    "topicPolicyUnits", "contentPolicyUnits", "wordPolicyUnits",
    "sensitiveInformationPolicyUnits", "sensitiveInformationPolicyFreeUnits",
    "contextualGroundingPolicyUnits",
)  # fmt: skip
