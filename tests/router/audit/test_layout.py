import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from router.audit.layout import Folder, LogFolder, complete_lines, segment_lines


@pytest.mark.parametrize(
    ("data", "lines", "torn"),
    [(b"", [], 0), (b"a", [], 1), (b"a\n", [b"a"], 0), (b"a\nbc", [b"a"], 2),
     (b"a\n\nb\n", [b"a", b"", b"b"], 0)],
)  # fmt: skip
def test_complete_lines(data: bytes, lines: list[bytes], torn: int) -> None:
    assert complete_lines(data) == (lines, torn)


def test_segments_are_ordered_and_nothing_else_counts(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path / "eu-1")
    assert folder.segments() == []
    for first in (100, 0, 20):
        path = folder.segment(first).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"line\n")
        folder.segment(first).leaves.write_bytes(b"")
    (tmp_path / "eu-1" / "segments" / "notes.txt").write_bytes(b"")
    assert [segment.first for segment in folder.segments()] == [0, 20, 100]
    assert list(segment_lines(folder.segment(20))) == [b"line"]


def test_logs_are_the_folders_that_have_one(tmp_path: Path) -> None:
    assert Folder(tmp_path / "absent").log_ids() == []
    (tmp_path / "eu-2" / "segments").mkdir(parents=True)
    (tmp_path / "eu-1").mkdir()
    (tmp_path / "eu-1" / "checkpoints.jsonl").write_bytes(b"")
    (tmp_path / "snapshots").mkdir()
    assert Folder(tmp_path).log_ids() == ["eu-1", "eu-2"]


@contextmanager
def another_user() -> Iterator[None]:
    """As a user who may not read everything."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_log_that_may_not_be_read_is_not_passed_over() -> None:
    """Else questions and exports would leave it out, and say nothing."""
    with TemporaryDirectory() as name:
        root = Path(name)
        (root / "eu-1" / "segments").mkdir(parents=True)
        (root / "eu-2" / "segments").mkdir(parents=True)
        (root / "lost+found").mkdir(mode=0o000)  # no log's id: of a file system mounted here
        (root / "no log's id" / "segments").mkdir(parents=True)
        root.chmod(0o755)
        with another_user():
            assert Folder(root).log_ids() == ["eu-1", "eu-2", "no log's id"]
        (root / "eu-2").chmod(0o000)
        with another_user(), pytest.raises(PermissionError, match="eu-2"):
            Folder(root).log_ids()
        (root / "eu-2").chmod(0o755)
