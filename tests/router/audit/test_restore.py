"""What was sealed comes back from the objects alone, and verifies, or says what is wrong."""

from pathlib import Path

import pytest

from router.audit.layout import Folder
from router.audit.note import parse_checkpoint
from router.audit.reading import LogReader
from router.audit.restore import RestoreRefused, restore
from router.audit.sealing import SealRefused, compressed, uncompressed
from router.audit.verify import verify
from tests.router.audit.logbox import LogBox
from tests.router.audit.sealable import fill, sealer
from tests.router.audit.shelf import Shelf


async def sealed(box: LogBox) -> Shelf:
    await fill(box)
    await fill(box)
    shelf = Shelf()
    list(sealer(box, shelf).run())
    return shelf


async def test_it_verifies_as_far_as_it_was_sealed(box: LogBox, tmp_path: Path) -> None:
    shelf = await sealed(box)
    there = restore(shelf, "logs/", tmp_path / "copy")
    size = Folder(box.folder).log("eu-1").segments()[-1].first
    assert dict(there.sizes) == {"eu-1": size}
    assert (there.objects, list(there.mutable)) == (len(shelf.objects), [])
    inner = parse_checkpoint(Folder(tmp_path / "copy").log("eu-1").checkpoint.read_text())
    verdict = verify(tmp_path / "copy", against=[inner], public_keys=[box.key], sealed=there.sizes)
    assert verdict.all_findings == []
    assert verdict.logs[0].size == size
    notices = verdict.logs[0].notices
    assert any(f"sealed up to {size}: " in one for one in notices), notices
    copied = list(LogReader(Folder(tmp_path / "copy").log("eu-1")).entries())
    assert copied == list(LogReader(Folder(box.folder).log("eu-1")).entries())[: len(copied)]
    assert sorted(p.name for p in (tmp_path / "copy" / "snapshots").iterdir()) == sorted(
        p.name for p in (box.folder / "snapshots").iterdir()
    )


async def test_an_anchor_above_it_is_said_and_no_false_alarm(box: LogBox, tmp_path: Path) -> None:
    shelf = await sealed(box)
    there = restore(shelf, "logs/", tmp_path / "copy")
    newest = parse_checkpoint(Folder(box.folder).log("eu-1").checkpoint.read_text())
    verdict = verify(tmp_path / "copy", against=[newest], public_keys=[box.key], sealed=there.sizes)
    assert verdict.all_findings == []
    assert any("lines that heads cover" in one for one in verdict.logs[0].notices)
    # Without saying that it was restored, the same is a truncated log.
    plain = verify(tmp_path / "copy", against=[newest], public_keys=[box.key])
    assert "truncated" in {one.fault for one in plain.all_findings}


async def test_a_changed_segment_is_found_although_it_was_sealed_so(
    box: LogBox, tmp_path: Path
) -> None:
    shelf = await sealed(box)
    key = next(key for key in shelf.created if key.endswith("segment.jsonl.zst"))
    data, until = shelf.objects[key]
    text = uncompressed(key, data).replace(b'"status":"ok"', b'"status":"no"', 1)
    shelf.objects[key] = (compressed(text), until)
    there = restore(shelf, "logs/", tmp_path / "copy")
    verdict = verify(tmp_path / "copy", public_keys=[box.key], sealed=there.sizes)
    assert verdict.all_findings


async def test_a_segment_that_is_missing_in_the_middle_is_found(
    box: LogBox, tmp_path: Path
) -> None:
    shelf = await sealed(box)
    segments = [key for key in shelf.created if key.endswith("segment.jsonl.zst")]
    del shelf.objects[segments[1]]
    there = restore(shelf, "logs/", tmp_path / "copy")
    verdict = verify(tmp_path / "copy", public_keys=[box.key], sealed=there.sizes)
    assert "segment" in {one.fault for one in verdict.all_findings}


@pytest.mark.parametrize("log", ["..", ".", "...", ".hidden"])
async def test_no_name_in_a_bucket_leads_out_of_the_folder(
    box: LogBox, tmp_path: Path, log: str
) -> None:
    shelf = await sealed(box)
    for key in list(shelf.objects):
        shelf.objects[key.replace("/eu-1/", f"/{log}/")] = shelf.objects[key]
    there = restore(shelf, "logs/", tmp_path / "deep" / "copy")
    assert dict(there.sizes).keys() == {"eu-1"}
    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["copy"]
    assert not (tmp_path / "deep" / "copy" / log / "segments").exists()


async def test_what_is_not_immutable_is_named(box: LogBox, tmp_path: Path) -> None:
    shelf = await sealed(box)
    shelf.mode = "GOVERNANCE"
    there = restore(shelf, "logs/", tmp_path / "copy")
    assert sorted(there.mutable) == sorted(shelf.objects)


async def test_what_can_not_be_restored(box: LogBox, tmp_path: Path) -> None:
    shelf = await sealed(box)
    with pytest.raises(RestoreRefused, match="not empty"):
        restore(shelf, "logs/", box.folder)
    with pytest.raises(RestoreRefused, match="no segment is sealed"):
        restore(shelf, "elsewhere/", tmp_path / "a")
    key = next(key for key in shelf.created if "/snapshots/" in key)
    until = shelf.objects[key][1]
    shelf.objects[key] = (compressed(b"{}"), until)
    with pytest.raises(RestoreRefused, match="not what its name says"):
        restore(shelf, "logs/", tmp_path / "b")
    shelf.objects[key] = (b"nonsense", until)
    with pytest.raises(SealRefused, match=r"unpacked|say a size"):
        restore(shelf, "logs/", tmp_path / "c")
