import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from router.audit.disk import LEFT, ROOM, LocalDisk, has_room
from router.audit.errors import LogLocked, LogUnavailable


def test_open_makes_folders_and_appends(tmp_path: Path) -> None:
    disk, path = LocalDisk(), tmp_path / "a" / "b" / "file"
    for part in (b"one", b"two"):
        fd = disk.open(path)
        disk.write(fd, part)
        disk.sync(fd)
        disk.close(fd)
    assert path.read_bytes() == b"onetwo"


def test_names_are_synced_up_to_the_first_folder_that_was_there(tmp_path: Path) -> None:
    synced: list[str] = []

    class Watched(LocalDisk):
        def flush(self, fd: int) -> None:
            synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)

    disk = Watched()
    disk.close(disk.open(tmp_path / "a" / "b" / "file"))
    assert synced == ["b", "a", tmp_path.name]
    disk.close(disk.open(tmp_path / "a" / "b" / "file"))
    assert len(synced) == 3


def test_replace_leaves_old_or_new_and_no_draft(tmp_path: Path) -> None:
    disk, path = LocalDisk(), tmp_path / "checkpoint"
    disk.replace(path, b"old")
    disk.replace(path, b"new")
    assert path.read_bytes() == b"new"

    class Full(LocalDisk):
        def write(self, fd: int, data: bytes) -> None:
            raise OSError(28, "no space left on device")

    with pytest.raises(OSError, match="no space"):
        Full().replace(path, b"newer")
    assert path.read_bytes() == b"new"


def test_a_draft_that_finds_no_room_takes_none_either(tmp_path: Path) -> None:
    """Each start has another name for it, so what they left would add up on a full disk."""
    path = tmp_path / "leaves"

    class Full(LocalDisk):
        def write(self, fd: int, data: bytes) -> None:
            super().write(fd, data[:3])
            raise OSError(errno.ENOSPC, "No space left on device")

    LocalDisk().replace(path, b"old")
    with pytest.raises(OSError, match="No space left"):
        Full().replace(path, b"newer")
    assert [one.name for one in tmp_path.iterdir()] == ["leaves"]
    assert path.read_bytes() == b"old"


def test_what_a_killed_process_was_writing_goes_at_the_next_write(tmp_path: Path) -> None:
    """Each kill left a draft under another name, whatever it was of, for good."""
    killed = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from router.audit.disk import LocalDisk\n"
        "class Killed(LocalDisk):\n"
        "    def flush(self, fd): os.kill(os.getpid(), 9)\n"
        "Killed().replace(Path(sys.argv[1]), b'half')\n"
    )
    for name in ("checkpoint", "vetoes.json"):
        subprocess.run([sys.executable, "-c", killed, str(tmp_path / name)], check=False)
    left = sorted(tmp_path.iterdir())
    assert len(left) == 2
    mine = tmp_path / ".notes.draft"
    mine.write_text("no draft of ours")
    old = mine.stat().st_mtime - 2 * LEFT
    os.utime(mine, (old, old))
    LocalDisk().replace(tmp_path / "roster", b"new")
    assert sorted(tmp_path.iterdir()) == sorted([*left, mine, tmp_path / "roster"])  # too young
    for one in left:
        os.utime(one, (old, old))
    LocalDisk().replace(tmp_path / "roster", b"newer")
    assert sorted(tmp_path.iterdir()) == [mine, tmp_path / "roster"]


def test_truncate_and_remove(tmp_path: Path) -> None:
    disk, path = LocalDisk(), tmp_path / "file"
    path.write_bytes(b"12345")
    disk.truncate(path, 2)
    assert path.read_bytes() == b"12"
    disk.remove(path)
    assert not path.exists()


def test_a_lock_is_exclusive_until_closed(tmp_path: Path) -> None:
    disk = LocalDisk()
    held = disk.lock(tmp_path / "log" / "lock", wait=False)
    with pytest.raises(LogLocked, match="give this one its own"):
        disk.lock(tmp_path / "log" / "lock", wait=False)
    disk.close(held)
    disk.close(disk.lock(tmp_path / "log" / "lock", wait=False))


def test_a_lock_where_nothing_can_be_written_is_the_logs_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file")
    with pytest.raises(LogUnavailable, match=r"can't write `.*log/local-1/lock`: Not a directory"):
        LocalDisk().lock(tmp_path / "log" / "local-1" / "lock", wait=False)


def test_a_full_device_is_an_error() -> None:
    disk = LocalDisk()
    fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space"):
        disk.write(fd, b"x")
    disk.close(fd)


@pytest.mark.parametrize(
    ("blocks", "free", "files", "left", "expected"),
    [
        (100, 50, 10, 5, True),
        (100, 0, 10, 5, False),
        (100, ROOM // 4096 - 1, 10, 5, False),
        (100, ROOM // 4096, 10, 5, True),
        (100, 50, 10, 0, False),
        (0, 0, 0, 0, True),  # it tells nothing of its size
    ],
)
def test_room_is_what_the_file_system_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    blocks: int,
    free: int,
    files: int,
    left: int,
    expected: bool,
) -> None:
    told = os.statvfs_result((4096, 4096, blocks, free, free, files, left, left, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda folder: told)
    assert has_room(tmp_path) is expected


def test_a_real_folder_is_asked(tmp_path: Path) -> None:
    assert has_room(tmp_path)
    assert has_room(tmp_path / "gone"), "the next write tells"
