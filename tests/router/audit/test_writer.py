import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import orjson
import pytest

from router.audit.commands import run_show
from router.audit.entry import Entry, SegmentStart, entry_line, stand_in
from router.audit.errors import LogUnavailable
from router.audit.layout import Folder, LogFolder
from router.audit.note import Signer, load_signer
from router.audit.receipt import Receipt
from router.audit.tree import Frontier, leaf_hash
from router.audit.verify import verify
from router.audit.writer import Batch, Writer
from tests.router.audit.faultydisk import Died, FaultyDisk, QuickDisk, dies_at
from tests.router.audit.logbox import LogBox

KILLS = 24
NONCE = b"A" * 22
LINES = [
    entry_line(Entry("heartbeat", "", n, {}), NONCE, lambda _: 0, stand_in(lambda _: 0))
    for n in range(9)
]
START = SegmentStart("eu-1", 0, 0.0, (), NONCE)


def writer(box: LogBox, disk: QuickDisk) -> Writer:
    folder = LogFolder(box.folder / "eu-1")
    return Writer(folder, disk, Frontier(), None)


def signer(box: LogBox) -> Signer:
    return load_signer(box.key_file, "eu-1")


def segment(box: LogBox, first: int) -> bytes:
    return LogFolder(box.folder / "eu-1").segment(first).path.read_bytes()


def test_a_batch_is_lines_hashes_and_one_signed_head(box: LogBox) -> None:
    one = writer(box, QuickDisk())
    written = one.write(Batch(LINES[:3], START), signer(box))
    assert (written.first, one.size) == (0, 4)
    assert written.checkpoint.signed_by([box.key])
    assert segment(box, 0).split(b"\n")[1:-1] == LINES[:3]
    assert list(written.leaves[1:]) == [leaf_hash(line) for line in LINES[:3]]
    later = SegmentStart("eu-1", 4, 0.0, (), NONCE)
    assert one.write(Batch(LINES[3:4], later, publish=True), signer(box)).first == 4
    assert segment(box, 4).split(b"\n")[1:-1] == LINES[3:4]
    assert (box.folder / "eu-1" / "checkpoint").exists()
    one.close()


def test_two_writers_of_one_log_end_both(box: LogBox) -> None:
    """Whatever became of the lock: what one wrote is told by the file's size to the other."""
    one = writer(box, QuickDisk())
    one.write(Batch(LINES[:3], START), signer(box))
    known = len(segment(box, 0))
    other = Writer(LogFolder(box.folder / "eu-1"), QuickDisk(), Frontier(), 0, known)
    other.write(Batch(LINES[3:4]), signer(box))
    before = segment(box, 0)
    for each in (one, other):
        with pytest.raises(LogUnavailable, match="another process writes"):
            each.write(Batch(LINES[4:5]), signer(box))
        with pytest.raises(LogUnavailable, match="failed earlier"):
            each.write(Batch(LINES[5:6]), signer(box))
    assert segment(box, 0).startswith(before)
    assert not (box.folder / "eu-1" / "checkpoint").exists(), "nothing of it is signed"


def test_what_another_wrote_while_the_tree_was_read_is_not_gone_over(box: LogBox) -> None:
    """Its lines are in the file and not in this one's tree: the next head would be a wrong one."""
    one = writer(box, QuickDisk())
    one.write(Batch(LINES[:3], START), signer(box))
    read = len(segment(box, 0))
    one.write(Batch(LINES[3:4]), signer(box))
    with pytest.raises(LogUnavailable, match="another process writes"):
        Writer(LogFolder(box.folder / "eu-1"), QuickDisk(), Frontier(), 0, read)
    one.write(Batch(LINES[4:5]), signer(box))
    one.close()


def test_a_segment_that_another_began_is_not_gone_on_with(box: LogBox) -> None:
    one, other = writer(box, QuickDisk()), writer(box, QuickDisk())
    one.write(Batch(LINES[:3], START), signer(box))
    with pytest.raises(LogUnavailable, match="another process writes"):
        other.write(Batch(LINES[:1], START), signer(box))
    one.write(Batch(LINES[3:4]), signer(box))
    one.close()


def test_lines_are_synced_before_anything_is_signed_or_told(box: LogBox) -> None:
    disk = FaultyDisk()
    one = writer(box, disk)
    one.write(Batch(LINES[:1], START), signer(box))
    disk.calls.clear()
    one.write(Batch(LINES[1:2]), signer(box))
    assert disk.calls == ["write", "sync", "write"]
    disk.calls.clear()
    one.write(Batch(LINES[2:3], publish=True), signer(box))
    published = ["sync", "open", "write", "sync", "replace", "write"]
    assert disk.calls == ["write", "sync", "write", *published]
    one.close()


