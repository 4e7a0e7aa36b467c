"""Which bytes of a stream go out together: each write wakes the client; and how long that lasts."""

from __future__ import annotations

import asyncio

import pytest

from router.answers.frames import Frame
from router.inbound.exchange import Lines, lines
from router.opening import OpenedWhole
from router.relay import deliver
from tests.exchanges import FakeExchange, PromptExchange
from tests.rawserver import Line, now
from tests.router.test_relay import DONE, STOP, pass_on, token, upstream


class Writes(PromptExchange):
    """Tells what went out together: with the head, by itself, and with the end."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, bytes]] = []

    def begin(self, status: int, head: Lines, first: bytes) -> bool:
        more = super().begin(status, head, first)
        self.calls = [("begin", first)]
        return more

    def put(self, data: bytes) -> bool:
        self.calls.append(("put", data))
        return super().put(data)

    async def end(self, data: bytes = b"") -> None:
        self.calls.append(("end", data))
        await super().end(data)


async def test_the_first_bytes_go_out_with_the_head_and_the_last_ones_with_the_end() -> None:
    exchange, parts = Writes(), (token("a"), token("b"), STOP, DONE)

    async def say(line: Line) -> None:
        async with asyncio.timeout(20):
            for number, part in enumerate(parts, 1):
                await line.part(part)
                while len(exchange.calls) < number:  # noqa: ASYNC110 - a client tells nobody
                    await asyncio.sleep(0.001)
        await line.part(b"")

    async with upstream(say) as (server, transport):
        assert (await pass_on(exchange, server, transport)).complete
    assert exchange.calls == list(zip(("begin", "put", "put", "end"), parts, strict=True))
    assert exchange.sent == b"".join(parts)


@pytest.mark.parametrize("kind", [FakeExchange, PromptExchange])
async def test_who_takes_no_whole_answer_does_not_outlive_the_deadline(
    kind: type[FakeExchange],
) -> None:
    exchange = kind()
    exchange.gate.clear()
    opened = OpenedWhole(200, (), Frame(b"{}", content=True))
    async with asyncio.timeout(3):
        done = await deliver(exchange, opened, lines([]), now() - 0.8)
    assert (done.complete, done.failure) == (False, "client_stalled")
