from pathlib import Path

import pytest

from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.audit.scan import Scan, scan
from router.audit.structure import Structure
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def folder(tmp_path: Path) -> Folder:
    box = LogBox(tmp_path, segment_bytes=2000)
    await box.refill(12)
    return Folder(box.folder)


def look(folder: Folder, *wanted: int) -> Scan:
    return scan(folder.log("eu-1"), wanted, Structure(folder))


def test_places_and_leaves_go_by_the_names_of_segments(folder: Folder) -> None:
    found = look(folder, 0, 5, 10_000)
    second = found.parts[1]
    place = found.place(second.segment.first + 2)
    assert (place.segment, place.line) == (second.segment.name, 3)
    assert found.leaf(second.start) == bytes(found.leaves[second.start * 32 :][:32])
    assert found.leaf(10_000) is None
    assert set(found.roots) == {0, 5}
    assert not found.findings


def test_a_missing_segment_is_named_by_what_comes_next(folder: Folder) -> None:
    first, second, third, *_ = folder.log("eu-1").segments()
    second.path.unlink()
    second.leaves.unlink()
    found = look(folder)
    assert found.findings[0].fault == "segment"
    assert found.findings[0].place.segment == third.name
    assert found.findings[0].place.index == second.first
    assert found.leaf(second.first) is None
    assert found.leaf(first.first) is not None
    assert found.leaf(third.first) is not None


def test_hashes_stand_for_lines_that_others_follow(folder: Folder) -> None:
    whole = look(folder, 10_000)
    *_, second, last = folder.log("eu-1").segments()
    second.path.unlink()
    structure = Structure(folder)
    found = scan(folder.log("eu-1"), {last.first}, structure)
    assert found.leaves == whole.leaves
    assert found.roots[last.first]
    assert structure.absence.count == last.first - second.first
    [finding] = structure.absence.findings(found.size)
    assert (finding.fault, finding.place.segment) == ("segment", second.name)
    assert not found.findings
    last.path.unlink()
    assert look(folder).size == second.first, "nothing follows: the lines are gone from the end"


def test_a_torn_segment_in_the_middle_is_no_torn_tail(folder: Folder) -> None:
    first = folder.log("eu-1").segments()[0]
    first.path.write_bytes(first.path.read_bytes()[:-5])
    found = look(folder)
    assert found.torn == 0
    assert {finding.fault for finding in found.findings} == {"malformed", "segment"}


@pytest.mark.parametrize("gone", [1, 3])
async def test_lines_that_are_gone_are_told_where_they_are_gone(tmp_path: Path, gone: int) -> None:
    """Each later segment begins as far off: told of each, the one place would be lost in them."""
    box = LogBox(tmp_path, segment_bytes=2000)
    await box.refill(40)
    folder = Folder(box.folder)
    _, second, third, *others = folder.log("eu-1").segments()
    assert others
    lines = second.path.read_bytes().splitlines(keepends=True)
    second.path.write_bytes(b"".join(lines[:-gone]))
    told = [one for one in look(folder).findings if one.fault == "segment"]
    assert [(one.place.segment, one.place.index) for one in told] == [
        (third.name, third.first - gone)
    ]


@pytest.mark.parametrize("field", [b'"i":', b'"l":"', b'"p":["'])
def test_a_segment_line_must_fit(folder: Folder, field: bytes) -> None:
    second = folder.log("eu-1").segments()[1]
    data = second.path.read_bytes()
    at = data.index(field) + len(field)
    other = b"1" if data[at : at + 1] != b"1" else b"2"
    second.path.write_bytes(data[:at] + other + data[at + 1 :])
    found = look(folder)
    (finding,) = (*found.findings, *found.unfit)
    assert finding.fault == "malformed"
    assert finding.place.line == 1


def test_an_empty_log_has_no_places(tmp_path: Path) -> None:
    found = look(Folder(tmp_path), 0)
    assert found.size == 0
    assert found.place(3).segment == ""
    assert found.found_at(0, 3).index == 3


class Seen:
    def __init__(self) -> None:
        self.entries: list[Shown] = []
        self.read = 0

    def entry(self, shown: Shown) -> None:
        self.entries.append(shown)

    def segment(self, log: str, count: int) -> None:
        self.read += count


def test_a_reader_is_shown_what_was_hashed(folder: Folder) -> None:
    seen = Seen()
    log = folder.log("eu-1")
    assert not scan(log, (), Structure(folder), seen).findings
    assert seen.entries == list(LogReader(log).entries())
    assert seen.read == sum(one.path.stat().st_size for one in log.segments())


def test_a_reader_is_shown_nothing_after_the_first_fault(folder: Folder) -> None:
    second = folder.log("eu-1").segments()[1]
    second.path.unlink()
    second.leaves.unlink()
    seen = Seen()
    assert scan(folder.log("eu-1"), (), Structure(folder), seen).findings
    assert seen.entries
    assert all(one.place.index < second.first for one in seen.entries)
