"""A client that writes its own bytes, for requests that no library would send."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.router.house import KEYS, House

CHAT = b"POST /v1/chat/completions HTTP/1.1"
ASK = b'{"model":"assistant","messages":[{"role":"user","content":"hi"}],"max_tokens":3}'


@dataclass(frozen=True)
class Answered:
    """One answer off the wire; status 0 when the connection ended without one."""

    status: int
    head: bytes = b""
    body: bytes = b""

    @property
    def code(self) -> str:
        """The error's code, after a look at its whole shape; `ok` for a success."""
        if self.status == 200:
            return "ok"
        assert b"\r\ncontent-type: application/json\r\n" in self.head.lower() + b"\r\n", self
        error = json.loads(self.body)["error"]
        assert set(error) >= {"message", "type", "param", "code"}
        assert all(isinstance(error[name], str) for name in ("message", "type", "code"))
        return str(error["code"])


def request(
    body: bytes = ASK,
    *fields: bytes,
    line: bytes = CHAT,
    key: bytes = KEYS["eu"].encode(),
    length: bytes | None = None,
) -> bytes:
    """The bytes of a request; `length` overrides content-length, `-` leaves it out."""
    head = [line, b"host: x", b"authorization: Bearer " + key, *fields]
    if length != b"-":
        head.append(b"content-length: " + (b"%d" % len(body) if length is None else length))
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Wire:
    """One open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, house: House) -> Wire:
        """Connect to a house's public port."""
        port = urlsplit(house.url).port
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))

    async def send(self, data: bytes) -> None:
        """Write; a peer that has closed already may still have answered."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            pass

    async def answer(self) -> Answered:
        """Read one answer: by content-length, chunks, or to the end."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return Answered(0)
        status = int(head.split(b" ", 2)[1])
        fields = dict(
            row.lower().split(b": ", 1) for row in head.strip().split(b"\r\n")[1:] if b": " in row
        )
        if status == 100:
            return await self.answer()
        if b"content-length" in fields:
            body = await self.reader.readexactly(int(fields[b"content-length"]))
        elif fields.get(b"transfer-encoding") == b"chunked":
            body = await self._chunks()
        else:
            body = await self.reader.read(-1)
        return Answered(status, head, body)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self.reader.readline(), 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return b"".join(parts)

    async def close(self) -> None:
        """Hang up."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


async def say(house: House, data: bytes) -> Answered:
    """One connection, one request, one answer."""
    wire = await Wire.to(house)
    try:
        await wire.send(data)
        async with asyncio.timeout(20):
            return await wire.answer()
    finally:
        await wire.close()
