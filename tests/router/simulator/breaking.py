"""One request to a replica that breaks, as a client and as a socket see its answer."""

from __future__ import annotations

import asyncio
import json

import httpx

from router.simulator.replica import Replica


def body(*, stream: bool) -> dict[str, object]:
    messages = [{"role": "user", "content": "hello"}]
    return {"model": "tiny", "messages": messages, "stream": stream, "max_tokens": 8}


async def ask(replica: Replica, *, stream: bool = True, patience: float = 3.0) -> httpx.Response:
    async with httpx.AsyncClient(timeout=patience, trust_env=False) as http:
        url = replica.url + "/v1/chat/completions"
        return await http.post(url, json=body(stream=stream))


async def raw(replica: Replica) -> bytes:
    """All bytes of a streamed answer up to its end or cut."""
    payload = json.dumps(body(stream=True)).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", replica.port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    writer.write(head.encode() + payload)
    received = b""
    try:
        while chunk := await asyncio.wait_for(reader.read(4096), 0.3):
            received += chunk
    except (ConnectionError, TimeoutError):
        pass
    writer.close()
    return received
