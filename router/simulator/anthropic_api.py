"""The Anthropic Messages shape: parsing a request, a whole message, and its stream events.

Bedrock's InvokeModel carries it for Claude models; pieces come from the same seeded model as
everywhere (`vllm_api.answer`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from router.simulator.faults import Part
from router.simulator.speech import Speech
from router.simulator.vllm_api import Call, JsonMap, Tool, content_text

Events = AsyncGenerator[tuple[str, JsonMap, Part], None]


def parse(document: JsonMap, model: str, *, stream: bool) -> Call:
    """A call from a Messages body; ValueError says what is missing."""
    limit = document.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise ValueError("max_tokens: Field required")
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages: at least one message is required")
    last = messages[-1] if isinstance(messages[-1], dict) else {}
    read = json.dumps([document.get("system"), messages, document.get("tools")], sort_keys=True)
    tools = _tools(document.get("tools"))
    return Call(
        model, read, content_text(last.get("content")), chat=True, stream=stream,
        usage_in_stream=True, max_tokens=limit, exact=False, tools=tools,
        forced=_forced(document.get("tool_choice"), tools),
    )  # fmt: skip


def _tools(offered: object) -> tuple[Tool, ...]:
    found: list[Tool] = []
    for offer in offered if isinstance(offered, list) else []:
        schema = offer.get("input_schema") if isinstance(offer, dict) else None
        if not isinstance(schema, dict):
            raise ValueError("tools: a tool needs a name and an input_schema")
        found.append(Tool(str(offer.get("name")), schema))
    return tuple(found)


def _forced(choice: object, tools: tuple[Tool, ...]) -> tuple[str, ...]:
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "any" and tools:
        return (tools[0].name,)
    if isinstance(choice, dict) and kind == "tool":
        return (_known(str(choice.get("name")), tools),)
    return ()


def _known(name: str, tools: tuple[Tool, ...]) -> str:
    if name not in [tool.name for tool in tools]:
        raise ValueError(f"tool_choice: no tool is named {name}")
    return name


def message(call: Call, said: Speech) -> JsonMap:
    """A whole message."""
    content: list[JsonMap] = []
    if said.reasoning:
        thinking = "".join(said.reasoning)
        content.append({"type": "thinking", "thinking": thinking, "signature": said.signature})
    if said.pieces:
        content.append({"type": "text", "text": "".join(said.pieces)})
    for tool in said.tools:
        arguments = json.loads("".join(tool.pieces))
        content.append({"type": "tool_use", "id": tool.id, "name": tool.name, "input": arguments})
    return {
        **_start(call, said), "content": content, "stop_reason": said.stop_reason,
        "usage": {"input_tokens": said.prompt_tokens, "output_tokens": said.tokens},
    }  # fmt: skip


def _start(call: Call, said: Speech) -> JsonMap:
    return {
        "id": f"msg_bdrk_{said.id}", "type": "message", "role": "assistant", "model": call.model,
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": said.prompt_tokens, "output_tokens": 0},
    }  # fmt: skip


async def events(call: Call, said: Speech, tokens: AsyncGenerator[int, None]) -> Events:
    """The stream events, content as its tokens come out; name, payload, and what part it is."""
    yield _event("message_start", Part.START, message=_start(call, said))
    open_block = -1
    async with aclosing(tokens):
        async for token in tokens:
            fragment = said.fragments[token - 1]
            if fragment.block != open_block:
                if open_block >= 0:
                    yield _event("content_block_stop", Part.FINISH, index=open_block)
                open_block = fragment.block
                block = _opening(fragment.kind, fragment.id, fragment.name)
                part = Part.CONTENT if fragment.kind == "tool" else Part.START
                yield _event("content_block_start", part, index=open_block, content_block=block)
            if fragment.text:
                delta = _delta(fragment.kind, fragment.text)
                yield _event("content_block_delta", Part.CONTENT, index=open_block, delta=delta)
    yield _event("content_block_stop", Part.FINISH, index=open_block)
    ending = {"stop_reason": said.stop_reason, "stop_sequence": None}
    usage = {"output_tokens": said.tokens}
    yield _event("message_delta", Part.FINISH, delta=ending, usage=usage)
    yield _event("message_stop", Part.END)


def _event(name: str, part: Part, **fields: object) -> tuple[str, JsonMap, Part]:
    return name, {"type": name, **fields}, part


def _opening(kind: str, tool_id: str, name: str) -> JsonMap:
    match kind:
        case "tool":
            return {"type": "tool_use", "id": tool_id, "name": name, "input": {}}
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case _:
            return {"type": "text", "text": ""}


def _delta(kind: str, text: str) -> JsonMap:
    match kind:
        case "tool":
            return {"type": "input_json_delta", "partial_json": text}
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
        case "signature":
            return {"type": "signature_delta", "signature": text}
        case _:
            return {"type": "text_delta", "text": text}
