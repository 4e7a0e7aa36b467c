"""What an operator is told of several workers, and when a change counts as done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from router.errors import RequestError
from router.metrics import Metrics
from router.narrowing.operating import ErasedTold, FilesStatus, Status
from router.narrowing.veto_file import Imposed
from router.settings.reload import Reloader, Source
from router.supervisor import admin, crew
from router.supervisor.channel import Gone
from router.supervisor.merged import NOTHING
from router.supervisor.orders import Accept, Erase, Narrow, StatusAsked
from tests.router.supervisor.test_crew import World, reloaded

TOKEN = "local-abc"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
FLOOD = {"what": "endpoint", "name": "fra-large", "reason": "flood"}
IMPOSED = Imposed(what="endpoint", name="fra-large", reason="flood", by="local", at=1.0)


@asynccontextmanager
async def asked(world: World) -> AsyncIterator[httpx.AsyncClient]:
    await world.begin()
    for said in world.said:
        said.answers[Narrow] = (IMPOSED,)
        said.broken[StatusAsked] = Gone("not in this test")
    source = Source(world.folder / "domicile.yaml", {}, "a")
    app = admin.build(world.crew, Reloader(world.crew, world.crew, source), TOKEN)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://admin") as client:
        yield client


async def test_looking_needs_no_key_and_changing_one_does(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert 'domicile_workers{state="serving"} 2.0' in (await client.get("/metrics")).text
        status = (await client.get("/status")).json()
        assert (status["ready"], len(status["workers"])) == (True, 2)
        assert "1/2" in status["limits"]
        for path, body in (("/quarantine", FLOOD), ("/drift/accept", {}), ("/reload", {})):
            assert (await client.post(path, json=body)).status_code in (401, 422)
        assert not any(isinstance(one, Narrow) for said in world.said for one in said.heard)


def stands(active: str, snapshot: str) -> Status:
    """How a worker stands that serves one snapshot, of the files `active`."""
    files = FilesStatus(on_disk=active, active=active, looked_at=0.0, refused="")
    return Status(
        router="local", region="self:fra1", snapshot=snapshot, policy="p", catalog="c",
        catalog_date="2026-11-30", loaded_at=1.0, files=files, quarantined=[], drifted=[], keys=1,
        log="ok", log_size=1, checkpoint=None, anchors=[], open_requests=0, degraded=[],
        endpoints=[],
    )  # fmt: skip


async def test_who_still_serves_the_snapshot_before_is_named(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        for said in world.said:
            said.broken.pop(StatusAsked)
            said.answers[StatusAsked] = stands("a", "before")
        assert (await client.get("/status")).json()["degraded"] == []
        world.crew.files.on_disk = "b"
        await world.crew.reload(reloaded(world.base))
        world.said[0].answers[StatusAsked] = stands("b", world.crew.snapshot.digest)
        status = (await client.get("/status")).json()
        assert status["snapshot"] == world.crew.snapshot.digest
        assert status["degraded"] == ["worker 2 still serves snapshot before"]
        world.said[1].answers[StatusAsked] = stands("b", world.crew.snapshot.digest)
        assert (await client.get("/status")).json()["degraded"] == []


async def test_a_quarantine_is_confirmed_by_all(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert done.json()["quarantined"] == [IMPOSED.model_dump(mode="json")]
        for said in world.said:
            [narrow] = [one for one in said.heard if isinstance(one, Narrow)]
            assert (narrow.by, narrow.asked.name) == ("local", "fra-large")


@pytest.mark.parametrize(
    "fault", [Gone("no answer"), RequestError("log_unavailable", "the disk is full")]
)
async def test_who_does_not_confirm_is_named(tmp_path: Path, fault: Exception) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.said[1].broken[Narrow] = fault
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert done.status_code == 503
        assert f"worker 2: {fault}" in done.json()["error"]["message"]
        assert "worker 1" not in done.json()["error"]["message"]


async def test_what_no_worker_knows_is_the_operators_mistake(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        for said in world.said:
            said.broken[Narrow] = RequestError("invalid_request", "there is no such endpoint")
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert (done.status_code, done.json()["error"]["code"]) == (400, "invalid_request")


async def test_nothing_is_lifted_while_a_worker_is_away(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.crew.slots[1].state = "down"
        done = await client.post("/quarantine", json={**FLOOD, "lift": True}, headers=HEADERS)
        assert done.status_code == 503
        assert "workers 2" in done.json()["error"]["message"]
        assert not any(isinstance(one, Narrow) for said in world.said for one in said.heard)
        narrowed = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert narrowed.status_code == 200  # the other takes it when it is back


async def test_one_that_is_starting_did_not_confirm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read what its siblings were told before, and would serve without this."""
    monkeypatch.setattr(crew, "BEGINNING", 0.05)
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.crew.slots[1].state = "starting"
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert (done.status_code, "worker 2: it is starting" in done.text) == (503, True)
        assert any(isinstance(one, Narrow) for one in world.said[0].heard)


