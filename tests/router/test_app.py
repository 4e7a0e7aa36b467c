"""A whole router over a simulated fleet: real sockets, real log, real transport."""

from __future__ import annotations

import os
from base64 import b32hexdecode
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import RFC_4122, UUID

import httpx
import pytest

from router.audit.layout import Folder
from router.audit.openings import Opening, read
from router.audit.verify import verify
from router.config import Peer
from router.ids import Ids
from router.simulator.faults import Fault, Kind
from router.state.answers import NoAnswers
from router.state.memory import MemoryLedger
from tests.cases.built import built, until
from tests.router.house import KEYS, House, Plan, house
from tests.router.scripted import answer

PATH = "/v1/chat/completions"
BODY: dict[str, object] = {
    "model": "assistant",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 6,
}


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as found:
        yield found


async def ask(
    found: House, tenant: str = "eu", body: object = None, **headers: str
) -> httpx.Response:
    async with httpx.AsyncClient(base_url=found.url, timeout=20, trust_env=False) as client:
        sent = {"authorization": f"Bearer {KEYS[tenant]}", **headers}
        return await client.post(PATH, headers=sent, json=BODY if body is None else body)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def test_an_answer_with_its_receipt(running: House) -> None:
    response = await ask(running)
    assert response.status_code == 200
    assert response.json()["model"] == "assistant"
    headers = response.headers
    assert headers["x-domicile-region"] == "self:fra1"
    assert headers["x-domicile-endpoint"] == "fra1"
    assert headers["x-domicile-attempts"] == "1"
    log, index, leaf = headers["x-domicile-record"].split("/")
    assert log == "eu-1"
    async with httpx.AsyncClient(base_url=running.url, trust_env=False) as client:
        own = {"authorization": f"Bearer {KEYS['eu']}"}
        record = (await client.get(f"/domicile/v1/records/{log}/{index}", headers=own)).json()
        assert record["leaf"] == leaf
        assert record["body"]["plan"] == ["fra1", "par1"]
        other = {"authorization": f"Bearer {KEYS['world']}"}
        foreign = await client.get(f"/domicile/v1/records/{log}/{index}", headers=other)
        assert foreign.status_code == 404


