"""Each fault is told once, where it is, by whatever an outsider holds."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from router.audit.heads import Head
from router.audit.layout import Folder, Segment
from router.audit.locate import roots_at
from router.audit.note import parse_checkpoint
from router.audit.placing import Placing
from router.audit.reading import Place
from router.audit.scan import Part, Scan
from router.audit.tree import leaf_hash
from router.audit.verdict import Anchor, Finding
from router.audit.verify import verify
from tests.router.audit.damage import Gallery, other_history, published, unchanged
from tests.router.audit.faults import Vandal
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def gallery(tmp_path: Path) -> Gallery:
    return await Gallery.of(tmp_path)


@dataclass(frozen=True, slots=True)
class Insider:
    """Has a copy of the folder to write in, and not the key."""

    folder: Path
    gallery: Gallery

    @classmethod
    def of(cls, gallery: Gallery) -> Insider:
        return cls(gallery.box.copy(gallery.box.root / "insider"), gallery)

    @property
    def segments(self) -> list[Segment]:
        return Folder(self.folder).log("eu-1").segments()

    def write(
        self, number: int, change: Callable[[list[bytes]], object], *, hashes: bool = False
    ) -> None:
        """Change the lines of a segment; with `hashes` make the stored ones those of the lines."""
        segment = self.segments[number]
        lines = segment.path.read_bytes().splitlines(keepends=True)
        change(lines)
        segment.path.write_bytes(b"".join(lines))
        if hashes:
            segment.leaves.write_bytes(b"".join(leaf_hash(line[:-1]) for line in lines))

    def told(self, held: Sequence[Anchor]) -> list[Finding]:
        return verify(self.folder, against=held, public_keys=[self.gallery.box.key]).all_findings


def swap(one: int, other: int) -> Callable[[list[bytes]], object]:
    def change(lines: list[bytes]) -> None:
        lines[one], lines[other] = lines[other], lines[one]

    return change


def field(number: int) -> Callable[[list[bytes]], object]:
    """Another score in the decision from a line on."""

    def change(lines: list[bytes]) -> None:
        at = next(at for at in range(number, len(lines)) if b'"score":17' in lines[at])
        lines[at] = lines[at].replace(b'"score":17', b'"score":71')

    return change


Held = Callable[[Gallery], Sequence[Anchor]]
HELD: dict[str, Held] = {
    "nothing": lambda gallery: [],
    "the newest checkpoint": lambda gallery: [parse_checkpoint(gallery.heads[-1])],
    "every checkpoint": lambda gallery: [parse_checkpoint(text) for text in gallery.heads],
    "every receipt": lambda gallery: gallery.receipts,
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
@pytest.mark.parametrize("kind", ["drop", "flip", "cut", "splice", "duplicate", "drop_segment"])
def test_a_fault_is_told_once(gallery: Gallery, kind: str, held: Held) -> None:
    """Not again by each receipt after it, by the segment that follows, by a line that no longer
    follows. Of a flipped newline two lines are told, of a segment's name nothing else."""
    random = Random(7)
    for _ in range(6):
        insider = Insider.of(gallery)
        fault = getattr(Vandal(random, insider.folder, gallery.box.folder), kind)()
        if unchanged(insider.folder, gallery.box.folder) or fault.first >= gallery.size - 1:
            continue
        findings = insider.told(held(gallery))
        assert len({one.place.segment for one in findings}) == 1, (fault, findings)
        assert len(findings) <= (2 if kind == "flip" else 1), (fault, findings)
        assert findings[0].place.index == fault.first, (fault, findings)


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_two_records_that_changed_places_are_two_findings(gallery: Gallery, held: Held) -> None:
    insider = Insider.of(gallery)
    insider.write(1, swap(4, 9))
    told = insider.told(held(gallery))
    assert [one.fault for one in told] == ["moved", "moved"]
    assert {one.place.line for one in told} == {5}
    assert "lines later" in told[0].detail
    assert "lines earlier" in told[1].detail


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
@pytest.mark.parametrize(
    "change", [swap(4, 9), field(8), lambda lines: lines.pop(5)], ids=["swap", "field", "drop"]
)
def test_with_other_hashes_a_range_is_told_and_holds_the_place(
    gallery: Gallery, change: Callable[[list[bytes]], object], held: Held
) -> None:
    """Whoever alters lines can alter the stored hashes as well."""
    insider = Insider.of(gallery)
    before = insider.segments[1].path.read_bytes().splitlines()
    insider.write(1, change, hashes=True)
    after = insider.segments[1].path.read_bytes().splitlines()
    pairs = zip(before, after, strict=False)
    touched = insider.segments[1].first + next(at for at, (a, b) in enumerate(pairs) if a != b)
    told = insider.told(held(gallery))
    assert len(told) <= 3, told
    assert min(one.place.index for one in told) <= touched, told
    assert touched - min(one.place.index for one in told) < 15, "published heads bound the range"


