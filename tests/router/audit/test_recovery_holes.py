"""A power cut in the middle of a batch: its blocks reached the disk in another order.

What was synced before is whole. Of the last batch any sector may be there and any other one zeros.
"""

from __future__ import annotations

import shutil
import time
from random import Random

import pytest

from router.audit.commands import run_show
from router.audit.errors import LogDamaged
from router.audit.layout import sound
from router.audit.receipt import Receipt
from router.audit.verify import verify
from tests.router.audit.logbox import LogBox
from tests.router.audit.test_recovery import last

SECTOR = 512


async def cut_off(box: LogBox) -> tuple[list[Receipt], int]:
    """A log that ends with a batch nobody was told of; what was told before, and its bytes."""
    receipts = await box.refill(3)
    log = await box.open()
    for _ in range(3):
        receipts += await box.request(log)
    synced = last(box).stat().st_size
    waiting = [log.record(box.decision()) for _ in range(24)]
    await waiting[-1]
    box.copy(box.root / "crashed")
    await log.close()
    shutil.rmtree(box.folder)
    (box.root / "crashed").rename(box.folder)
    return receipts, synced


@pytest.mark.parametrize("seed", range(12))
async def test_a_hole_in_what_was_not_synced_is_a_torn_tail(box: LogBox, seed: int) -> None:
    receipts, synced = await cut_off(box)
    segment, random = last(box), Random(seed)
    data = bytearray(segment.read_bytes())
    firsts = [synced, *range(synced // SECTOR * SECTOR + SECTOR, len(data), SECTOR)]
    lost = random.sample(firsts[:-1], random.randrange(1, 4))
    for first in lost:
        end = first // SECTOR * SECTOR + SECTOR
        data[first:end] = bytes(end - first)
    segment.write_bytes(data)
    seen = verify(box.folder, against=receipts, public_keys=[box.key])
    assert seen.ok, seen.all_findings
    assert "torn tail" in seen.statuses
    receipts += await box.refill(2)
    after = verify(box.folder, against=receipts, public_keys=[box.key])
    assert after.ok, after.all_findings
    assert "torn tail" not in after.statuses
    (torn,) = [shown.body["torn_bytes"] for shown in run_show(box.folder, kind="recovery")]
    assert isinstance(torn, int)
    assert 0 < torn <= len(data) - synced
    assert torn >= len(data) - min(lost)


async def test_a_hole_in_what_a_checkpoint_covers_is_no_crash(box: LogBox) -> None:
    """The log does not open, and what is left of it stays as it is."""
    held = await box.refill(12)
    segment = last(box)
    data = bytearray(segment.read_bytes())
    data[SECTOR : 2 * SECTOR] = bytes(SECTOR)
    segment.write_bytes(data)
    assert not verify(box.folder, against=held[-1:], public_keys=[box.key]).ok
    with pytest.raises(LogDamaged):
        await box.open()
    assert segment.read_bytes() == data


def test_a_zero_byte_that_ends_no_sector_is_no_hole() -> None:
    data = bytearray(b"x" * 1100)
    data[700] = 0
    assert sound(bytes(data)) == data
    data[900:1024] = bytes(124)
    assert sound(bytes(data)) == data[:900]
    assert sound(b"ab\0\0") == b"ab"
    assert sound(b"") == b""


def test_many_zero_bytes_are_looked_at_once_each() -> None:
    """Whoever writes a file of them would else keep each start and each verification for hours."""
    data, began = b"\0x" * 400_000, time.perf_counter()
    assert sound(data) == data
    assert time.perf_counter() - began < 5
