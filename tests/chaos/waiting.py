"""Connections that wait in a worker's socket when it is closed or turned away.

    python -m tests.chaos.waiting closed|shut MADE

Two workers' sockets share an address; MADE connections wait in them, nobody has accepted one. One
socket goes as a supervisor lets it go, the other one answers whoever waits in it. Prints how many
were answered and how many were reset.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from router.server import bind
from router.supervisor.slot import Slot

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def asked(made: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether one that waited is answered."""
    reader, writer = made
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await writer.drain()
        return await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    except ConnectionError:
        return False
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What the worker that is left does."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    writer.close()


async def main(how: str, count: int) -> None:
    """See the top of the file."""
    left = bind(("127.0.0.1", 0), "listen", shared=True)
    host, port = left.getsockname()[:2]

    def door(listens: bool) -> socket.socket:
        return bind((host, port), "listen", shared=True, listens=listens)

    slot = Slot(1, "eu-1.w1", door, door(True))
    made = [await asyncio.open_connection(host, port) for _ in range(count)]
    slot.shut() if how == "closed" else slot.turn_away()
    serving = await asyncio.start_server(answer, sock=left)
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*map(asked, made))
    serving.close()
    sys.stdout.write(f"{sum(answers)} {count - sum(answers)}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
