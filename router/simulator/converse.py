"""Bedrock's Converse shape: parsing a request, a whole answer, and its stream events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from router.simulator.anthropic_api import Events
from router.simulator.faults import Part
from router.simulator.speech import Fragment, Speech
from router.simulator.vllm_api import Call, JsonMap, Tool, content_text


def parse(document: JsonMap, model: str, *, stream: bool) -> Call:
    """A call from a Converse body; ValueError in the service's words."""
    messages = document.get("messages")
    _check_turns(messages)
    found: Sequence[JsonMap] = messages if isinstance(messages, list) else []
    settings = document.get("inferenceConfig")
    limit = settings.get("maxTokens") if isinstance(settings, dict) else None
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ValueError("Value at 'inferenceConfig.maxTokens' must be at least 1")
    config = document.get("toolConfig")
    read = json.dumps([document.get("system"), messages, config], sort_keys=True)
    tools = _tools(config)
    return Call(
        model, read, content_text(found[-1].get("content")), chat=True, stream=stream,
        usage_in_stream=True, max_tokens=limit, exact=False, tools=tools,
        forced=_forced(config, tools),
    )  # fmt: skip


def _check_turns(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise ValueError("The messages field is required and must not be empty.")
    wanted = "user"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            raise ValueError("A message needs a role and a list of content blocks.")
        if message.get("role") != wanted:
            raise ValueError(
                "A conversation must start with a user message and alternate between user and "
                "assistant turns."
            )
        if any("text" in block and not block["text"] for block in message["content"]):
            raise ValueError("The text field in the ContentBlock object is blank.")
        wanted = "assistant" if wanted == "user" else "user"


def _tools(config: object) -> tuple[Tool, ...]:
    offered = config.get("tools") if isinstance(config, dict) else None
    found: list[Tool] = []
    for offer in offered if isinstance(offered, list) else []:
        spec = offer.get("toolSpec") if isinstance(offer, dict) else None
        if not isinstance(spec, dict):
            continue  # cache points and system tools are not called
        schema = spec.get("inputSchema")
        inner = schema.get("json") if isinstance(schema, dict) else None
        found.append(Tool(str(spec.get("name")), inner if isinstance(inner, dict) else {}))
    return tuple(found)


def _forced(config: object, tools: tuple[Tool, ...]) -> tuple[str, ...]:
    choice = config.get("toolChoice") if isinstance(config, dict) else None
    if not isinstance(choice, dict) or not tools:
        return ()
    if "any" in choice:
        return (tools[0].name,)
    named = choice.get("tool")
    if not isinstance(named, dict):
        return ()
    name = str(named.get("name"))
    if name not in [tool.name for tool in tools]:
        raise ValueError(f"The tool choice names {name}, which is not in the tool list.")
    return (name,)


def wants_reasoning(document: JsonMap) -> bool:
    """Whether the request turns Claude's extended thinking on (both shapes carry `thinking`)."""
    extra = document.get("additionalModelRequestFields")
    thinking = (extra if isinstance(extra, dict) else document).get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") in {"enabled", "adaptive"}


def answer(said: Speech, latency_ms: int) -> JsonMap:
    """A whole Converse answer."""
    content: list[JsonMap] = []
    if said.reasoning:
        thinking = {"text": "".join(said.reasoning), "signature": said.signature}
        content.append({"reasoningContent": {"reasoningText": thinking}})
    if said.pieces:
        content.append({"text": "".join(said.pieces)})
    content.extend(
        {
            "toolUse": {
                "toolUseId": tool.id, "name": tool.name,
                "input": json.loads("".join(tool.pieces)),
            }
        }
        for tool in said.tools
    )  # fmt: skip
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": said.stop_reason, "usage": usage(said),
        "metrics": {"latencyMs": latency_ms},
    }  # fmt: skip


def usage(said: Speech) -> JsonMap:
    """Token counts in Converse's shape."""
    return {
        "inputTokens": said.prompt_tokens, "outputTokens": said.tokens,
        "totalTokens": said.prompt_tokens + said.tokens,
    }  # fmt: skip


async def events(said: Speech, tokens: AsyncGenerator[int, None], latency_ms: int) -> Events:
    """The stream events, content as its tokens come out; name, payload, and what part it is."""
    yield "messageStart", {"role": "assistant"}, Part.START
    block = -1
    async with aclosing(tokens):
        async for token in tokens:
            fragment = said.fragments[token - 1]
            if fragment.block != block and block >= 0:
                yield "contentBlockStop", {"contentBlockIndex": block}, Part.FINISH
            block = fragment.block
            yield _fragment(fragment)
    yield "contentBlockStop", {"contentBlockIndex": block}, Part.FINISH
    yield "messageStop", {"stopReason": said.stop_reason}, Part.FINISH
    yield "metadata", {"usage": usage(said), "metrics": {"latencyMs": latency_ms}}, Part.END


def _fragment(fragment: Fragment) -> tuple[str, JsonMap, Part]:
    where = {"contentBlockIndex": fragment.block}
    if fragment.kind == "tool" and not fragment.text:
        start = {"toolUse": {"toolUseId": fragment.id, "name": fragment.name}}
        return "contentBlockStart", {"start": start, **where}, Part.CONTENT
    deltas: dict[str, JsonMap] = {
        "tool": {"toolUse": {"input": fragment.text}},
        "reasoning": {"reasoningContent": {"text": fragment.text}},
        "signature": {"reasoningContent": {"signature": fragment.text}},
        "text": {"text": fragment.text},
    }
    return "contentBlockDelta", {"delta": deltas[fragment.kind], **where}, Part.CONTENT
