"""What the Bedrock stub's tests name, and calls of real boto3 clients, made in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

SONNET = "anthropic.claude-sonnet-4-6"
EU = f"eu.{SONNET}"
ARN = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123def456"
SIX = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
Aws = Callable[..., Any]


async def do(call: Callable[..., Any], **arguments: object) -> Any:
    return await asyncio.to_thread(call, **arguments)


def ask(text: str = "hello", model: str = EU, **more: object) -> dict[str, Any]:
    return {"modelId": model, "messages": [{"role": "user", "content": [{"text": text}]}], **more}


async def stream(client: Any, **arguments: object) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = await do(
        lambda: list(client.converse_stream(**arguments)["stream"])
    )
    return events
