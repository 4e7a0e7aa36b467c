"""Reports on shared state, metrics, memory, retries and timeouts of `reports-d.yaml`."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest
from redis import RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncCluster

from router.server import bind
from router.state.ledger import Bucket, Full, Seats, Take
from router.state.opening import to_redis
from router.state.shared import Scripts, SharedLedger
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from tests.cases.built import BASELINE, Files, built, outcomes
from tests.cases.built import until as eventually
from tests.router.house import house
from tests.router.scripted import (
    DONE,
    SSE,
    Reply,
    answer,
    event,
    scripted,
    stream,
)
from tests.router.wire import Wire, request

OPEN = Seats("concurrency", "t/open", 10)
TOKENS = Bucket("tokens", "t/tokens", 100, 60)
REQUESTS = Bucket("requests", "t/requests", 100, 60)


def well(host: str, number: int) -> Reply:
    return answer()


# -- limits ------------------------------------------------------------------------------------


async def test_limits_04_a_decision_is_one_script_on_a_cluster_too(cluster: int) -> None:
    client = cast("AsyncCluster", to_redis(f"redis+cluster://127.0.0.1:{cluster}"))
    ledger = SharedLedger(cast("Scripts", client), time.monotonic, 0.5, timeout=5.0)
    for number in range(30):  # tenants all over the slots
        keys = f"tenant-{number}"
        takes = [Take(replace(one, key=f"{keys}/{one.name}"), 60) for one in (TOKENS, REQUESTS)]
        seats = [replace(OPEN, key=f"{keys}/open"), replace(OPEN, key=f"{keys}/key:a")]
        await ledger.take(takes, seats, "lease")
        with pytest.raises(Full):
            await ledger.take(takes, seats, "other")
        ledger.settle([replace(one, amount=-60) for one in takes])
        ledger.leave(seats, "lease")
        await ledger.close()
        await ledger.take(takes, seats, "again")
    assert ledger.degraded == ""
    await client.aclose()
    with RedisCluster(host="127.0.0.1", port=cluster) as looking:
        held = [len(looking.keys(target_nodes=node)) for node in looking.get_primaries()]
    assert all(held), held


async def test_limits_06_without_redis_each_replica_allows_its_stated_share() -> None:
    gone = cast("AsyncRedis", to_redis("redis://127.0.0.1:1"))
    replicas = [
        SharedLedger(cast("Scripts", gone), time.monotonic, 0.5, timeout=0.5) for _ in range(2)
    ]
    allowed = 0
    for one in replicas:
        for number in range(20):
            try:
                await one.take([], [OPEN], str(number))
            except Full:
                continue
            allowed += 1
        assert "limits are local" in one.degraded
    await gone.aclose()
    assert allowed == 10  # of one limit of 10, not of one for each


async def test_limits_07_a_redis_that_never_answers_costs_one_timeout_and_is_told() -> None:
    asked = 0

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = cast("AsyncRedis", to_redis(f"redis://127.0.0.1:{port}"))
    ledger = SharedLedger(cast("Scripts", client), lambda: 0.0, 0.5, timeout=0.025)
    for number in range(200):
        await ledger.take([Take(replace(TOKENS, limit=10_000), 1)], [], str(number))
    assert "redis" in ledger.degraded
    assert asked == 1  # one waited for the timeout; while the breaker is open nobody does
    await ledger.close()
    await client.aclose()
    server.close()
    await server.wait_closed()


# -- retries -----------------------------------------------------------------------------------


async def test_retries_02_a_repeated_key_is_carried_out_once_while_the_first_runs(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    async with scripted(tmp_path, well) as world:
        send = world.transport.send

        async def held(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            if request.method == "POST":
                await gate.wait()
            return await send(request, timeouts)

        world.transport.send = held  # type: ignore[method-assign]
        key = ((b"idempotency-key", b"order-1"),)
        first = asyncio.create_task(world.ask(headers=key))
        plain = [asyncio.create_task(world.ask()) for _ in range(2)]
        await asyncio.sleep(0.05)
        second = await world.ask(headers=key)
        assert (second.status, second.code) == (409, "idempotency_in_flight")
        gate.set()
        done = await first
        again = await world.ask(headers=key)
        assert (again.written, again.sent["x-domicile-replayed"]) == (done.written, "true")
        await asyncio.gather(*plain)
        assert len(world.transport.sent) == 3  # one for the key, and each of those without
    ran = [one for one in outcomes(tmp_path) if one.get("status") != "replayed"]
    assert len(ran) == 3


async def test_retries_04_all_attempts_share_one_deadline(tmp_path: Path) -> None:
    async with house(tmp_path) as found:
        for region in ("fra1", "par1"):
            found.fleet[region].freeze()
        headers = {"authorization": "Bearer dom-eu", "x-domicile-deadline": "700ms"}
        body = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}]}
        began = time.monotonic()
        async with httpx.AsyncClient(timeout=20) as client:
            url = f"{found.url}/v1/chat/completions"
            done = await client.post(url, json=body, headers=headers)
        assert done.status_code == 504
        # One attempt alone may take 4 s here.
        assert time.monotonic() - began < 3.9


# -- timeouts ----------------------------------------------------------------------------------


async def test_timeouts_02_a_long_answer_has_its_time_and_the_docs_say_what_cuts_it(
    tmp_path: Path,
) -> None:
    slow = BASELINE.replace(
        "assistant: {tiers:", "assistant: {timeouts: {answer: 12m, first_token: 3m}, tiers:"
    )
    async with built(tmp_path, well, Files(baseline=slow)) as world:
        assert (await world.ask("eu")).code == "ok"
        assert world.transport.given[0].first_byte == 720
    told = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    assert "Long answers that are no stream" in told


async def test_timeouts_03_what_a_client_has_given_up_on_ends(tmp_path: Path) -> None:
    """A half-open client: it neither reads nor closes. Its deadline ends the work."""
    async with house(tmp_path) as found:
        for region in ("fra1", "par1"):
            found.fleet[region].freeze()
        wire = await Wire.to(found)
        raw = request().replace(b"\r\n\r\n", b"\r\nx-domicile-deadline: 400ms\r\n\r\n", 1)
        await wire.send(raw)
        async with asyncio.timeout(3):
            await eventually(lambda: found.router.live.concurrency.total)
            await eventually(lambda: not found.router.live.concurrency.total)
        await wire.close()
    with bind(("127.0.0.1", 0), "listen") as door, socket.create_connection(door.getsockname()):
        accepted, _ = door.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 90_000


@pytest.mark.parametrize(
    ("model", "wait"), [("{timeouts: {first_token: 150ms},", 0.15), ("{", 2.0)]
)
async def test_timeouts_04_a_model_has_its_own_up_to_the_requests_deadline(
    tmp_path: Path, model: str, wait: float
) -> None:
    def script(host: str, number: int) -> Reply:
        return stream(event(content="x"), DONE)

    text = BASELINE.replace("assistant: {", f"assistant: {model} ")
    async with built(tmp_path, script, Files(baseline=text)) as world:
        assert (await world.ask("eu", stream=True)).code == "ok"
        assert world.transport.given[0].first_byte == pytest.approx(wait)


@pytest.mark.parametrize(("model", "wait"), [("{timeouts: {idle: 150ms},", 0.15), ("{", 2.0)])
async def test_timeouts_04_a_model_has_its_own_between_pieces(
    tmp_path: Path, model: str, wait: float
) -> None:
    class Timed(Reply):
        async def chunk(self, until: float) -> bytes:
            waits.append(until - asyncio.get_running_loop().time())
            return await super().chunk(until)

    def script(host: str, number: int) -> Reply:
        return Timed(200, SSE, [event(content="x"), event(content="y"), DONE])

    waits: list[float] = []
    text = BASELINE.replace("assistant: {", f"assistant: {model} ")
    async with built(tmp_path, script, Files(baseline=text)) as world:
        assert (await world.ask("eu", stream=True)).code == "ok"
    assert waits[1] == pytest.approx(wait, abs=0.05)
