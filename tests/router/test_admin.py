"""The admin listener: anybody there may look, an operator may change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from router import admin
from router.audit.errors import LogUnavailable
from tests.router.folders import sound
from tests.router.reloading import BOSS, CLINIC, World, watched
from tests.router.settings.test_swap import wide


@asynccontextmanager
async def asked(world: World, key: str = BOSS) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(admin.build(world.router.live, world.watches))
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://admin", headers=headers
    ) as client:
        yield client


FLOOD = {"what": "endpoint", "name": "fra-large", "reason": "flood"}


async def test_metrics_status_and_health_need_no_key(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world, asked(world, "") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert "domicile_reloads_total" in (await client.get("/metrics")).text
        status = (await client.get("/status")).json()
        assert status["snapshot"] == world.router.live.snapshot.digest
        assert status["files"]["active"] == world.router.live.files.active
        assert (status["quarantined"], status["drifted"]) == ([], [])
        assert world.watches.token not in str(status)


async def test_an_operator_quarantines_and_lifts(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world, asked(world) as client:
        done = await client.post("/quarantine", json=FLOOD)
        assert done.status_code == 200
        [one] = done.json()["quarantined"]
        assert (one["name"], one["by"]) == ("fra-large", "boss")
        assert (await client.get("/status")).json()["quarantined"] == [one]
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"
        lifted = await client.post("/quarantine", json={**FLOOD, "lift": True})
        assert lifted.json() == {"quarantined": []}


@pytest.mark.parametrize(("key", "status"), [("", 401), (CLINIC, 403), ("local-x", 401)])
async def test_nobody_else_does(tmp_path: Path, key: str, status: int) -> None:
    async with watched(sound(tmp_path)) as world, asked(world, key) as client:
        for path, body in (
            ("/quarantine", FLOOD),
            ("/drift/accept", {"endpoint": "fra-large", "reason": "x"}),
            ("/erase", {"tenant": "clinic"}),
        ):
            refused = await client.post(path, json=body)
            assert (refused.status_code, refused.json()["error"]["type"]) == (
                status, "authentication_error",
            )  # fmt: skip
        assert world.watches.quarantine.imposed == ()


async def test_an_operator_erases_and_is_told_what_remains(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world, asked(world) as client:
        await world.ask()
        done = await client.post("/erase", json={"tenant": "clinic"})
        assert (done.json()["keys"], done.json()["openings"]) == (1, 0)
        assert any("backups" in one for one in done.json()["remains"])
        assert (await client.post("/erase", json={"tenant": "a b"})).status_code == 422
        await world.ask()
        said = [one.body for one in world.entries("administration")]
        assert [body["by"] for body in said if body["event"] == "erase"] == ["boss"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**FLOOD, "name": "nowhere"}, 400),
        ({**FLOOD, "reason": ""}, 400),
        ({**FLOOD, "what": "tenant"}, 400),
        ({**FLOOD, "lift": True}, 400),
        ({**FLOOD, "more": 1}, 422),
        ({}, 422),
    ],
)
async def test_what_cannot_be_done_is_said(
    tmp_path: Path, body: dict[str, object], status: int
) -> None:
    async with watched(sound(tmp_path)) as world, asked(world) as client:
        assert (await client.post("/quarantine", json=body)).status_code == status
        assert world.watches.quarantine.imposed == ()


async def test_a_log_that_is_down_is_told_and_the_veto_stands(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world, asked(world) as client:
        record = world.router.live.log.record

        def fail(*given: object) -> object:
            raise LogUnavailable("disk full")

        world.router.live.log.record = fail  # type: ignore[method-assign, assignment]
        told = await client.post("/quarantine", json=FLOOD)
        assert (told.status_code, told.json()["error"]["code"]) == (503, "log_unavailable")
        world.router.live.log.record = record  # type: ignore[method-assign]
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"


async def test_drift_is_accepted_by_an_operator(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world, asked(world) as client:
        body = {"endpoint": "fra-large", "reason": "we moved"}
        nothing = await client.post("/drift/accept", json=body)
        assert nothing.status_code == 400
        assert "has not drifted" in nothing.json()["error"]["message"]
        await world.watches.swap.drift({"fra-large": wide(world.router.live.snapshot)})
        assert (await client.get("/status")).json()["drifted"] == ["fra-large"]
