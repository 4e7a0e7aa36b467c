"""The log's disk is full: nothing is sent, it is said, and it ends when there is room."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from router.audit.verify import verify
from tests.chaos import evidence
from tests.chaos.world import Heard, Question
from tests.router.audit.test_writer_points import mounted
from tests.router.supervisor.running import Running, running, started, until

SPACE = "size=16m"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """The log's folder on a disk of its own."""
    disk = tmp_path / "log"
    disk.mkdir()
    if os.geteuid() != 0 or not mounted(disk, SPACE):
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def filled(disk: Path) -> Path:
    """Take all of the space there is; gives the file that takes it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return ballast


async def ask(one: Running, count: int) -> list[Heard]:
    """Questions, each on a connection of its own."""
    heard = []
    for client in one.clients(count):
        heard.append(await client.ask(Question("clinic", text="x" * 500)))
        await client.close()
    return heard


def sent(one: Running) -> int:
    """Questions that reached a model server; canaries aside."""
    return sum(hit.request_id != "probe" for replica in one.fleet for hit in replica.seen)


async def again(one: Running) -> None:
    """Begin anew on the same files."""
    await one.end(signal.SIGTERM)
    one.process = await started(one.folder, 1)
    await one.ready()


@pytest.mark.slow
@pytest.mark.chaos
async def test_a_full_disk_refuses_says_so_and_recovers(
    tmp_path: Path, small: Path, free_port: Callable[[], int]
) -> None:
    async with running(tmp_path, free_port, workers=1) as one:
        await one.ready()
        assert {found.status for found in await ask(one, 5)} == {200}
        ballast = filled(small)

        async def none_is_answered() -> bool:
            return all(found.status != 200 for found in await ask(one, 4))

        await until(none_is_answered)
        before = sent(one)
        refused = await ask(one, 10)
        assert {(found.status, found.code) for found in refused} == {(503, "log_unavailable")}
        assert sent(one) == before, "what can't be recorded is not sent"
        ready = await one.http.get(one.url + "/readyz")
        assert ready.status_code == 503
        assert "No space left" in ready.json()["log"]
        ballast.unlink()
        assert (await ask(one, 2))[0].status == 503, "room alone is not enough"
        alive = await one.http.get(one.url + "/healthz")
        assert (alive.status_code, "restart" in alive.json()["status"]) == (503, True)
        await again(one)
        assert {found.status for found in await ask(one, 5)} == {200}
        assert await one.end(signal.SIGTERM) == 0
    verdict = verify(small)
    assert verdict.ok, verdict.all_findings
    log = evidence.traces(small)
    assert list(evidence.unsettled(log)) == []
    assert len(log) >= 10
