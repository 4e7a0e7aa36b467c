import asyncio
import errno
import os
from hashlib import sha256
from pathlib import Path

import pytest

from router.audit.commands import run_show
from router.audit.entry import Entry, Interned
from router.audit.errors import EntryRefused, LogLocked, LogUnavailable, NoteInvalid
from router.audit.log import AuditLog, Committed
from router.audit.note import create_signing_key, parse_checkpoint
from router.audit.reading import NotInLog
from router.audit.receipt import Receipt
from router.audit.tree import leaf_hash, verify_inclusion
from router.audit.verify import verify
from tests.router.audit.faultydisk import FaultyDisk, fails
from tests.router.audit.logbox import LogBox


def state(log: AuditLog) -> str:
    return log.health.state


def kinds(box: LogBox) -> list[str]:
    return [shown.kind for shown in run_show(box.folder)]


async def test_a_commit_returns_its_subject_with_evidence(box: LogBox) -> None:
    log = await box.open()
    committed = await log.commit(box.decision("r1"), "the plan")
    assert committed.subject == "the plan"
    receipt = committed.receipt
    head = parse_checkpoint(receipt.checkpoint)
    assert head.signed_by([box.key]) == box.key
    assert head.size == receipt.index + 1
    inclusion, newest = await log.inclusion(receipt.index)
    assert inclusion.leaf.hex() == receipt.leaf
    assert verify_inclusion(inclusion.leaf, receipt.index, newest.size, inclusion.path, newest.root)
    assert (await log.entry(receipt.index)).id == "r1"
    await log.record(box.outcome("r1"))
    await log.close()


def test_nobody_else_makes_a_committed() -> None:
    with pytest.raises(TypeError, match="only the region log"):
        Committed("plan", Receipt("eu-1", 0, "", ""), object())


async def test_the_entry_is_on_disk_when_commit_returns(box: LogBox) -> None:
    log = await box.open()
    for number in range(5):
        receipt = (await log.commit(box.decision(f"r{number}"), None)).receipt
        lines = b"".join(p.read_bytes() for p in sorted(box.folder.glob("eu-1/segments/*.jsonl")))
        assert leaf_hash(lines.split(b"\n")[receipt.index]).hex() == receipt.leaf
        await log.record(box.outcome(f"r{number}"))
    await log.close()


