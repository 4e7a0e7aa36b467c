"""A model server that begins streams and falls silent, or never stops: in a process of its own.

python -m tests.chaos.silent

The first line on the output are its ports: the router opens 1,024 connections to one at most. A
question with `hush` in it gets one chunk and then nothing; `flood` gets chunks as long as somebody
takes them, and a line on the output says how many bytes were taken when nobody does any more; any
other is answered at once.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from tests.rawserver import Line

BACKLOG = 4096
PORTS = 32
_CHUNK = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":'
    b'[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n'
)
FIRST, MUCH = _CHUNK % b"a", _CHUNK % (b"a" * 60_000)
WHOLE = (
    b'{"id":"1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)


async def flooded(line: Line) -> None:
    """Chunks without an end."""
    taken = 0
    try:
        while True:
            await line.part(MUCH)
            taken += len(MUCH)
    finally:
        sys.stdout.write(f"{taken}\n")
        sys.stdout.flush()


async def answer(line: Line) -> None:
    """Answer one request after the other."""
    while True:
        asked = await line.request()
        if not asked.startswith(b"POST"):
            await line.json(b"{}")
        elif b"hush" in asked or b"flood" in asked:
            await line.stream_head()
            await line.part(FIRST)
            if b"flood" in asked:
                await flooded(line)
            await line.reader.read()
            return
        else:
            await line.json(WHOLE)


async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection."""
    try:
        await answer(Line(0, reader, writer))
    except (asyncio.IncompleteReadError, ConnectionError):
        return  # the router has closed it
    finally:
        writer.close()


async def serve() -> None:
    """Serve until killed."""
    servers = [
        await asyncio.start_server(taken, "127.0.0.1", 0, backlog=BACKLOG) for _ in range(PORTS)
    ]
    ports = [str(server.sockets[0].getsockname()[1]) for server in servers]
    sys.stdout.write(" ".join(ports) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
