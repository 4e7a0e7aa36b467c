"""Neighbours of the reports on failover: what must not be held against an endpoint that is well."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from router.config import Limits
from router.providers.base import Target
from router.transport.client import HttpTransport
from router.transport.messages import (
    AnswerTimeout,
    ConnectFailed,
    Origin,
    OutboundRequest,
    Timeouts,
)
from tests.rawserver import ask, hang, now, served, within
from tests.router.crowd import settle_for
from tests.router.house import House, Plan, house
from tests.router.scripted import (
    DONE,
    Reply,
    answer,
    event,
    lost,
    refused,
    scripted,
    stream,
)
from tests.router.wire import Answered, request, say

LONG = (
    b'{"model":"assistant","messages":[{"role":"user","content":"hi"}],"max_tokens":900,'
    b'"stream":%b}'
)


async def hurried(found: House, stream: bool, deadline: bytes) -> Answered:
    body = LONG % (b"true" if stream else b"false")
    return await say(found, request(body, b"x-domicile-deadline: " + deadline))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_clients_short_deadline_takes_no_endpoint_out(tmp_path: Path, stream: bool) -> None:
    """One client in a hurry would else mark every replica, for everybody, again and again."""
    async with house(tmp_path) as found:
        live = found.router.live
        for deadline in (b"1ms", b"10ms", b"40ms", b"150ms", b"300ms"):
            done = await asyncio.gather(*(hurried(found, stream, deadline) for _ in range(4)))
            assert {(one.status, one.code) for one in done} <= {(504, "deadline"), (200, "ok")}
            assert stream or {one.status for one in done} == {504}
            assert live.health.marked(live.loop_time()) == ()
            begun = [one.body for one in done if one.status == 200]
            assert all(b'"reason":"deadline"' in one for one in begun)
        assert (await say(found, request())).status == 200
        assert live.inflight.keys == ()


async def test_only_its_own_limit_says_something_of_an_endpoint() -> None:
    async with served(hang) as (server, transport):
        for times, told in ((within(0.1), True), (within(5, first_byte=0.1), False)):
            with pytest.raises(AnswerTimeout) as caught:
                await transport.send(ask(server), times)
            assert caught.value.hurried is told


@pytest.mark.parametrize(("deadline", "connect", "told"), [(0.1, 5.0, True), (5.0, 0.1, False)])
async def test_nor_does_a_connection_that_was_given_no_time(
    deadline: float, connect: float, told: bool
) -> None:
    class Slow:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await asyncio.sleep(9)
            return []

    transport = HttpTransport(Slow())
    asked = OutboundRequest(Origin("http", "slow.example", 80), "POST", "/v1/x", ())
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(asked, Timeouts(now() + deadline, connect))
    assert (caught.value.reason, caught.value.hurried) == ("timeout", told)
    await transport.close()


def cut(status: int | None = None) -> Reply:
    """A stream that begins and breaks off, with an error of a status or without a word."""
    if status is None:
        return stream(event(content="a"), lost())
    told = {"message": "no", "type": "x", "code": status}
    return stream(event(content="a"), b"data: " + json.dumps({"error": told}).encode() + b"\n\n")


@pytest.mark.parametrize("status", [None, 500, 503])
async def test_who_cuts_every_stream_is_asked_for_no_more(
    tmp_path: Path, status: int | None
) -> None:
    """Each begins well, and would else be taken for a recovery from the one before."""

    def script(host: str, number: int) -> Reply:
        return cut(status) if host == "fra1" else stream(event(content="b"), DONE)

    async with scripted(tmp_path, script) as world:
        done = [await world.ask(stream=True) for _ in range(12)]
        broken = [one for one in done if b'"incomplete"' in one.written]
        assert len(broken) == 3
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ("fra1",)


@pytest.mark.parametrize("status", [400, 413, 429])
async def test_a_stream_that_ends_for_its_own_content_marks_nobody(
    tmp_path: Path, status: int
) -> None:
    async with scripted(tmp_path, lambda h, n: cut(status)) as world:
        for _ in range(12):
            assert b'"incomplete"' in (await world.ask(stream=True)).written
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()


SHORT = Limits.model_validate({"queue": "4s", "deadline": "8s", "first_token": "2s"})


@pytest.mark.parametrize("stream_", [False, True])
async def test_who_waited_while_a_fleet_moved_is_sent_to_where_it_is(
    tmp_path: Path, stream_: bool
) -> None:
    """As a rolling update does: of the replicas that were there when it came, none is left."""

    def script(host: str, number: int) -> Reply | Exception:
        if not host.startswith("new"):
            return refused()
        return stream(event(content="b"), DONE) if stream_ else answer()

    async with scripted(tmp_path, script, Plan(limits=SHORT)) as world:
        live = world.router.live
        one = {"capacity_requests": "1"}
        settle_for(world, fra1=one, par1=one)
        held = [live.inflight.enter(key, 1) for key in ("fra1", "par1")]
        waiting = [asyncio.create_task(world.ask(stream=stream_)) for _ in range(4)]
        await asyncio.sleep(0.1)
        moved = {
            name: {f"{name}/new": Target(f"http://new-{name}:80")} for name in ("fra1", "par1")
        }
        live.snapshot = replace(live.snapshot, targets={**live.snapshot.targets, **moved})
        for place in held:
            place.close()
        assert {one.status for one in await asyncio.gather(*waiting)} == {200}
        assert {one.origin.host for one in world.transport.sent} <= {"new-fra1", "new-par1"}
        assert live.inflight.keys == ()


async def test_nor_is_a_replica_that_is_gone_asked_after_another_failed(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda h, n: answer()) as world:
        live = world.router.live

        def script(host: str, number: int) -> Reply | Exception:
            if host == "fra1":  # while it is asked, the other one moves
                moved = {"par1": {"par1/new": Target("http://new:80")}}
                live.snapshot = replace(live.snapshot, targets={**live.snapshot.targets, **moved})
                return refused()
            return answer() if host == "new" else refused()

        world.transport._script = script
        assert (await world.ask()).status == 200
        assert [one.origin.host for one in world.transport.sent] == ["fra1", "new"]
