from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from router.simulator.bedrock import BedrockStub

SONNET = "anthropic.claude-sonnet-4-6"
EU = f"eu.{SONNET}"
Aws = Callable[..., Any]


async def do(call: Callable[..., Any], **arguments: object) -> Any:
    return await asyncio.to_thread(call, **arguments)


async def test_anthropic_stream_events_add_up_to_the_message(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body = json.dumps({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 500,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [{"role": "user", "content": "call get_time"}],
        "tools": [{"name": "get_time", "input_schema": schema}],
    })  # fmt: skip
    answer = await do(client.invoke_model, modelId=EU, body=body)
    whole = json.loads(answer["body"].read())
    events = await do(
        lambda: [
            json.loads(event["chunk"]["bytes"])
            for event in client.invoke_model_with_response_stream(modelId=EU, body=body)["body"]
        ]
    )
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    text = "".join(
        e["delta"]["text"] for e in events
        if e["type"] == "content_block_delta" and e["delta"]["type"] == "text_delta"
    )  # fmt: skip
    assert text == whole["content"][1]["text"]
    arguments = "".join(
        e["delta"]["partial_json"] for e in events
        if e["type"] == "content_block_delta" and e["delta"]["type"] == "input_json_delta"
    )  # fmt: skip
    assert json.loads(arguments) == whole["content"][2]["input"]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"