def test_the_first_batch_starts_a_segment(box: LogBox) -> None:
    with pytest.raises(LogUnavailable):
        writer(box, QuickDisk()).write(Batch(LINES[:1]), signer(box))


def test_nothing_is_retried_after_an_error(box: LogBox) -> None:
    disk = FaultyDisk()
    one = writer(box, disk)
    one.write(Batch(LINES[:1], START), signer(box))
    disk.fault = dies_at(0)
    with pytest.raises(Died):
        one.write(Batch(LINES[1:2]), signer(box))
    disk.fault = lambda _name, _number: None
    before = list(disk.calls)
    with pytest.raises(LogUnavailable):
        one.write(Batch(LINES[1:2]), signer(box))
    assert disk.calls == before
    one.close()


@pytest.mark.parametrize("torn", [None, 0.5])
async def test_a_death_at_every_operation_is_recovered(box: LogBox, torn: float | None) -> None:
    """The crash matrix: every operation of opening, writing, rotating, publishing, closing."""
    box.segment_bytes = 700
    operation = 0
    while True:
        operation += 1
        shutil.rmtree(box.folder, ignore_errors=True)
        disk = FaultyDisk(fault=dies_at(operation), torn=torn)
        held: list[Receipt] = []
        if await lived(box, disk, held):
            break
        seen = verify(box.folder, against=held, public_keys=[box.key])
        assert seen.ok, (operation, seen.all_findings)
        log = await box.open()
        held += await box.request(log)
        await log.close()
        after = verify(box.folder, against=held, public_keys=[box.key])
        assert after.ok, (operation, after.all_findings)
        assert "torn tail" not in after.statuses
        assert not any("open" in notice for notice in after.logs[0].notices)
    assert operation > 40


async def lived(box: LogBox, disk: FaultyDisk, held: list[Receipt]) -> bool:
    """Run a short life on this disk; False if it died on the way."""
    try:
        log = await box.open(disk=disk)
    except (Died, LogUnavailable):
        return False
    try:
        for number in range(6):
            held += await box.request(log)
            if number % 2:
                box.clock.now += 60
                await log.tick()
        held.append((await log.commit(box.decision(), None)).receipt)
        await log.close()
    except LogUnavailable:
        await log.close()
        return False
    except Died:
        return False
    return True


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_process_loses_nothing_it_was_told(tmp_path: Path, seed: int) -> None:
    """SIGKILL from outside at a random moment (even seeds), or inside the write path (odd)."""
    box, random = LogBox(tmp_path), Random(seed)
    told: list[Receipt] = []
    for _ in range(2):  # the second life recovers the first
        operation = random.randrange(20, 400) if seed % 2 else 0
        told += life(tmp_path, operation, random.randrange(5, 120))
    seen = verify(box.folder, against=told, public_keys=[box.key])
    assert seen.ok, seen.all_findings
    recover(box)
    after = verify(box.folder, against=told, public_keys=[box.key])
    assert after.ok, after.all_findings
    logged = list(run_show(box.folder))
    decided = {shown.id for shown in logged if shown.kind == "decision"}
    settled = [shown.id for shown in logged if shown.kind == "outcome"]
    assert sorted(settled) == sorted(decided)
    places = {shown.place.index for shown in logged}
    assert all(receipt.index in places for receipt in told)


def life(root: Path, operation: int, receipts: int) -> list[Receipt]:
    """Start a victim, read some of what it says, kill it, read what it said before it died."""
    program = [sys.executable, "-m", "tests.router.audit.victim", str(root), str(operation)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        said = []
        for line in victim.stdout:
            said.append(line)
            if len(said) == receipts:
                victim.kill()
        assert victim.wait(30) == -9
    whole = [orjson.loads(line) for line in said if line.endswith(b"\n")]
    return [Receipt(one["log"], one["index"], one["leaf"], one["checkpoint"]) for one in whole]


def recover(box: LogBox) -> None:
    async def run() -> None:
        log = await box.open()
        await log.close()

    asyncio.run(run())


def test_the_segments_of_a_log_are_named_by_their_first_index(box: LogBox) -> None:
    assert Folder(box.folder).log("eu-1").segment(42).name == "00000000000000000042.jsonl"
