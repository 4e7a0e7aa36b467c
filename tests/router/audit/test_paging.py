"""Pages of a log, each entry with the decision it belongs to, also across segments."""

from pathlib import Path

from router.audit.layout import Folder
from router.audit.paging import page
from router.audit.reading import LogReader
from tests.router.audit.logbox import LogBox


async def test_an_outcome_belongs_to_its_decision_though_a_segment_lies_between(
    tmp_path: Path,
) -> None:
    box = LogBox(tmp_path, segment_bytes=300)
    log = await box.open()
    first = box.decision("early")
    await log.commit(first, None)
    for _ in range(6):
        await box.request(log)
    await log.record(box.outcome("early"))
    await log.close()
    folder = Folder(box.folder).log("eu-1")
    assert len(folder.segments()) > 3
    every = list(LogReader(folder).entries())
    size = every[-1].place.index + 1
    found = list(page(folder, -1, size))
    assert [one.shown for one in found] == every
    for one in found:
        if one.shown.kind == "outcome":
            assert (one.owner.kind, one.owner.id) == ("decision", one.shown.id)
        else:
            assert one.owner == one.shown
    for after in range(-1, size):
        expected = [one for one in every if one.place.index > after]
        assert [one.shown for one in page(folder, after, size)] == expected
    assert all(one.shown.place.index < 9 for one in page(folder, -1, 9))
