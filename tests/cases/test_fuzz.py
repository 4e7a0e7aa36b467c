"""Whatever is sent, the answer has a code, the boundary holds, and nothing stays open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.errors import ANSWERS
from router.watch.probe import PROMPT
from tests.cases.built import Files, built
from tests.router.house import House, house
from tests.router.scripted import FakeExchange, Scripted, answer
from tests.router.wire import ASK, Wire, request, say

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


class Running:
    """Something that runs on its own event loop, for tests that are no coroutines."""

    def __init__(self, runner: asyncio.Runner, stack: AsyncExitStack) -> None:
        self.runner = runner
        self.stack = stack


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        runner.run(stack.__aenter__())
        yield Running(runner, stack)
        runner.run(stack.aclose())


@pytest.fixture(scope="module")
def world(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    folder = tmp_path_factory.mktemp("world")
    made = built(folder, lambda host, number: answer(), Files())
    return running.runner.run(running.stack.enter_async_context(made))


@pytest.fixture(scope="module")
def found(running: Running, tmp_path_factory: pytest.TempPathFactory) -> House:
    made = house(tmp_path_factory.mktemp("house"))
    return running.runner.run(running.stack.enter_async_context(made))


LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False)
    | st.text(max_size=12) | st.sampled_from(["function", "text", "https://x.example/a", "user"])
)  # fmt: skip
NAMES = st.text(max_size=8) | st.sampled_from(
    ["type", "role", "content", "image_url", "url", "function", "name", "file_id", "region",
     "domicile-attr-data_class", "parameters", "strict"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["messages", "tools", "tool_choice", "metadata", "response_format", "stream", "stream_options",
     "max_tokens", "store", "user", "n", "stop", "modalities", "audio", "prediction", "web_search",
     "region", "api_base", "provider", "service_tier", "reasoning_effort", "unheard_of"]
)  # fmt: skip


@BOUNDED
@given(
    st.dictionaries(FIELDS, VALUES, max_size=5),
    st.sampled_from(["assistant", "outside", "openai", "claude", "sonnet", "other"]),
)
def test_any_body(running: Running, world: Scripted, body: dict[str, object], model: str) -> None:
    whole = {"messages": [{"role": "user", "content": "hi"}], **body, "model": model}
    exchange = FakeExchange(
        json.dumps(whole).encode("utf-8", "replace"), [(b"authorization", b"Bearer dom-eu")]
    )
    before = len(world.transport.sent)
    running.runner.run(world.run(exchange))
    assert exchange.status
    assert exchange.code == "ok" or exchange.code in ANSWERS
    assert exchange.code != "internal"
    sent = world.transport.sent[before:]
    hosts = {one.origin.host for one in sent if PROMPT.encode() not in one.body}  # no canary's
    assert not hosts & {"iad1", "api.openai.com", "eu.api.openai.com"}
    assert world.router.live.concurrency.total == 0
    assert world.router.live.inflight.keys == ()


@BOUNDED
@given(st.binary(max_size=200))
def test_any_bytes_as_a_body(running: Running, world: Scripted, raw: bytes) -> None:
    exchange = FakeExchange(raw, [(b"authorization", b"Bearer dom-eu")])
    running.runner.run(world.run(exchange))
    assert exchange.status in (400, 403, 404)
    assert exchange.code in ANSWERS


@BOUNDED
@given(st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=6)), max_size=4), st.booleans())
def test_a_request_with_bytes_changed(
    running: Running, found: House, changes: list[tuple[int, bytes]], cut: bool
) -> None:
    """On the wire: every answer is a coded one, or the connection ends; then all is as before."""
    data = bytearray(request())
    for at, piece in changes:
        at %= len(data)
        data[at : at + (0 if cut else len(piece))] = piece

    async def sent() -> None:
        wire = await Wire.to(found)
        try:
            await wire.send(bytes(data))
            wire.writer.write_eof()
            async with asyncio.timeout(10):
                answered = await wire.answer()
        finally:
            await wire.close()
        if answered.status:
            assert answered.code == "ok" or answered.code in ANSWERS
            assert answered.code != "internal"

    running.runner.run(sent())
    assert running.runner.run(say(found, request(ASK))).status == 200
    assert found.hits("self:iad1") == 0
