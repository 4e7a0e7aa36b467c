"""Errors before an answer are JSON, after its start an event; never bytes after the client left."""

from __future__ import annotations

import json
from pathlib import Path

from router.errors import RequestError
from router.surfaces.chat import ChatCompletions
from router.surfaces.errors import error_event, send_error
from router.types import Arrival, Purpose
from tests.router.house import Plan, snapshot
from tests.router.scripted import FakeExchange


def arrival(exchange: FakeExchange, folder: Path) -> Arrival:
    shot = snapshot(Plan(), {}, folder)
    surface = ChatCompletions()
    return Arrival(exchange, "req-1", 0, 0, 1, surface, Purpose.INTERACTIVE, shot)


async def test_json_with_headers(tmp_path: Path) -> None:
    exchange = FakeExchange(b"", [])
    error = RequestError("rate_limit", "slow down", retry_after=1.2, headers={"x-more": "1"})
    await send_error(arrival(exchange, tmp_path), error, "log/1/ab")
    assert exchange.status == 429
    assert exchange.sent["retry-after"] == "2"
    assert exchange.sent["x-more"] == "1"
    assert exchange.sent["x-domicile-record"] == "log/1/ab"
    assert exchange.sent["x-should-retry"] == "true"
    assert json.loads(exchange.written)["error"]["record"] == "log/1/ab"


async def test_an_event_when_the_stream_has_begun(tmp_path: Path) -> None:
    exchange = FakeExchange(b"", [])
    await exchange.start(200, [])
    await send_error(arrival(exchange, tmp_path), RequestError("internal", "x"), None)
    assert exchange.written.startswith(b"data: ")
    assert exchange.ended


async def test_nothing_for_a_client_that_left(tmp_path: Path) -> None:
    exchange = FakeExchange(b"", [])
    exchange.leave()
    await send_error(arrival(exchange, tmp_path), RequestError("internal", "x"), None)
    assert exchange.status == 0


def test_each_surface_has_its_own_event() -> None:
    assert error_event("messages")("x").startswith(b"event: error\n")
    assert error_event("chat.completions")("x").startswith(b"data: ")
