"""This process's memory in pages of 2 MiB, where the kernel can.

A request touches a little of much: of the interpreter's objects, of policies and catalogs, of what
is remembered. In pages of 4 KiB the processor can't keep in mind where all of it lies, and in a
virtual machine each place is looked up twice.

Linux gathers pages when it is asked to, from 6.1 on, whatever its setting for all processes.
Where it can't, nothing changes.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LARGE: Final = 1 << 21
_COLLAPSE: Final = 25
"""MADV_COLLAPSE."""
_FULL: Final = 0.75
"""A stretch of which less is there stays as it is: a thread's stack would be filled with zeros."""
_STRETCH: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw\S+ \S+ \S+ 0 *(?:\[heap\])?\n(?:\S+: .*\n)*?Rss: +(\d+) kB",
    re.MULTILINE,
)


def gather(smaps: Path = Path("/proc/self/smaps")) -> int:
    """Gather what is there now; gives the bytes that lie in large pages since."""
    try:
        text = smaps.read_text("utf-8", "replace")  # it names files, however these are named
    except OSError:  # no Linux, or what confines this process denies it
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    found = [at for at in stretches(text) if advise(at, LARGE, _COLLAPSE) == 0]
    return len(found) * LARGE


def stretches(smaps: str) -> Iterator[int]:
    """Where large pages may begin: within memory of the process's own that is written to, and of
    which most is there. `smaps` is `/proc/PID/smaps`."""
    for first, end, present in _STRETCH.findall(smaps):
        start, stop = int(first, 16), int(end, 16)
        if int(present) * 1024 >= _FULL * (stop - start):
            yield from range(-(-start // LARGE) * LARGE, stop - LARGE + 1, LARGE)