async def test_one_that_began_while_the_others_were_told_did_not_confirm(
    tmp_path: Path,
) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        first, second = world.crew.slots
        second.state, ask = "down", world.said[0].ask

        async def meanwhile(message: object, kind: type, patience: float = 0.0) -> object:
            second.state = "serving"
            return await ask(message, kind, patience)

        world.said[0].ask = meanwhile  # type: ignore[method-assign]
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert (done.status_code, "worker 2" in done.text) == (503, True)
        assert first.state == "serving"


async def test_one_that_drains_is_told_too(tmp_path: Path) -> None:
    """Its open requests may still be sent somewhere."""
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.crew.slots[1].state = "stopping"
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert done.status_code == 200
        assert any(isinstance(one, Narrow) for one in world.said[1].heard)


async def test_what_one_worker_does_not_know_is_not_narrowed_by_all(tmp_path: Path) -> None:
    """It serves another snapshot, and will serve this one soon."""
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.said[1].broken[Narrow] = RequestError("invalid_request", "there is no endpoint")
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert (done.status_code, "worker 2: there is no endpoint" in done.text) == (503, True)


async def test_nobody_there_confirms_nothing(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        for slot in world.crew.slots:
            slot.state = "down"
        done = await client.post("/quarantine", json=FLOOD, headers=HEADERS)
        assert (done.status_code, "no worker serves" in done.text) == (503, True)


async def test_a_second_try_ends_what_the_first_left_half_done(tmp_path: Path) -> None:
    """One lifted it the first time, and says now that there is nothing to lift."""
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.said[0].broken[Narrow] = RequestError("invalid_request", "is not quarantined")
        done = await client.post("/quarantine", json={**FLOOD, "lift": True}, headers=HEADERS)
        assert done.status_code == 200


async def test_a_drift_is_accepted_where_it_was_found(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        world.said[0].broken[Accept] = RequestError("invalid_request", "has not drifted")
        body = {"endpoint": "fra-large", "reason": "known"}
        done = await client.post("/drift/accept", json=body, headers=HEADERS)
        assert done.json() == {"accepted": "fra-large"}


async def test_an_erasure_is_done_by_all_and_told_once(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        for said in world.said:
            said.answers[Erase] = ErasedTold(keys=1, openings=2, remains=["the entries"])
        assert (await client.post("/erase", json={"tenant": "clinic"})).status_code == 401
        done = await client.post("/erase", json={"tenant": "clinic"}, headers=HEADERS)
        assert done.json() == {"keys": 2, "openings": 4, "remains": ["the entries"]}
        (asked_of,) = [one for one in world.said[0].heard if isinstance(one, Erase)]
        assert asked_of.logs == tuple(slot.log for slot in world.crew.slots)
        assert len(asked_of.logs) > 1, "none of them is what remains"


async def test_an_ended_workers_counts_stay(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        metrics = Metrics()
        metrics.count("domicile_failovers_total", by=3)
        world.crew.before = metrics.read()
        assert "domicile_failovers_total 3.0" in (await client.get("/metrics")).text
        assert world.crew.slots[0].read is not NOTHING


async def test_a_reload_tells_why_the_files_do_not_serve(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    async with asked(world) as client:
        (tmp_path / "rules" / "example.yaml").write_text("broken")
        told = (await client.post("/reload", headers=HEADERS)).json()
        assert "rules/example.yaml" in told["refused"]
        assert told["active"] == "a"
        assert (await client.get("/status")).json()["degraded"] != []