async def test_a_stream(running: House) -> None:
    response = await ask(running, body={**BODY, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("data: [DONE]\n\n")
    assert '"model":"assistant"' in response.text
    assert "tiny" not in response.text


async def test_a_failed_region_is_replaced_inside_the_boundary(running: House) -> None:
    running.fleet["fra1"].fail(Fault(Kind.STATUS, status=503))
    response = await ask(running)
    assert response.headers["x-domicile-region"] == "self:par1"
    assert response.headers["x-domicile-attempts"] == "2"
    assert running.hits("self:iad1") == 0


async def test_when_only_endpoints_outside_live_it_is_503(running: House) -> None:
    for region in ("fra1", "par1"):
        running.fleet[region].fail(Fault(Kind.STATUS, status=503))
    response = await ask(running)
    assert code(response) == (503, "upstream_unavailable")
    assert "retry-after" in response.headers
    assert running.hits("self:iad1") == 0
    reasons = response.json()["error"]["reasons"]
    assert {"endpoint": "iad1", "excluded": ["process_outside"]} in reasons


async def test_no_grant_is_refused(running: House) -> None:
    assert code(await ask(running, "nobody")) == (403, "no_grant")


async def test_a_tenant_of_elsewhere_is_sent_home(tmp_path: Path) -> None:
    peers = (Peer(region="self:iad1", url="https://us.example.com"),)
    async with house(tmp_path, Plan(peers=peers)) as found:
        response = await ask(found, "us", body="x" * 100)
        assert code(response) == (421, "misdirected")
        assert response.headers["location"] == "https://us.example.com"
        assert sum(len(r.seen) for r in found.fleet) == 0


async def test_the_log_verifies_and_holds_no_prompt(tmp_path: Path) -> None:
    canary = "canary-7f3a"
    async with house(tmp_path) as found:
        body = {**BODY, "messages": [{"role": "user", "content": canary}], "user": canary}
        await ask(found, body=body)
        await ask(found, body={**body, "model": canary})
        found.fleet["fra1"].fail(Fault(Kind.STATUS, status=400, error=canary))
        await ask(found, body=body, **{"x-request-id": canary, "user-agent": canary})
    assert verify(tmp_path / "log").ok
    side = Folder(tmp_path / "log").log("eu-1").openings
    files = [path for path in (tmp_path / "log").rglob("*") if path.is_file()]
    assert side in files
    for path in files:
        assert path == side or canary.encode() not in path.read_bytes()
    # Beside the log, to be erased: the name of a model that nobody serves, and nothing else.
    told = [one for one in read(side) if canary in str(one)]
    assert [(one.name, one.value) for one in told if isinstance(one, Opening)] == [
        ("model", canary)
    ]
    assert side.read_bytes().count(canary.encode()) == 1


async def test_unknown_model(running: House) -> None:
    assert code(await ask(running, body={**BODY, "model": "other"})) == (404, "model_not_found")


async def test_a_client_that_leaves_stops_the_endpoint(running: House) -> None:
    running.fleet["fra1"].fail(Fault(Kind.HANG))
    live = running.router.live
    # Only the answer is waited for so shortly: a busy machine takes its time to connect.
    hasty = httpx.Timeout(20, read=0.3)
    with pytest.raises(httpx.ReadTimeout):
        async with httpx.AsyncClient(
            base_url=running.url, timeout=hasty, trust_env=False
        ) as client:
            await client.post(PATH, headers={"authorization": f"Bearer {KEYS['eu']}"}, json=BODY)
    await until(lambda: live.concurrency.total == 0 and live.inflight.keys == ())
    assert running.hits("self:par1") == 0


async def test_a_frozen_endpoint_is_left_after_its_first_token_time(running: House) -> None:
    running.fleet["fra1"].freeze()
    response = await ask(running, body={**BODY, "stream": True})
    assert response.headers["x-domicile-region"] == "self:par1"


def test_ids_sort_by_time_and_are_uuids() -> None:
    now = 1_800_000_000.0
    ids, another = [], Ids(lambda: now, os.urandom)
    for _ in range(200):
        ids.append(another())
        now += 0.002
    assert sorted(ids) == ids
    assert len(set(ids)) == 200
    raw = b32hexdecode(ids[-1].upper() + "======")
    assert UUID(bytes=raw).version == 7
    assert UUID(bytes=raw).variant == RFC_4122
    assert int.from_bytes(raw[:6]) == int((now - 0.002) * 1000)


async def test_the_end_waits_for_what_is_on_its_way_to_other_processes(tmp_path: Path) -> None:
    """Seats that nobody holds, and keys of requests that ran, would stay in Redis for minutes."""
    ended: list[str] = []

    class Ledger(MemoryLedger):
        async def close(self) -> None:
            ended.append("seats")

    class Answers(NoAnswers):
        async def close(self) -> None:
            ended.append("keys")

    async with built(tmp_path, lambda host, number: answer()) as world:
        world.router.live.ledger = Ledger(world.router.live.loop_time)
        world.router.idempotency.store = Answers()
    assert sorted(ended) == ["keys", "seats"]


@pytest.mark.parametrize("settings", [{"cache": "tenant"}, {}])
async def test_what_one_tenant_asked_shortens_no_others_way(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "the secret of the bank " * 60}]}

    async def cached(found: House, tenant: str, **own: str) -> int:
        [engine] = found.fleet
        before = await hits(engine.url)
        assert (await ask(found, tenant, {**body, **own})).status_code == 200
        return await hits(engine.url) - before

    plan = Plan(regions=("self:fra1",), settings=settings)
    async with house(tmp_path, plan) as found:
        aimed = found.router.live.snapshot.salts.of("eu")
        assert await cached(found, "eu") == 0
        assert await cached(found, "eu") > 100
        assert (await cached(found, "world") > 100) == (not settings)
        assert await cached(found, "world", cache_salt=aimed) == 0
        assert await cached(found, "world", cache_salt=aimed) > 100
        assert await cached(found, "eu", cache_salt="ann") == 0
        assert await cached(found, "eu") > 100


async def hits(engine: str) -> int:
    """Prompt tokens that a server had in its cache, by its own count."""
    async with httpx.AsyncClient(trust_env=False) as client:
        page = (await client.get(f"{engine}/metrics")).text
    [line] = [one for one in page.splitlines() if one.startswith("vllm:prefix_cache_hits_total")]
    return round(float(line.rpartition(" ")[2]))
