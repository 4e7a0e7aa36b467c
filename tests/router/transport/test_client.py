"""The transport as a whole."""

from __future__ import annotations

import asyncio

import pytest

from router.transport.client import HttpTransport
from router.transport.messages import (
    Aborted,
    AnswerTimeout,
    ConnectFailed,
    Fate,
    Origin,
    OutboundRequest,
    TransportError,
    UnsafeRequest,
)
from tests.rawserver import (
    RawServer,
    ask,
    echo,
    hang,
    now,
    saying,
    served,
    whole,
    within,
)


async def test_a_passed_deadline_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        await whole(await transport.send(ask(server), within(5)))
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(ask(server), within(-1))
        assert caught.value.fate is Fate.NOT_SENT


async def test_one_deadline_bounds_all_attempts() -> None:
    """retries-04: each attempt must not get the whole time anew."""
    async with served(hang) as (server, transport):
        times = within(0.3)
        began = now()
        for _ in range(3):
            with pytest.raises((AnswerTimeout, ConnectFailed)):
                await transport.send(ask(server), times)
        assert now() - began < 1
        assert len(server.lines) == 1


async def test_close_waits_for_answers_but_not_for_ever() -> None:
    async with RawServer(hang) as server:
        transport = HttpTransport()
        task = asyncio.create_task(transport.send(ask(server), within(60)))
        await asyncio.sleep(0.02)
        began = now()
        await transport.close(grace=0.1)
        assert 0.05 < now() - began < 1
        with pytest.raises(Aborted):
            await task
        with pytest.raises(ConnectFailed):
            await transport.send(ask(server), within(5))


async def test_redirects_are_not_followed() -> None:
    answer = (
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\n"
        b"content-length: 0\r\n\r\n"
    )
    async with served(saying(answer)) as (server, transport):
        response = await transport.send(ask(server), within(5))
        assert (response.status, await whole(response)) == (307, b"")
        assert len(server.lines) == 1


async def test_a_foreign_host_header_sends_nothing() -> None:
    async with served(echo) as (server, transport):
        request = OutboundRequest(
            Origin("http", "127.0.0.1", server.port), "POST", "/", ((b"Host", b"evil.example"),)
        )
        with pytest.raises(UnsafeRequest):
            await transport.send(request, within(5))
        assert server.lines == []


async def test_errors_name_no_path() -> None:
    """security-09: a key can be part of an URL."""
    async with served(hang) as (server, transport):
        origin = Origin("http", "127.0.0.1", server.port)
        request = OutboundRequest(origin, "POST", "/x?key=SECRET", ((b"a", b"SECRET"),), b"SECRET")
        with pytest.raises(TransportError) as caught:
            await transport.send(request, within(0.1))
        assert "SECRET" not in repr(caught.value)
