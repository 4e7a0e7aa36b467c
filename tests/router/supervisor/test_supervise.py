"""Several workers as real processes: served, told, killed, reloaded, drained."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest

from router.audit.errors import LogLocked
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.reading import LogReader
from router.audit.roster import read_roster
from router.audit.settings import LogSettings
from router.audit.verify import verify
from router.config import ConfigError
from router.server import bind
from router.simulator.faults import Fault, Kind
from router.supervisor.crew import Crew
from router.supervisor.supervise import reserved, settled
from tests.chaos.world import KEYS, Question
from tests.router.house import signing_key
from tests.router.supervisor.running import PATIENCE, Running, running, started, until

LOGS = ("eu-1.w1", "eu-1.w2")


async def asked(one: Running, count: int, stream: bool = False) -> list[str]:
    """So many requests, each over a connection of its own; gives their records."""
    clients = one.clients(count)
    heard = await asyncio.gather(*(c.ask(Question("clinic", stream)) for c in clients))
    for client in clients:
        await client.close()
    assert [h.status for h in heard] == [200] * count, [h.body for h in heard]
    return [h.headers["x-domicile-record"] for h in heard]


def snapshots(folder: Path, log: str) -> list[str]:
    found = LogReader(Folder(folder / "log").log(log)).entries()
    return [str(one.body["to"]) for one in found if one.kind == "snapshot"]


@pytest.mark.slow
async def test_two_workers_from_start_to_end(tmp_path: Path, free_port: Callable[[], int]) -> None:
    async with running(tmp_path, free_port) as one:
        await one.ready()
        records = await asked(one, 24)
        assert {record.split("/")[0] for record in records} == set(LOGS)
        await any_worker_shows_any_record(one, records)
        await counted_together(one, len(records))
        await another_one_is_refused(one, free_port)
        await quarantined_everywhere(one)
        await reloaded_everywhere(one)
        await killed_and_back(one)
        await counted_together(one, len(records))
        assert await one.end() == 0, one.said
        assert "Traceback" not in one.said
    verdict = verify(tmp_path / "log")
    assert verdict.ok, verdict.all_findings
    assert {log.log for log in verdict.logs} == set(LOGS)
    lines, torn = read_roster(Folder(tmp_path / "log"))
    events = [(line.log, line.event) for line in lines]
    assert torn == 0
    for log in LOGS:
        mine = [event for name, event in events if name == log]
        assert mine[-1] == "stop"
        assert mine.count("start") == mine.count("stop") + (log == LOGS[0])
    assert snapshots(tmp_path, LOGS[0])[-1] == snapshots(tmp_path, LOGS[1])[-1]


async def any_worker_shows_any_record(one: Running, records: list[str]) -> None:
    """Whichever worker is asked: connections are new, so all are."""
    key = {"authorization": f"Bearer {KEYS['clinic']}"}
    for record in records[:8]:
        log, index, leaf = record.split("/")
        async with httpx.AsyncClient(trust_env=False, headers=key) as client:
            found = await client.get(f"{one.url}/domicile/v1/records/{log}/{index}")
        assert found.status_code == 200, found.text
        assert (found.json()["log"], found.json()["leaf"]) == (log, leaf)
    stranger = {"authorization": f"Bearer {KEYS['games']}"}
    for log in (*LOGS, "eu-1", "eu-1.w3"):
        found = await one.http.get(f"{one.url}/domicile/v1/records/{log}/5", headers=stranger)
        assert found.status_code == 404


async def counted_together(one: Running, least: int) -> None:
    text = (await one.http.get(one.admin + "/metrics")).text
    rows = [line for line in text.splitlines() if line.startswith("domicile_requests_total{")]
    assert sum(float(row.split()[-1]) for row in rows if 'code="ok"' in row) >= least
    assert 'domicile_log_size{worker="1"}' in text
    assert 'domicile_log_size{worker="2"}' in text
    assert 'domicile_workers{state="serving"} 2.0' in text


async def another_one_is_refused(one: Running, free_port: Callable[[], int]) -> None:
    """On the same folder, at other addresses; this machine's token stays the first one's."""
    token, text = one.token(), (one.folder / "domicile.yaml").read_text()
    for address in (one.url, one.admin):
        text = text.replace(address.rpartition(":")[2], str(free_port()))
    (one.folder / "other.yaml").write_text(text)
    other = await started(one.folder, 2, "other.yaml")
    async with asyncio.timeout(PATIENCE):
        assert await other.wait() == 1
    assert "another `serve` of `eu-1` runs" in one.said
    assert one.token() == token


async def quarantined_everywhere(one: Running) -> None:
    body: dict[str, object] = {"what": "endpoint", "name": "fra", "reason": "flood"}
    refused = await one.http.post(one.admin + "/quarantine", json=body)
    assert refused.status_code == 401
    done = await one.http.post(one.admin + "/quarantine", json=body, headers=one.token())
    assert (done.status_code, done.json()["quarantined"][0]["by"]) == (200, "local"), done.text
    for worker in await one.workers():
        status = worker["status"]
        assert isinstance(status, dict)
        assert [i["name"] for i in status["quarantined"]] == ["fra"]
    seen = one.fleet["self:fra1/0"].seen
    before = len([hit for hit in seen if hit.request_id != "probe"])
    await asked(one, 8)
    assert len([hit for hit in seen if hit.request_id != "probe"]) == before


async def reloaded_everywhere(one: Running) -> None:
    rules = one.folder / "rules.yaml"
    old = (await one.status())["snapshot"]
    rules.write_text(rules.read_text().replace("a test", "another test"))
    one.process.send_signal(signal.SIGHUP)

    async def changed() -> bool:
        """In the supervisor first, whose word the workers take."""
        found = await one.status()
        served = {cast("dict[str, object]", w["status"])["snapshot"] for w in await one.workers()}
        return found["snapshot"] != old and served == {found["snapshot"]}

    await until(changed)
    new = (await one.status())["snapshot"]
    rules.write_text("broken")
    told = await one.http.post(one.admin + "/reload", headers=one.token())
    assert "rules.yaml" in told.json()["refused"]
    assert (await one.status())["snapshot"] == new


async def killed_and_back(one: Running) -> None:
    """It comes back with what the others serve and were told, whatever the files say by now."""
    new = (await one.status())["snapshot"]
    first = (await one.pids())[0]
    os.kill(first, signal.SIGKILL)

    async def back_again() -> bool:
        worker = (await one.workers())[0]
        return worker["pid"] != first and worker["state"] == "serving"

    await until(back_again)
    back = (await one.workers())[0]
    status = back["status"]
    assert isinstance(status, dict)
    assert (back["restarts"], status["snapshot"]) == (1, new)
    assert [i["name"] for i in status["quarantined"]] == ["fra"]
    body = {"what": "endpoint", "name": "fra", "reason": "dry", "lift": True}
    lifted = await one.http.post(one.admin + "/quarantine", json=body, headers=one.token())
    assert lifted.json() == {"quarantined": []}, lifted.text


@pytest.mark.slow
async def test_a_stop_drains_and_a_second_one_ends(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    async with running(tmp_path, free_port) as one:
        await one.ready()
        for name in ("self:fra1/0", "self:fra1/1", "self:par1/0", "self:par1/1"):
            one.fleet[name].fail(Fault(Kind.SLOW_HEAD, seconds=3600))
        main = one.folder / "domicile.yaml"
        assert "answer: 400ms" in main.read_text()
        client = one.clients(1)[0]
        waiting = asyncio.create_task(client.ask(Question("clinic")))

        async def is_open() -> object:
            return (await one.status())["open_requests"]

        await until(is_open)
        one.process.send_signal(signal.SIGTERM)
        one.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await one.process.wait() == 0, one.said
        await waiting
        await client.close()
    assert verify(tmp_path / "log").ok


@pytest.mark.slow
async def test_workers_end_with_their_supervisor(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    async with running(tmp_path, free_port) as one:
        await one.ready()
        pids = await one.pids()
        assert await one.end(signal.SIGKILL) == -signal.SIGKILL

        async def are_gone() -> bool:
            return not any(map(_runs, pids))

        await until(are_gone)
    verdict = verify(tmp_path / "log")
    assert verdict.ok, verdict.all_findings
    lines, _ = read_roster(Folder(tmp_path / "log"))
    assert sorted(line.event for line in lines) == ["start", "start", "stop", "stop"]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
async def test_a_worker_that_cannot_start_stops_the_start(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    (tmp_path / "log" / "eu-1.w2" / "segments").mkdir(parents=True)
    broken = tmp_path / "log" / "eu-1.w2" / "segments" / f"{0:020d}.jsonl"
    broken.write_text("no line of ours\n")
    async with running(tmp_path, free_port) as one:
        async with asyncio.timeout(PATIENCE):
            assert await one.process.wait() == 1
        assert "worker 2" in one.said
        assert "audit verify" in one.said


async def test_why_nobody_serves_is_told_though_a_log_can_not_be_settled(tmp_path: Path) -> None:
    log = LogSettings(tmp_path / "log", "eu-1.w1", signing_key(tmp_path))
    held = await AuditLog.open(log, clock=time.time, entropy=os.urandom)
    hopeless: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    slots = (SimpleNamespace(log="eu-1.w1"),)
    crew = cast(Crew, SimpleNamespace(slots=slots, hopeless=hopeless))
    with pytest.raises(LogLocked):
        await settled(crew, log)
    hopeless.set_result("worker 1 can't serve: the disk is full")
    with pytest.raises(ConfigError, match="the disk is full"):
        await settled(crew, log)
    await held.close()


def test_an_address_that_somebody_listens_on_is_refused() -> None:
    """Though with SO_REUSEPORT the kernel would let both of one user have it."""
    taken = bind(("127.0.0.1", 0), "listen", shared=True)
    with taken, pytest.raises(ConfigError, match=r"router\.listen"):
        reserved(taken.getsockname())
    host, port = reserved(("127.0.0.1", 0))
    assert host == "127.0.0.1"
    assert port > 0


@pytest.mark.slow
async def test_through_redis_limits_and_keys_are_those_of_one_router(
    tmp_path: Path, free_port: Callable[[], int], requires_redis: str
) -> None:
    """Over two workers and 40 connections: 12 requests an hour are 12, and a key counts once."""
    (tmp_path / "redis").write_text(requires_redis)
    async with running(
        tmp_path,
        free_port,
        state="state: {redis: 'file:redis', region: 'self:fra1', timeout: 10s}\n",
        limits="limits: {requests: 12/h}",
    ) as one:
        await one.ready()
        assert "exact" in str((await one.status())["limits"])
        clients = one.clients(40)
        same = Question("clinic", headers=(("idempotency-key", "k-1"),))
        repeated = await asyncio.gather(*(c.ask(same) for c in clients[:6]))
        assert {h.status for h in repeated} <= {200, 409}
        while (last := await clients[39].ask(same)).status == 409:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        records = {h.headers["x-domicile-record"] for h in (*repeated, last) if h.status == 200}
        assert len(records) == 1, "one run, whoever was asked"
        heard = await asyncio.gather(*(c.ask(Question("clinic")) for c in clients))
        codes = [h.code for h in heard]
        passed = codes.count("ok")
        assert passed + codes.count("rate_limit") == 40
        assert 1 <= passed <= 12
        assert {h.headers["x-domicile-record"].split("/")[0] for h in heard if h.status == 200}
        for client in clients:
            await client.close()
        assert await one.end() == 0, one.said