async def test_a_record_gone_from_the_middle_is_not_told_as_the_end(tmp_path: Path) -> None:
    """Fewer lines than were signed for: which of those that nothing proves are gone isn't known."""
    gallery = await Gallery.of(tmp_path)
    insider = Insider.of(gallery)
    last = len(insider.segments) - 1
    before = insider.segments[last].path.read_bytes().splitlines()
    lost = next(at for at, line in enumerate(before) if b'"k":"outcome"' in line)
    insider.write(last, lambda lines: lines.pop(lost), hashes=True)
    (one,) = insider.told([parse_checkpoint(gallery.heads[-1])])
    assert one.place.index <= insider.segments[last].first + lost
    assert one.fault in ("truncated", "contradicted")


async def test_a_planted_fault_hides_no_other_history(gallery: Gallery, tmp_path: Path) -> None:
    """Who holds the key writes other requests, signs them, and breaks a line of theirs: what that
    line's stored hash proves is only what was signed anew."""
    before = gallery.box.copy(tmp_path / "before")
    true = await gallery.box.refill(3)
    fork = await other_history(gallery.box, tmp_path / "fork", before, 5)
    segment = Folder(fork).log("eu-1").segments()[-1]
    lines = segment.path.read_bytes().splitlines(keepends=True)
    for at in (2, len(lines) - 2):
        broken = [*lines[:at], b"{}\n", *lines[at + 1 :]]
        segment.path.write_bytes(b"".join(broken))
        head = published(gallery.box.folder)[-1]
        for anchor in (head, true[-1]):
            told = verify(fork, against=[anchor], public_keys=[gallery.box.key]).all_findings
            other = [one for one in told if one.place.index < segment.first + at]
            assert any("anchor 1" in one.detail or "receipt" in one.detail for one in other), told


def test_what_is_not_known_is_said_with_a_line_that_can_not_be_read(gallery: Gallery) -> None:
    insider = Insider.of(gallery)
    insider.write(1, lambda lines: lines.__setitem__(3, b"{}\n"), hashes=True)
    (one,) = insider.told([parse_checkpoint(gallery.heads[-1])])
    assert one.fault == "malformed"
    assert one.place.index == insider.segments[1].first + 3
    assert "can't be proved" in one.detail


async def test_a_whole_log_of_one_worker_is_missed_once(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    held: list[Anchor] = []
    for log in ("eu-1.w1", "eu-1.w2", "eu-1.w1"):
        held += await box.refill(4, log)
    shutil.rmtree(box.folder / "eu-1.w2")
    (one,) = verify(box.folder, against=held, public_keys=[box.key]).all_findings
    assert (one.fault, one.place.log) == ("missing_log", "eu-1.w2")


async def test_an_older_copy_of_the_folder_is_told_once(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    await box.refill(9)
    old = box.copy(tmp_path / "old")
    size = published(old)[-1].size
    held = await box.refill(9)
    assert verify(old, public_keys=[box.key]).statuses == ["consistent, unanchored"]
    for anchors in (held, held[-1:], published(box.folder)[-1:]):
        (one,) = verify(old, against=anchors, public_keys=[box.key]).all_findings
        assert (one.fault, one.place.index) == ("truncated", size)


def test_the_time_grows_with_the_heads_not_with_their_square(tmp_path: Path) -> None:
    """A client's file of receipts holds a head for each."""
    folder, count = Folder(tmp_path), 12_000
    leaves = [leaf_hash(str(number).encode()) for number in range(count)]
    segment = folder.log("eu-1").segment(0)
    segment.leaves.parent.mkdir(parents=True)
    segment.leaves.write_bytes(b"".join(leaves))
    roots = roots_at(b"".join(leaves), range(2, count + 1))
    given = Place("anchor", "", 0, -1)
    heads = [Head(size, root, given, given=True) for size, root in roots.items()]
    del leaves[1]
    found = Scan("eu-1", bytearray(b"".join(leaves)), {}, [Part(segment, 0, len(leaves))])
    began = time.process_time()
    (one,) = Placing(folder, found, [], heads).findings([])
    assert (one.fault, one.place.index) == ("removed", 1)
    assert time.process_time() - began < 4
