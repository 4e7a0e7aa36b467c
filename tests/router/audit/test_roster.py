import pytest

from router.audit.errors import LogDamaged
from router.audit.layout import Folder
from router.audit.note import load_signer
from router.audit.roster import NO_LINE, append_roster, read_roster, roster_head
from router.audit.tree import EMPTY_ROOT
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox


def append(box: LogBox, log: str = "eu-1") -> None:
    signer = load_signer(box.key_file, log)
    append_roster(Folder(box.folder), QuickDisk(), signer, "start", 0, EMPTY_ROOT, 5.0)


def test_lines_are_signed_and_chained(box: LogBox) -> None:
    folder = Folder(box.folder)
    assert read_roster(folder) == ([], 0)
    assert (roster_head(folder).lines, roster_head(folder).digest) == (0, NO_LINE)
    append(box, "eu-1")
    append(box, "eu-2")
    (one, two), torn = read_roster(folder)
    assert torn == 0
    assert (one.previous, two.previous) == (NO_LINE, one.digest)
    assert [one.log, two.log, one.size, one.time] == ["eu-1", "eu-2", 0, 5_000_000]
    assert one.signed
    assert two.signed
    assert two.key == box.key
    assert (roster_head(folder).lines, roster_head(folder).digest) == (2, two.digest)


def test_a_torn_line_is_cut_by_the_next_append(box: LogBox) -> None:
    append(box)
    roster = box.folder / "roster.jsonl"
    whole = roster.read_bytes()
    roster.write_bytes(whole + whole[:50])
    assert read_roster(Folder(box.folder))[1] == 50
    append(box)
    lines, torn = read_roster(Folder(box.folder))
    assert (len(lines), torn) == (2, 0)
    assert lines[1].previous == lines[0].digest


def test_an_altered_line_is_no_longer_signed(box: LogBox) -> None:
    append(box)
    roster = box.folder / "roster.jsonl"
    roster.write_bytes(roster.read_bytes().replace(b'"size":0', b'"size":7'))
    assert not read_roster(Folder(box.folder))[0][0].signed


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"{", b"{ "), (b'"size":0', b'"size":"0"'), (b'"t":', b'"u":'), (b'"key":"', b'"key":"zz'),
     (b'"key":"', b'"key":"00')],
)  # fmt: skip
def test_an_unreadable_line_is_named(box: LogBox, old: bytes, new: bytes) -> None:
    append(box)
    roster = box.folder / "roster.jsonl"
    roster.write_bytes(roster.read_bytes().replace(old, new, 1))
    with pytest.raises(LogDamaged, match="roster line 1"):
        read_roster(Folder(box.folder))
