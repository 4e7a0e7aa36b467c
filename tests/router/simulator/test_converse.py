from __future__ import annotations

import json

from router.simulator.bedrock import BedrockStub
from tests.router.simulator.conversing import Aws, ask, do, stream

TOOLS = {
    "tools": [
        {
            "toolSpec": {
                "name": name,
                "inputSchema": {
                    "json": {"type": "object", "properties": {"n": {"type": "integer"}}}
                },
            }
        }
        for name in ("get_weather", "get_time")
    ]
}


async def test_tools_text_and_reasoning_come_as_blocks(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    arguments = ask(
        "call get_weather and get_time", toolConfig=TOOLS,
        additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 1024}},
    )  # fmt: skip
    plain = await do(client.converse, **arguments)
    blocks = plain["output"]["message"]["content"]
    assert [next(iter(block)) for block in blocks] == [
        "reasoningContent", "text", "toolUse", "toolUse",
    ]  # fmt: skip
    assert plain["stopReason"] == "tool_use"
    assert isinstance(blocks[2]["toolUse"]["input"]["n"], int)
    events = await stream(client, **arguments)
    starts = [e["contentBlockStart"] for e in events if "contentBlockStart" in e]
    assert [s["contentBlockIndex"] for s in starts] == [2, 3]
    assert [s["start"]["toolUse"]["name"] for s in starts] == ["get_weather", "get_time"]
    deltas = [e["contentBlockDelta"] for e in events if "contentBlockDelta" in e]
    inputs = [d["delta"]["toolUse"]["input"] for d in deltas if d["contentBlockIndex"] == 3]
    assert json.loads("".join(inputs)) == blocks[3]["toolUse"]["input"]
    thoughts = [d["delta"]["reasoningContent"] for d in deltas if d["contentBlockIndex"] == 0]
    assert (
        thoughts[-1]["signature"] == (blocks[0]["reasoningContent"]["reasoningText"]["signature"])
    )
    stops = [e["contentBlockStop"]["contentBlockIndex"] for e in events if "contentBlockStop" in e]
    assert stops == [0, 1, 2, 3]
