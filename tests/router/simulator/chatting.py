"""Chat requests to a simulated fleet of two, and what is read of their answers."""

from __future__ import annotations

import json
from typing import Any

import httpx

from router.simulator.replica import Replica, ReplicaSpec

SPEC = ReplicaSpec(models=("tiny", "alias"), speed=200.0)


def ask(text: str = "hello", **more: object) -> dict[str, object]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


async def chat(http: httpx.AsyncClient, replica: Replica, **more: object) -> httpx.Response:
    return await http.post(replica.url + "/v1/chat/completions", json=ask(**more))  # type: ignore[arg-type]


def events(text: str) -> list[dict[str, Any]]:
    blocks = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert blocks[-1] == "[DONE]"
    return [json.loads(block) for block in blocks[:-1]]
