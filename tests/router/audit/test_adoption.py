"""A log whose process is gone is taken over by a peer, or its loss is a named gap."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from router.audit import adoption
from router.audit.adoption import SILENT, Adopted, adopt, last_good, orphans
from router.audit.commands import run_show
from router.audit.layout import Folder
from router.audit.note import create_signing_key, parse_checkpoint
from router.audit.roster import read_roster
from router.audit.verify import verify
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox


async def orphan(box: LogBox, requests: int = 3) -> list[str]:
    """`eu-2` dies with one request open; gives every checkpoint it published."""
    await box.refill(2)
    log = await box.open("eu-2")
    heads = []
    for _ in range(requests):
        await box.request(log)
        box.clock.now += 60
        head = await log.tick()
        assert head is not None
        heads.append(head.text)
    await log.commit(box.decision("left"), None)
    box.copy(box.root / "crashed")
    await log.close()
    shutil.rmtree(box.folder)
    (box.root / "crashed").rename(box.folder)
    for path in box.folder.rglob("checkpoint*"):
        os.utime(path, (box.clock.now, box.clock.now))
    return heads


async def taken(box: LogBox, log_id: str = "eu-1") -> list[Adopted]:
    settings = box.settings(log_id)
    return await adopt(settings, box.clock, box.entropy.randbytes, QuickDisk())


def events(box: LogBox) -> Iterator[tuple[str, str]]:
    yield from ((line.log, line.event) for line in read_roster(Folder(box.folder))[0])


async def test_an_orphan_is_recovered_signed_off_and_whole(box: LogBox) -> None:
    heads = await orphan(box)
    box.clock.now += SILENT + 1
    (one,) = await taken(box)
    assert (one.log, one.lost) == ("eu-2", "")
    assert list(events(box))[-3:] == [("eu-2", "start"), ("eu-2", "start"), ("eu-2", "stop")]
    shown = list(run_show(box.folder, log="eu-2"))
    assert [s.body["by"] for s in shown if s.id == "left" and s.kind == "outcome"] == ["recovery"]
    said = [s.body for s in shown if s.body.get("event") == "adopted"]
    assert said == [{"event": "adopted", "by": "eu-1"}]
    verdict = verify(
        box.folder, against=[parse_checkpoint(text) for text in heads], public_keys=[box.key]
    )
    assert verdict.ok, verdict.all_findings
    assert one.lines == next(log.size for log in verdict.logs if log.log == "eu-2")
    assert await taken(box) == []


async def test_a_log_that_may_still_have_a_process_is_left_alone(box: LogBox) -> None:
    await orphan(box)
    box.clock.now += SILENT - 1
    assert await taken(box) == []  # it may only be restarting
    box.clock.now += 2
    again = await box.open("eu-2")  # its own process is back, however late
    box.clock.now += SILENT + 1
    for path in (box.folder / "eu-2").glob("checkpoint*"):
        os.utime(path, (1, 1))
    assert await taken(box) == []
    await again.close()
    assert await taken(box) == []


async def test_nobody_adopts_its_own_log_or_one_of_another_key(box: LogBox, tmp_path: Path) -> None:
    await orphan(box)
    box.clock.now += SILENT + 1
    assert await taken(box, "eu-2") == []
    create_signing_key(tmp_path / "other.key")
    other = replace(box.settings(), signing_key=tmp_path / "other.key")
    assert list(orphans(other, box.clock.now)) == []


@pytest.mark.parametrize("cosigned", [False, True])
async def test_a_damaged_orphan_is_lost_with_its_last_good_checkpoint(
    box: LogBox, cosigned: bool
) -> None:
    heads = await orphan(box)
    folder = Folder(box.folder).log("eu-2")
    if cosigned:  # only what a witness gave back is still there
        note = folder.path / "cosigned" / "w.note"
        note.parent.mkdir()
        note.write_text(heads[1])
        folder.checkpoints.unlink()
        folder.checkpoint.write_bytes(b"\xff")
    else:
        segment = folder.segments()[0].path
        segment.write_bytes(segment.read_bytes().replace(b'"score":17', b'"score":71', 1))
    good = parse_checkpoint(heads[1 if cosigned else -1])
    assert last_good(folder, box.key) == good
    box.clock.now += SILENT + 1
    (one,) = await taken(box)
    assert (one.log, one.lines) == ("eu-2", good.size)
    assert "eu-2" in one.lost
    assert list(events(box))[-1] == ("eu-2", "lost")
    assert await taken(box) == []  # said once
    verdict = verify(box.folder, public_keys=[box.key])
    assert not verdict.ok, "damage stays a finding, whatever the roster says of it"
    gap = f"gap: eu-2: given up; it was lost with {good.size} lines below its last good checkpoint"
    assert gap in verdict.notices
    shutil.rmtree(folder.path)
    (missing,) = verify(box.folder, public_keys=[box.key]).all_findings
    assert missing.fault == "missing_log"
    assert f"lost with {good.size} lines" in missing.detail


async def test_an_orphan_that_never_published_is_lost_at_nothing(box: LogBox) -> None:
    await orphan(box)
    folder = Folder(box.folder).log("eu-2")
    segment = folder.segments()[0].path
    segment.write_bytes(b"junk\n" + segment.read_bytes())
    folder.checkpoint.unlink()
    folder.checkpoints.write_bytes(b'{"checkpoint":5}\nnonsense\n')
    os.utime(folder.checkpoints, (box.clock.now, box.clock.now))
    box.clock.now += SILENT + 1
    assert [(one.log, one.lines) for one in await taken(box)] == [("eu-2", 0)]


async def test_silence_without_a_stop_is_a_named_gap(box: LogBox) -> None:
    await orphan(box)
    assert not any("gap" in one for one in verify(box.folder, public_keys=[box.key]).notices)
    box.clock.now += 400
    await box.refill(1)
    verdict = verify(box.folder, public_keys=[box.key])
    assert verdict.ok
    (gap,) = (one for one in verdict.notices if one.startswith("gap"))
    assert gap.startswith("gap: eu-2: it never stopped, and has nothing of the last 4")


async def test_a_log_whose_openings_are_damaged_is_not_given_up(box: LogBox) -> None:
    await orphan(box)
    side = Folder(box.folder).log("eu-2").openings
    side.parent.mkdir(parents=True, exist_ok=True)
    side.write_bytes(b"nonsense\n")
    box.clock.now += SILENT + 1
    other = await box.open("us-1")
    box.copy(box.root / "left")
    await other.close()
    shutil.rmtree(box.folder)
    (box.root / "left").rename(box.folder)
    for path in box.folder.rglob("checkpoint*"):
        os.utime(path, (1, 1))
    box.clock.now += SILENT + 1
    waiting, whole = await taken(box)
    assert (waiting.log, "line 1" in waiting.waits) == ("eu-2", True)
    assert (whole.log, whole.waits) == ("us-1", ""), "it keeps nobody from the others"
    assert "lost" not in dict(events(box)).values()
    side.unlink()
    assert [(one.log, one.lost) for one in await taken(box)] == [("eu-2", "")]


async def test_a_peer_that_comes_too_late_takes_nothing_over_again(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orphan(box)
    box.clock.now += SILENT + 1
    seen = iter([["eu-2"]])  # what it saw before another peer was at it
    assert [one.log for one in await taken(box)] == ["eu-2"]
    monkeypatch.setattr(
        adoption, "orphans", lambda settings, now: next(seen, None) or orphans(settings, now)
    )
    assert await taken(box, "eu-3") == []
    assert [event for log, event in events(box) if log == "eu-2"] == ["start", "start", "stop"]
