"""More clients than the process has file descriptors for: told so, and nobody else hurt by it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from router.transport.messages import NoRoomHere
from router.transport.room import CLIENTS
from tests.cases.built import built, outcomes
from tests.router.house import house
from tests.router.scripted import Reply, answer, failure
from tests.router.wire import Answered, Wire, request


async def asked(wire: Wire) -> Answered:
    await wire.send(request())
    async with asyncio.timeout(20):
        return await wire.answer()


async def test_who_comes_when_nearly_all_are_taken_is_told_so_and_the_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_now = 0

    def few(number: int, kept: int) -> bool:
        nonlocal open_now
        open_now += kept == CLIENTS
        return open_now <= 10 or kept < CLIENTS

    async with house(tmp_path) as found:
        monkeypatch.setattr("router.inbound.crowded.has_room", few)
        inside = [await Wire.to(found) for _ in range(10)]
        for wire in inside:
            assert (await asked(wire)).status == 200
        for number in range(10):
            wire = await Wire.to(found)
            if number % 2:  # it may have asked already, or ask while it is told
                await wire.send(request())
            async with asyncio.timeout(10):
                refused = await wire.answer()
                assert (refused.status, refused.code) == (503, "overloaded")
                assert b"\r\nretry-after: 1\r\n" in refused.head
                with contextlib.suppress(ConnectionResetError):  # what it asked is unread
                    assert await wire.reader.read(-1) == b""
            await wire.close()
        for wire in inside:
            assert (await asked(wire)).status == 200
            await wire.close()
        monkeypatch.undo()
        late = await Wire.to(found)
        assert (await asked(late)).status == 200
        await late.close()
        live = found.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert "internal" not in live.notes


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_finds_no_descriptor_is_no_fault_of_an_endpoint(
    tmp_path: Path, stream: bool
) -> None:
    full = True

    def script(host: str, number: int) -> Reply | Exception:
        return NoRoomHere("full") if full else answer()

    async with built(tmp_path, script) as world:
        for _ in range(4):
            done = await world.ask("eu", stream=stream)
            assert (done.status, done.code) == (503, "overloaded")
            assert (done.sent["retry-after"], done.sent["x-should-retry"]) == ("1", "true")
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert "internal" not in live.notes
        full = False
        assert (await world.ask("eu")).status == 200
        assert live.inflight.keys == ()
    assert [one["status"] for one in outcomes(tmp_path)] == ["overloaded"] * 4 + ["ok"]
    said = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(said, list)
    assert {one["result"] for one in said} == {"no_room_here"}


async def test_beside_an_endpoint_that_is_full_it_is_a_time_to_come_again(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply | Exception:
        return NoRoomHere("full") if host == "fra1" else failure(429, retry_after="7")

    async with built(tmp_path, script) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (503, "upstream_unavailable")
        assert 1 <= int(done.sent["retry-after"]) <= 7
