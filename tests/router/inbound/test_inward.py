"""A request of the router's own: nothing of it reaches a client, and a long answer is none."""

from __future__ import annotations

from router.inbound.inward import LIMIT, InwardExchange


async def test_an_answer_is_kept() -> None:
    exchange = InwardExchange("/v1/chat/completions", [(b"x-a", b"b")], b"body")
    assert [exchange.answered, exchange.started, exchange.gone] == [None, False, False]
    assert await exchange.body(1) == b"body"
    assert [part async for part in exchange.chunks(1)] == [b"body"]
    await exchange.start(200, [(b"x-domicile-tier", b"small")])
    await exchange.write(b"on")
    await exchange.end(b"e")
    assert exchange.answered is not None
    assert exchange.answered.body == b"one"
    assert exchange.answered.headers[b"x-domicile-tier"] == b"small"


async def test_an_endless_answer_is_dropped() -> None:
    exchange = InwardExchange("/", [], b"")
    await exchange.start(200, [])
    for _ in range(3):
        await exchange.write(b"x" * LIMIT)
    assert exchange.answered is None
