"""More clients than anybody likes: idle streams, a storm of connects, clients that are slow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from router.audit.verify import verify
from tests.chaos import evidence
from tests.chaos.crowd import PATIENCE, Crowded, by_turns, crowded, descriptors, request

STREAMS = 2_000
CONNECTS = 3_000
A_STREAM = 0.25
"""MiB at most: a stream that waits holds no buffer of its own but its request."""
GARBAGE = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 40, b"GET\r\n\r\n", b"\xff")


async def settled(found: Crowded) -> dict[str, evidence.Trace]:
    """Stop the router: its log is whole, and every decision settled."""
    assert await found.end() == 0
    verdict = verify(found.folder / "log")
    assert verdict.ok, verdict.all_findings
    log = evidence.traces(found.folder / "log", found.logs)
    assert list(evidence.unsettled(log)) == []
    return log


async def held(found: Crowded, count: int) -> float:
    """Hold so many silent streams, ask meanwhile; gives the MiB that each took."""
    before, files = found.resident, found.open
    await found.streams(count)
    each = (found.resident - before) / count
    assert found.open >= 2 * count, "each with a connection on either side"
    answers = await found.ask(50)
    assert {one.status for one in answers} == {200}
    await found.leave(files)
    assert {one.status for one in await found.ask(5)} == {200}
    return each


@pytest.mark.slow
@pytest.mark.chaos
async def test_idle_streams_hold_little_and_others_are_answered(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    with descriptors(2 * STREAMS):
        async with crowded(tmp_path, free_port) as found:
            assert await held(found, STREAMS) < A_STREAM
            log = await settled(found)
    assert len(log) >= STREAMS + 55
    assert sum(one.status != "ok" for one in log.values()) == STREAMS, "each of who left"


@pytest.mark.slow
@pytest.mark.chaos
async def test_a_storm_of_connects_keeps_nobody_out(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    rng = random.Random(5)
    kinds = (b"", b"POST /v1/chat/comple", request("x", key="games")[:-5], *GARBAGE)
    refused = list[bytes]()

    with descriptors(CONNECTS):
        async with crowded(tmp_path, free_port) as found:
            before, files = found.resident, found.open

            async def one() -> None:
                data = rng.choice(kinds)
                reader = await found.connect(data)
                if data in GARBAGE[:3]:
                    refused.append(await reader.read())

            storm = asyncio.create_task(by_turns(CONNECTS, one))
            heard = await found.ask(100)
            await asyncio.wait_for(storm, PATIENCE)
            heard += await found.ask(20)
            assert {one.status for one in heard} == {200}
            assert (found.resident - before) / CONNECTS < 0.05
            await found.leave(files)
            log = await settled(found)
    assert {answer[:12] for answer in refused} == {b"HTTP/1.1 400"}
    assert {orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
            for answer in refused} == {"invalid_http"}  # fmt: skip
    assert {one.status for one in log.values()} == {"ok"}, "half a request is none"


@pytest.mark.chaos
async def test_a_slow_body_ends_at_its_deadline_and_frees_its_place(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    async with crowded(tmp_path, free_port) as found:
        late = request("slow", key="narrow", more="x-domicile-deadline: 400ms\r\n")
        reader = await found.connect(late[:-40])
        for byte in late[-40:-30]:
            await asyncio.sleep(0.02)
            found.writers[-1].write(bytes([byte]))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert head.startswith(b"HTTP/1.1 504")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        body = await asyncio.wait_for(reader.readexactly(length), PATIENCE)
        assert orjson.loads(body)["error"]["code"] == "deadline"
        again = await found.connect(request("next", key="narrow"))
        assert (await again.readline()).startswith(b"HTTP/1.1 200"), "its only place is free"
        log = await settled(found)
    assert {one.status for one in log.values()} == {"ok"}, "the slow one was never decided"


@pytest.mark.chaos
async def test_who_reads_no_stream_costs_little_and_ends_at_its_deadline(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    count = 20
    async with crowded(tmp_path, free_port) as found:
        before = found.resident
        for _ in range(count):
            asked = request("flood", stream=True, more="x-domicile-deadline: 3s\r\n")
            reader = await found.connect(asked)
            await reader.readline()
            found.writers[-1].transport.pause_reading()  # type: ignore[attr-defined]
        assert {one.status for one in await found.ask(20)} == {200}
        assert found.resident - before < 2.0 * count, "what nobody takes is not fetched"
        assert found.upstream.stdout is not None
        for _ in range(count):  # before a client hangs up
            line = await asyncio.wait_for(found.upstream.stdout.readline(), PATIENCE)
            assert int(line) < 64 << 20, "it is held back by the kernel's buffers"
        log = await settled(found)
    assert sum(one.status != "ok" for one in log.values()) == count
