"""Local copies of sealed segments go: oldest first, read back, said in the log, hashes kept."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from router.audit.bundle import prove_request, verify_bundle
from router.audit.entry import Entry
from router.audit.layout import Folder, LogFolder
from router.audit.note import parse_checkpoint
from router.audit.reading import LogReader, NotInLog
from router.audit.releasing import Releaser, ReleaseRefused, body
from router.audit.restore import restore
from router.audit.sealing import Sealed
from router.audit.tailing import Tail
from router.audit.verdict import Verdict
from router.audit.verify import verify
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox
from tests.router.audit.sealable import fill, sealer
from tests.router.audit.shelf import Shelf

DAY = 86_400.0


def log_of(box: LogBox) -> LogFolder:
    return Folder(box.folder).log("eu-1")


def releaser(box: LogBox, shelf: Shelf, local: float = DAY) -> Releaser:
    return Releaser(log_of(box), shelf, QuickDisk(), box.clock, local)


async def sealed(box: LogBox) -> Shelf:
    """Everything but the last segment is sealed and a day old; a later process goes on."""
    await fill(box)
    shelf = Shelf()
    assert len(list(sealer(box, shelf).run())) > 3
    box.clock.now += DAY
    return shelf


async def announced(box: LogBox, releasing: Releaser) -> list[Sealed]:
    """What is due, said in the log; the close publishes a checkpoint above it."""
    log = await box.open()
    due = releasing.due()
    for one in due:
        receipt = await log.record(Entry("administration", "", box.clock.now, body(one)))
        releasing.announced(one, receipt.index)
    assert releasing.run() == [], "nothing goes before a published checkpoint covers the entry"
    await log.close()
    return due


def judged(box: LogBox) -> Verdict:
    head = parse_checkpoint(log_of(box).checkpoint.read_text())
    return verify(box.folder, against=[head], public_keys=[box.key])


async def test_lines_go_and_the_log_is_still_whole(box: LogBox) -> None:
    shelf = await sealed(box)
    before = log_of(box).segments()
    releasing = releaser(box, shelf)
    due = await announced(box, releasing)
    assert [one.first for one in due] == [segment.first for segment in before[:-1]]
    assert releasing.run() == due
    assert not any(segment.path.exists() for segment in before[:-1])
    assert all(segment.leaves.exists() for segment in before)
    verdict = judged(box)
    assert verdict.all_findings == []
    assert verdict.statuses == [f"released: {due[-1].end}"]
    assert any("sealed below `logs/eu-1/`" in notice for notice in verdict.logs[0].notices)
    assert releasing.due() == []


async def test_what_is_left_is_read_and_proved(box: LogBox, tmp_path: Path) -> None:
    shelf = await sealed(box)
    releasing = releaser(box, shelf)
    due = await announced(box, releasing)
    releasing.run()
    log = log_of(box)
    assert Tail(log, -1).read(1 << 30, 1)[0].shown.place.index >= due[-1].end
    with pytest.raises(NotInLog, match="was released"):
        LogReader(log).entry(3)
    await fill(box, 2)
    head = parse_checkpoint(log.checkpoint.read_text())
    last = [one.id for one in LogReader(log).entries() if one.id][-1]
    shown = verify_bundle(prove_request(log, last, head).to_json(), [box.key])
    assert {one.id for one in shown} == {last}
    assert judged(box).ok
    done = restore(shelf, "logs/", tmp_path / "copy")
    assert done.sizes["eu-1"] == due[-1].end, "what was released is there"


async def test_lines_that_go_without_a_word_are_a_finding(box: LogBox) -> None:
    await sealed(box)
    first, second, *_ = log_of(box).segments()
    second.path.unlink()
    found = judged(box).all_findings
    assert [(one.fault, one.place.segment) for one in found] == [("segment", second.name)]
    first.path.unlink()
    assert len(judged(box).all_findings) == 2


async def test_an_altered_hash_of_a_released_line_is_found(box: LogBox) -> None:
    releasing = releaser(box, await sealed(box))
    await announced(box, releasing)
    [*_, gone] = releasing.run()
    leaves = log_of(box).segment(gone.first).leaves
    data = bytearray(leaves.read_bytes())
    data[5] ^= 1
    leaves.write_bytes(data)
    assert not judged(box).ok
    leaves.unlink()
    assert not judged(box).ok


async def test_a_crash_before_the_file_goes_begins_again(box: LogBox) -> None:
    shelf = await sealed(box)
    due = await announced(box, releaser(box, shelf))
    assert judged(box).ok
    assert judged(box).statuses == ["intact"], "said, and still here"
    again = releaser(box, shelf)
    assert await announced(box, again) == due
    assert again.run() == due
    assert judged(box).ok


async def test_nothing_goes_too_early_or_unexported(box: LogBox) -> None:
    shelf = await sealed(box)
    assert releaser(box, shelf, 2 * DAY).due() == []
    log_of(box).exports.mkdir()
    cursor = log_of(box).exports / "events.ocsf.cursor"
    second = log_of(box).segments()[1]
    cursor.write_text(f"{second.first - 1}\n")
    assert [one.first for one in releaser(box, shelf).due()] == [0]
    cursor.write_text("x")
    with pytest.raises(ReleaseRefused, match="is no index"):
        releaser(box, shelf).due()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mode": "GOVERNANCE"}, "GOVERNANCE"),
        ({"mode": ""}, "not at all"),
        ({"shorter": timedelta(days=2)}, "locked only until"),
        ({"bytes": b"x"}, "can't be read"),
    ],
)
async def test_what_is_not_there_as_it_was_sealed_stays_here(
    box: LogBox, change: dict[str, object], told: str
) -> None:
    shelf = await sealed(box)
    raw = change.pop("bytes", None)
    if isinstance(raw, bytes):
        shelf.objects = {key: (raw, until) for key, (_, until) in shelf.objects.items()}
    with pytest.raises(ReleaseRefused, match=told):
        releaser(box, replace(shelf, **change)).due()  # type: ignore[arg-type]
    log = Folder(box.folder).log("eu-1")
    assert log.hashed() == log.segments(), "nothing is released"


async def test_another_segments_object_is_not_this_ones(box: LogBox) -> None:
    shelf = await sealed(box)
    keys = [key for key in shelf.objects if key.endswith("segment.jsonl.zst")]
    shelf.objects[keys[0]] = (shelf.objects[keys[1]][0], shelf.objects[keys[0]][1])
    with pytest.raises(ReleaseRefused, match="holds something else"):
        releaser(box, shelf).due()


async def test_the_entry_of_a_release_may_be_released_too(box: LogBox) -> None:
    shelf = await sealed(box)
    first = releaser(box, shelf)
    due = await announced(box, first)
    first.run()
    await fill(box)
    list(sealer(box, shelf).run())
    box.clock.now += DAY
    second = releaser(box, shelf)
    later = await announced(box, second)
    assert later[0].first == due[-1].end
    second.run()
    said = [one for one in LogReader(log_of(box)).entries() if one.body.get("event") == "released"]
    assert [one.body["first"] for one in said] == [one.first for one in later]
    verdict = judged(box)
    assert verdict.all_findings == []
    assert verdict.statuses == [f"released: {later[-1].end}"]