async def test_who_waits_together_is_written_together(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    before = disk.calls.count("sync")
    commits = [log.commit(box.decision(), number) for number in range(50)]
    done = await asyncio.gather(*commits)
    assert disk.calls.count("sync") == before + 1
    assert len({committed.receipt.checkpoint for committed in done}) == 1
    assert [committed.subject for committed in done] == list(range(50))
    await log.close()


async def test_records_keep_their_order_under_concurrency(box: LogBox) -> None:
    log = await box.open()

    async def client() -> None:
        for _ in range(20):
            await box.request(log)

    await asyncio.gather(*(client() for _ in range(8)))
    await log.close()
    verdict = verify(box.folder, public_keys=[box.key])
    assert verdict.ok
    assert kinds(box).count("decision") == kinds(box).count("outcome") == 160


async def test_a_repeated_value_is_written_once_per_segment(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=8000)
    log = await box.open()
    shared = Interned({"tenant": "clinic", "excluded": [["us-large", "outside"]] * 20})
    receipts = [(await box.request(log, shared))[0] for _ in range(60)]
    await log.close()
    segments = sorted(box.folder.glob("eu-1/segments/*.jsonl"))
    assert len(segments) > 2
    counts = [segment.read_bytes().count(b"us-large") // 20 for segment in segments]
    assert set(counts) <= {0, 1}
    reopened = await box.open()
    shown = await reopened.entry(receipts[-1].index)
    assert shown.body["tenant"] == "clinic"
    await reopened.close()


async def test_two_processes_never_share_a_log(box: LogBox) -> None:
    log = await box.open()
    with pytest.raises(LogLocked, match="eu-1"):
        await box.open()
    other = await box.open("eu-2")
    await other.close()
    await log.close()
    again = await box.open()
    await again.close()


@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
async def test_a_failed_write_fails_everyone_and_for_good(
    box: LogBox, operation: str, code: int
) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    disk.fault = fails(operation, code)
    results = await asyncio.gather(
        *(log.commit(box.decision(), None) for _ in range(10)), return_exceptions=True
    )
    assert all(isinstance(result, LogUnavailable) for result in results)
    assert {str(result) for result in results} == {f"the log can't be written: {os.strerror(code)}"}
    assert state(log) == "failed"
    assert log.health.for_good
    disk.fault = lambda _name, _number: None
    writes = len(disk.calls)
    with pytest.raises(LogUnavailable):
        await log.commit(box.decision(), None)
    await log.close()
    assert disk.calls[writes:] == []
    recovered = await box.open()
    assert recovered.health.state == "ok"
    await recovered.close()
    assert verify(box.folder, public_keys=[box.key]).ok


async def test_a_write_that_fails_also_fails_those_who_queued_behind_it(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    disk.fault = fails("sync", errno.EIO)
    first = asyncio.create_task(log.commit(box.decision(), 1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(log.commit(box.decision(), 2))
    for task in (first, second):
        with pytest.raises(LogUnavailable):
            await task
    await log.close()


async def test_a_fire_and_forget_record_that_fails_warns_nobody(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    disk.fault = fails("sync", errno.EIO)
    log.record(box.decision())
    with pytest.raises(LogUnavailable):
        await log.close()
    assert state(log) == "failed"


async def test_what_is_only_noted_is_written_in_order_and_its_loss_shows(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    await log.commit(box.decision("r1"), None)
    log.note(box.outcome("r1"))
    await log.commit(box.decision("r2"), None)
    assert kinds(box)[-3:] == ["decision", "outcome", "decision"]
    with pytest.raises(EntryRefused):
        log.note(box.outcome("r1"))
    disk.fault = fails("sync", errno.EIO)
    log.note(box.outcome("r2"))
    with pytest.raises(LogUnavailable):
        await log.commit(box.decision("r3"), None)
    assert state(log) == "failed"
    with pytest.raises(LogUnavailable):
        log.note(box.decision("r4"))
    await log.close()


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("open", errno.EROFS, "Read-only"),
        ("replace", errno.ENOSPC, "No space left"),
        ("write", errno.ENOSPC, "No space left"),
    ],
)
async def test_a_folder_that_takes_nothing_refuses_to_open(
    box: LogBox, what: str, code: int, said: str
) -> None:
    disk = FaultyDisk(fault=fails(what, code))
    with pytest.raises(LogUnavailable, match=said):
        await box.open(disk=disk)
    log = await box.open()
    await log.close()


async def test_a_snapshot_that_can_not_be_stored_is_told_with_its_file(box: LogBox) -> None:
    log = await box.open(disk=(disk := FaultyDisk()))
    disk.fault = fails("replace", errno.ENOSPC)
    digest = sha256(b"{}").hexdigest()
    with pytest.raises(LogUnavailable) as caught:
        await log.snapshot(digest, b"{}")
    assert str(caught.value) == (
        f"can't store a snapshot: `{box.folder / 'snapshots' / digest}.json`: "
        "No space left on device"
    )
    disk.fault = lambda _name, _number: None
    await log.close()


async def test_a_full_disk_at_recovery_is_told_with_the_logs_name(box: LogBox) -> None:
    log = await box.open()
    await box.request(log)
    await log.close()
    for leaves in box.folder.rglob("*.leaves"):
        leaves.unlink()
    disk = FaultyDisk(fault=fails("replace", errno.ENOSPC))
    with pytest.raises(LogUnavailable, match=r"eu-1` can't be opened: No space left on device$"):
        await box.open(disk=disk)


async def test_entries_that_break_a_law_never_reach_the_disk(box: LogBox) -> None:
    log = await box.open()
    await log.commit(box.decision("r1"), None)
    for entry in (
        box.decision("r1"),
        Entry("decision", "", box.clock.now, {}),
        box.outcome("r9"),
        Entry("attempt", "r9", box.clock.now, {"endpoint": "fra-small"}),
        Entry("decision", "r2", box.clock.now, {"snapshot": "0" * 64}),
        Entry("decision", "r3", box.clock.now, {"score": 0.5}),  # type: ignore[dict-item]
    ):
        with pytest.raises(EntryRefused):
            log.record(entry)
    await log.record(box.outcome("r1"))
    with pytest.raises(EntryRefused):
        log.record(box.outcome("r1"))
    await log.close()
    assert verify(box.folder, public_keys=[box.key]).ok


async def test_snapshots_are_stored_by_digest_before_they_are_named(box: LogBox) -> None:
    log = await box.open()
    data = b'{"policy":1}'
    digest = sha256(data).hexdigest()
    with pytest.raises(ValueError, match="digest"):
        await log.snapshot("0" * 64, data)
    await log.snapshot(digest, data)
    await log.snapshot(digest, data)
    assert (box.folder / "snapshots" / f"{digest}.json").read_bytes() == data
    await log.commit(Entry("decision", "r1", box.clock.now, {"snapshot": digest}), None)
    await log.close()
    assert verify(box.folder, public_keys=[box.key]).ok
    (box.folder / "snapshots" / f"{digest}.json").write_bytes(b'{"policy":2}')
    faults = [finding.fault for finding in verify(box.folder).all_findings]
    assert faults == ["snapshot"]


async def test_a_heartbeat_publishes_in_time_and_not_more_often(box: LogBox) -> None:
    log = await box.open()
    first = await log.tick()
    assert first is not None
    published = box.folder / "eu-1" / "checkpoint"
    assert published.read_text() == first.text
    box.clock.now += 49
    assert await log.tick() is None
    box.clock.now += 1
    second = await log.tick()
    assert second is not None
    assert second.size > first.size
    assert published.read_text() == second.text
    box.clock.now -= 3600  # a clock set back still beats
    assert await log.tick() is not None
    await log.close()


async def test_now_is_never_older_than_the_log(box: LogBox) -> None:
    log = await box.open()
    late = box.clock.now + 5000
    await log.commit(Entry("decision", "r1", late, {}), None)
    assert log.newest_time() == late
    await log.close()
    reopened = await box.open()
    assert reopened.newest_time() >= late
    await reopened.close()


async def test_close_settles_what_is_open_and_is_idempotent(box: LogBox) -> None:
    log = await box.open()
    await log.commit(box.decision("r1"), None)
    assert log.is_open("r1")
    await log.close()
    await log.close()
    with pytest.raises(LogUnavailable):
        log.record(box.decision())
    outcome = list(run_show(box.folder, kind="outcome"))
    assert [shown.body for shown in outcome] == [{"status": "unknown", "by": "close"}]


async def test_a_cancelled_commit_leaves_the_log_whole(box: LogBox) -> None:
    log = await box.open()
    task = asyncio.create_task(log.commit(box.decision("r1"), None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await log.record(box.outcome("r1"))
    await log.close()
    assert verify(box.folder, public_keys=[box.key]).ok


async def test_a_stalled_log_says_so_and_refuses_more(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    disk = FaultyDisk()
    log = await box.open(disk=disk)

    def wait(name: str, _number: int) -> None:
        if name == "sync":
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

    disk.fault = wait
    first = asyncio.create_task(log.commit(box.decision(), None))
    await asyncio.sleep(0.01)
    assert state(log) == "ok"
    box.clock.now += 6
    assert state(log) == "degraded"
    gate.set()
    await first
    assert state(log) == "ok"
    await log.close()


async def test_reading_beyond_the_log_is_refused(box: LogBox) -> None:
    log = await box.open()
    for index in (-1, 0, 999):  # 0 is the segment's own line
        with pytest.raises(NotInLog):
            await log.entry(index)
    with pytest.raises(NotInLog):
        await log.inclusion(999)
    await log.close()


async def test_without_a_key_nothing_opens(box: LogBox) -> None:
    box.key_file.unlink()
    with pytest.raises(NoteInvalid, match=r"log\.key"):
        await AuditLog.open(box.settings(), clock=box.clock, entropy=box.entropy.randbytes)


async def test_a_new_key_is_recorded_and_old_proofs_stay_good(box: LogBox) -> None:
    receipts = await box.refill(2)
    old = box.key
    box.key_file.unlink()
    new = create_signing_key(box.key_file)
    receipts += await box.refill(2)
    entries = [shown.body for shown in run_show(box.folder, kind="key")]
    recorded = [body for body in entries if "from" in body]
    assert recorded == [{"from": old.raw.hex(), "to": new.raw.hex()}]
    assert verify(box.folder, against=receipts, public_keys=[old, new]).ok
    assert not verify(box.folder, against=receipts, public_keys=[new]).ok


async def test_a_log_is_verified_while_it_is_written(box: LogBox) -> None:
    log = await box.open()
    done = False

    async def write() -> None:
        nonlocal done
        for number in range(150):
            await box.request(log)
            if number % 40 == 0:
                box.clock.now += 60
                await log.tick()
                await box.refill(1, f"us-{number}")
        done = True

    writing = asyncio.create_task(write())
    while not done:
        verdict = await asyncio.to_thread(verify, box.folder, public_keys=[box.key])
        assert verdict.ok, verdict.all_findings
    await writing
    await log.close()


async def test_nothing_slips_in_while_the_log_closes(box: LogBox) -> None:
    log = await box.open()
    await log.commit(box.decision("r1"), None)
    closing = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    for entry in (box.decision("r2"), box.outcome("r1")):
        with pytest.raises(LogUnavailable):
            log.record(entry)
    await closing
    assert verify(box.folder, public_keys=[box.key]).ok
