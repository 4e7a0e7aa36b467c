import json
import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from router.audit.commands import run_show
from router.audit.disk import LocalDisk
from router.audit.entry import Interned, canonical
from router.audit.errors import LogDamaged
from router.audit.layout import Folder
from router.audit.recovery import recover
from router.audit.tree import Frontier, leaf_hash
from router.audit.verify import verify
from tests.router.audit.logbox import LogBox


async def crashed(box: LogBox, requests: int, *, leave_open: int = 0) -> bytes:
    """A log whose process ended without a word; returns its last segment's bytes."""
    await box.refill(2)
    log = await box.open()
    for _ in range(requests):
        await box.request(log)
    for number in range(leave_open):
        await log.commit(box.decision(f"open{number}"), None)
    box.copy(box.root / "crashed")
    await log.close()
    shutil.rmtree(box.folder)
    (box.root / "crashed").rename(box.folder)
    return last(box).read_bytes()


def last(box: LogBox) -> Path:
    return max(box.folder.glob("eu-1/segments/*.jsonl"))


async def test_what_a_crash_left_open_is_settled_once(box: LogBox) -> None:
    await crashed(box, 3, leave_open=2)
    before = verify(box.folder, public_keys=[box.key])
    assert before.ok
    assert any("2 requests are open" in notice for notice in before.logs[0].notices)
    for _ in range(2):
        log = await box.open()
        await log.close()
    settled = [shown for shown in run_show(box.folder, kind="outcome") if "by" in shown.body]
    assert {shown.id: shown.body for shown in settled} == {
        "open0": {"status": "unknown", "by": "recovery"},
        "open1": {"status": "unknown", "by": "recovery"},
    }
    assert [shown.body for shown in run_show(box.folder, kind="recovery")] == [
        {"torn_bytes": 0, "settled": 2}
    ]
    assert verify(box.folder, public_keys=[box.key]).ok


async def test_a_tail_cut_at_every_byte_is_torn_never_tampering(box: LogBox) -> None:
    data = await crashed(box, 1, leave_open=1)
    pristine = box.copy(box.root / "pristine")
    lines = data.split(b"\n")[:-1]
    start = len(data) - len(lines[-1]) - len(lines[-2]) - 2  # the last two lines
    for cut in range(start, len(data)):
        shutil.rmtree(box.folder)
        shutil.copytree(pristine, box.folder)
        last(box).write_bytes(data[:cut])
        torn = not data[:cut].endswith(b"\n")
        seen = verify(box.folder, public_keys=[box.key])
        assert seen.ok, (cut, seen.all_findings)
        assert ("torn tail" in seen.statuses) == torn
        if cut % 8 == 0:
            log = await box.open()
            await log.close()
            after = verify(box.folder, public_keys=[box.key])
            assert after.ok, (cut, after.all_findings)
            assert "torn tail" not in after.statuses
            said = [shown.body["torn_bytes"] for shown in run_show(box.folder, kind="recovery")]
            assert (said == [len(data[:cut].split(b"\n")[-1])]) if torn else True


async def test_derived_files_are_made_again(box: LogBox) -> None:
    await crashed(box, 3)
    sidecar = last(box).with_suffix(".leaves")
    good = sidecar.read_bytes()
    for bad in (good[:-40], good + b"x", b"", bytes(len(good))):
        sidecar.write_bytes(bad)
        recover(Folder(box.folder).log("eu-1"), "eu-1", LocalDisk())
        assert sidecar.read_bytes() == good
    sidecar.unlink()
    recover(Folder(box.folder).log("eu-1"), "eu-1", LocalDisk())
    assert sidecar.read_bytes() == good


async def test_an_empty_last_segment_is_removed(box: LogBox) -> None:
    await crashed(box, 2)
    folder = Folder(box.folder).log("eu-1")
    state = recover(folder, "eu-1", LocalDisk())
    for content in (b"", b'{"f":1,"i"'):
        segment = folder.segment(state.frontier.size)
        segment.path.write_bytes(content)
        segment.leaves.write_bytes(b"")
        again = recover(folder, "eu-1", LocalDisk())
        assert again.frontier.root() == state.frontier.root()
        assert again.torn == len(content)
        assert not segment.path.exists()


async def test_a_new_log_may_crash_before_its_first_line(box: LogBox) -> None:
    folder = Folder(box.folder).log("eu-1")
    segment = folder.segment(0)
    segment.path.parent.mkdir(parents=True)
    segment.path.write_bytes(b'{"f":1')
    assert recover(folder, "eu-1", LocalDisk()).torn == 6
    await box.refill(1)
    assert verify(box.folder, public_keys=[box.key]).ok


@pytest.mark.parametrize("fault", ["flip", "drop", "cut", "other", "head", "garbage", "gone"])
async def test_a_log_that_contradicts_what_it_signed_does_not_open(box: LogBox, fault: str) -> None:
    await box.refill(3)
    segment = last(box)
    data = segment.read_bytes()
    lines = data.splitlines(keepends=True)
    if fault == "flip":
        segment.write_bytes(data.replace(b'"score":17', b'"score":18', 1))
    elif fault == "drop":
        segment.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    elif fault == "cut":
        segment.write_bytes(b"".join(lines[:-1]))
    elif fault == "other":
        (box.folder / "eu-1").rename(box.folder / "eu-2")
    elif fault == "head":
        (box.folder / "eu-1" / "checkpoint").write_bytes(b"\xff")
    elif fault == "garbage":
        segment.write_bytes(b"".join([*lines[:3], b"garbage\n", *lines[3:]]))
    else:
        segment.unlink()
    with pytest.raises(LogDamaged):
        await box.open("eu-2" if fault == "other" else "eu-1")


