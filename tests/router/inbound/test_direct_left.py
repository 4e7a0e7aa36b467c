"""Who has left is let go of at once, by either adapter."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from router.errors import ClientGone
from router.inbound.direct_exchange import DirectExchange
from router.inbound.door import Door
from router.inbound.exchange import Exchange, while_connected
from tests.garbage import let_go
from tests.router.adapters import HEAD, serving


@pytest.mark.parametrize("kind", ["asgi", "direct"])
@pytest.mark.parametrize("when", ["answered", "within the answer", "before it", "behind another"])
async def test_who_has_left_is_kept_by_nothing(kind: str, when: str) -> None:
    """A connection and its last request would keep each other, until the collector came by."""

    async def route(exchange: Exchange) -> None:
        await exchange.body(1000)
        if when == "before it":
            with suppress(ClientGone):
                async with while_connected(exchange):
                    await asyncio.sleep(30)
            return
        exchange.on_gone(lambda: None)
        await exchange.start(200, [(b"content-type", b"text/event-stream")])
        await exchange.write(b"more")
        while when != "answered" and not exchange.gone:
            await asyncio.sleep(0.01)
            await exchange.write(b"more")
        await exchange.end()

    async with serving(route, kind) as port, let_go(Door, DirectExchange, RequestResponseCycle):
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            count = 2 if when == "behind another" else 1
            writer.write((HEAD + b"content-length: 0\r\n\r\n") * count)
            if when == "before it":
                await asyncio.sleep(0.05)
            else:
                await reader.readuntil(b"0\r\n\r\n" if when == "answered" else b"more")
            writer.transport.abort()
