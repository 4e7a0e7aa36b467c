import subprocess
import sys
from pathlib import Path

import pytest

from router.pages import LARGE, gather, stretches

KIB = LARGE >> 10


def told(first: int, size: int, present: int, mode: str = "rw-p", name: str = "") -> str:
    """One stretch as Linux tells it; sizes in KiB."""
    inode = 0 if not name or name.startswith("[") else 17
    head = f"{first:x}-{first + size * 1024:x} {mode} 00000000 00:00 {inode}"
    head = f"{head}   {name}\n" if name else f"{head} \n"
    lines = [f"Size: {size:15} kB", "KernelPageSize:        4 kB", f"Rss: {present:16} kB"]
    return head + "\n".join([*lines, "Pss:     0 kB", "VmFlags: rd wr mr mw me ac"]) + "\n"


def test_only_whole_large_pages_of_what_is_there_are_named() -> None:
    at = 16 * LARGE
    whole = told(at, 2 * KIB, 2 * KIB) + told(
        at + 8 * LARGE + 4096, 2 * KIB, 2 * KIB, name="[heap]"
    )
    assert list(stretches(whole)) == [at, at + LARGE, at + 9 * LARGE]
    assert list(stretches(told(at, 2 * KIB, KIB))) == []
    assert list(stretches(told(at, KIB - 4, KIB - 4))) == []


def test_nothing_of_a_file_or_that_is_not_written_to_is_named() -> None:
    others = [
        ("r-xp", ""),
        ("r--p", ""),
        ("---p", ""),
        ("rw-p", "/usr/lib/x.so"),
        ("rw-p", "[stack]"),
    ]
    for mode, name in others:
        assert list(stretches(told(16 * LARGE, 4 * KIB, 4 * KIB, mode, name))) == []
    last = told(32 * LARGE, KIB, KIB)
    between = "".join(told(n * LARGE, KIB, 0, "---p") for n in range(4, 8))
    assert list(stretches(between + last)) == [32 * LARGE]


def test_where_nothing_is_told_nothing_is_done(tmp_path: Path) -> None:
    assert gather(tmp_path / "smaps") == 0


def test_what_can_not_be_read_keeps_no_router_from_starting(tmp_path: Path) -> None:
    """What confines a process may deny it; and it names files, in bytes of any kind."""
    assert gather(tmp_path) == 0
    told_of_files = tmp_path / "smaps"
    told_of_files.write_bytes(told(LARGE, 1, 1, name="/opt/\u00fc.so").encode("latin-1"))
    assert gather(told_of_files) == 0


_GATHERED = """
from router.pages import gather
kept = [bytes(1000) + n.to_bytes(4) for n in range(20_000)]
found = gather()
assert all(one == bytes(1000) + n.to_bytes(4) for n, one in enumerate(kept))
assert found >= 0
print(found)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_what_is_gathered_stays_what_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", _GATHERED], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) % LARGE == 0