async def test_requests_open_across_a_rotation_are_settled(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=1500)
    log = await box.open()
    await log.commit(box.decision("long"), None)
    for _ in range(30):
        await box.request(log)
    box.copy(tmp_path / "crashed")
    await log.close()
    shutil.rmtree(box.folder)
    (tmp_path / "crashed").rename(box.folder)
    assert len(list(box.folder.glob("eu-1/segments/*.jsonl"))) > 3
    log = await box.open()
    await log.close()
    assert [s.body["by"] for s in run_show(box.folder, request_id="long", kind="outcome")] == [
        "recovery"
    ]
    assert verify(box.folder, public_keys=[box.key]).ok


async def test_what_was_signed_is_recalled_as_it_would_be_examined(tmp_path: Path) -> None:
    """With each of the checkpoints a log ever had, and without one, the same is found."""
    box = LogBox(tmp_path, segment_bytes=4000)
    await box.refill(9)
    log = await box.open()
    shared = Interned({"tenant": "late", "allowed": ["IT"]})
    for _ in range(4):
        await box.request(log, shared)
    for name in ("a", "b", "c"):
        await log.commit(box.decision(name, shared), None)
        box.clock.now += 60
        await log.tick()
    await log.record(box.outcome("b"))
    box.copy(tmp_path / "crashed")
    await log.close()
    folder = Folder(tmp_path / "crashed").log("eu-1")
    signed = [
        json.loads(line)["checkpoint"] for line in folder.checkpoints.read_bytes().splitlines()
    ]
    inside = [text for text in signed if int(text.split("\n")[1]) > folder.segments()[-1].first + 1]
    assert len(inside) >= 3
    folder.checkpoint.unlink()
    examined = recover(folder, "eu-1", LocalDisk())
    assert set(examined.open) == {"a", "c"}
    assert examined.interned
    for text in signed:
        folder.checkpoint.write_text(text)
        recalled = recover(folder, "eu-1", LocalDisk())
        assert (recalled.frontier.size, recalled.frontier.root()) == (
            examined.frontier.size,
            examined.frontier.root(),
        )
        rest = ("segment", "segment_bytes", "segment_time", "open", "interned", "newest", "torn")
        assert [getattr(recalled, name) for name in rest] == [
            getattr(examined, name) for name in rest
        ]


@pytest.mark.parametrize("line", [b"garbage", b'{"b":{},"k":"outcome","r":"a"}', b'{"k":"x"}'])
async def test_a_line_after_what_was_signed_is_still_examined(box: LogBox, line: bytes) -> None:
    await box.refill(3)
    with last(box).open("ab") as file:
        file.write(line + b"\n")
    number = last(box).read_bytes().count(b"\n")
    with pytest.raises(LogDamaged, match=f"line {number}: "):
        await box.open()


@pytest.mark.parametrize("strict", [True, False])
async def test_who_forges_lines_and_checkpoint_without_the_key_is_found_after_a_start(
    box: LogBox, strict: bool
) -> None:
    """What a checkpoint covers is not examined again, whoever wrote the checkpoint."""
    await box.refill(4)
    folder = Folder(box.folder).log("eu-1")
    lines = last(box).read_bytes().splitlines()
    place = max(n for n, line in enumerate(lines) if b'"k":"decision"' in line)
    forged = json.loads(lines[place])
    forged["b"]["forged"] = 1
    lines[place] = canonical(forged) if strict else json.dumps(forged).encode()
    last(box).write_bytes(b"".join(line + b"\n" for line in lines))
    frontier = Frontier()
    frontier.extend(map(leaf_hash, lines))
    head = folder.checkpoint.read_text().split("\n")
    assert int(head[1]) == len(lines)
    head[2] = b64encode(frontier.root()).decode()
    folder.checkpoint.write_text("\n".join(head))
    log = await box.open()
    await box.request(log)
    await log.close()
    found = verify(box.folder, public_keys=[box.key])
    assert not found.ok
    assert "split_view" in {one.fault for one in found.logs[0].findings}


async def test_a_torn_list_of_checkpoints_is_mended_however_long_it_is(box: LogBox) -> None:
    await box.refill(2)
    checkpoints = Folder(box.folder).log("eu-1").checkpoints
    good = checkpoints.read_bytes()
    long = good + b"".join(b"%06d" % number for number in range(30_000))  # 180,000 bytes, no end
    checkpoints.write_bytes(long)
    recover(Folder(box.folder).log("eu-1"), "eu-1", LocalDisk())
    assert checkpoints.read_bytes() == good
    checkpoints.write_bytes(long[len(good) :])
    recover(Folder(box.folder).log("eu-1"), "eu-1", LocalDisk())
    assert checkpoints.read_bytes() == b""
