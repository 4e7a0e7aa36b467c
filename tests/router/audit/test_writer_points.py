"""`kill -9` at every numbered point of the write path; a full disk, one gone read-only, clocks."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from router.audit.commands import run_show
from router.audit.disk import LocalDisk
from router.audit.errors import LogUnavailable
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.reading import LogReader
from router.audit.receipt import Receipt
from router.audit.tree import leaf_hash
from router.audit.verify import verify
from tests.router.audit.logbox import LogBox
from tests.router.audit.points import POINTS


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each point, as its process left it."""
    root = tmp_path_factory.mktemp("points")
    program = [sys.executable, "-m", "tests.router.audit.points", str(root)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False, timeout=240)
    assert ran.returncode == 0, ran.stderr
    return root


def told(root: Path) -> dict[str, Receipt]:
    """What the process was told before it died: these requests may have been sent."""
    file = root / "told.jsonl"
    lines = map(orjson.loads, file.read_bytes().splitlines()) if file.exists() else ()
    return {
        one["id"]: Receipt(one["log"], one["index"], one["leaf"], one["checkpoint"])
        for one in lines
    }


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_every_numbered_point(deaths: Path, point: str) -> None:
    """Nothing that was dispatched is without its entry; nothing torn is called tampering."""
    root = deaths / point
    box, sent = LogBox(root), told(root)
    assert sent
    seen = verify(box.folder, against=list(sent.values()), public_keys=[box.key])
    assert seen.ok, seen.all_findings
    assert any(log.torn for log in seen.logs) == (point == "3 lines partly written")
    reader = LogReader(Folder(box.folder).log("eu-1"))
    for id_, receipt in sent.items():
        entry = reader.entry(receipt.index)
        assert (entry.id, entry.kind) == (id_, "decision")
        assert leaf_hash(reader.line(receipt.index)).hex() == receipt.leaf
    asyncio.run(recovered(box))
    after = verify(box.folder, against=list(sent.values()), public_keys=[box.key])
    assert after.ok, after.all_findings
    assert not any(log.torn for log in after.logs)
    logged = list(run_show(box.folder))
    decided = sorted(one.id for one in logged if one.kind == "decision")
    assert decided == sorted(one.id for one in logged if one.kind == "outcome")
    assert set(sent) <= set(decided)


async def recovered(box: LogBox) -> None:
    log = await box.open()
    await log.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or not mounted(disk, "size=128k"):
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def mounted(disk: Path, options: str) -> bool:
    """Mount a tmpfs, or with `remount` change it."""
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


async def filled(box: LogBox) -> tuple[AuditLog, list[Receipt]]:
    """Write through the real file system until it refuses."""
    log = await box.open(disk=LocalDisk())
    receipts: list[Receipt] = []
    while log.health.state != "failed":
        try:
            receipts += await box.request(log)
        except LogUnavailable:
            assert "failed" in log.health.state
    return log, receipts


async def test_a_full_disk_fails_closed_and_loses_nothing(small: Path) -> None:
    box = LogBox(small, segment_bytes=20_000)
    log, receipts = await filled(box)
    assert log.health.state == "failed"
    assert "No space left" in log.health.reason
    with pytest.raises(LogUnavailable):
        await log.commit(box.decision(), None)
    await log.close()
    seen = verify(box.folder, against=receipts, public_keys=[box.key])
    assert seen.ok, seen.all_findings
    with pytest.raises(LogUnavailable, match="No space left"):
        await box.open(disk=LocalDisk())
    assert mounted(small, "remount,size=4m")
    again = await box.open(disk=LocalDisk())
    receipts += await box.request(again)
    await again.close()
    assert verify(box.folder, against=receipts, public_keys=[box.key]).ok


async def test_a_disk_gone_read_only_fails_closed(small: Path) -> None:
    box = LogBox(small, segment_bytes=20_000)
    log = await box.open(disk=LocalDisk())
    receipts = await box.request(log)
    # Open files keep a mount from becoming read-only: the log's own refuse instead.
    for fd in log._writer._descriptors():
        os.dup2(os.open("/dev/full", os.O_WRONLY), fd)
    with pytest.raises(LogUnavailable):
        await box.request(log)
    await log.close()
    assert mounted(small, "remount,ro")
    with pytest.raises(LogUnavailable, match="Read-only"):
        await box.open(disk=LocalDisk())
    assert verify(box.folder, against=receipts, public_keys=[box.key]).ok
    assert mounted(small, "remount,rw")
    again = await box.open(disk=LocalDisk())
    await again.close()
    assert verify(box.folder, against=receipts, public_keys=[box.key]).ok


@pytest.mark.parametrize("jump", [-86_400.0 * 400, -3600.0, -0.5, 3600.0, 86_400.0 * 3])
async def test_a_clock_that_jumps_breaks_nothing(box: LogBox, jump: float) -> None:
    """Time in the log never runs back; a jump beyond the key's day waits for the next key."""
    log = await box.open()
    receipts = await box.request(log)
    newest = log.newest_time()
    box.clock.now += jump
    for _ in range(3):
        await log.tick()
        await asyncio.sleep(0.05)
    receipts += await box.request(log)
    assert log.newest_time() >= newest
    box.clock.now -= jump
    await log.tick()
    receipts += await box.request(log)
    await log.close()
    again = await box.open()
    assert again.newest_time() >= newest
    await again.close()
    verdict = verify(box.folder, against=receipts, public_keys=[box.key])
    assert verdict.ok, verdict.all_findings
