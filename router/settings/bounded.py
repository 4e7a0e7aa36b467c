"""Files that somebody names, read up to a size: a device, or a log given by mistake, is told and
not read for ever. Pipes are welcome, as `<(…)` of a shell makes them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

SMALL: Final = 16 << 20
"""Bytes of what people write or copy: a key, a checkpoint, a receipt, a policy file."""
LARGE: Final = 1 << 30
"""Bytes of what grows with what it holds: a tenant's bundle, a list of findings."""
_PIECE: Final = 1 << 20


class NotRead(OSError):
    """A folder, a device, or a file over its limit; `strerror` says which and what to do."""


def read(path: Path, most: int = SMALL) -> bytes:
    """A file's bytes, `most` at most. Raises NotRead, OSError."""
    with _opened(path) as file:
        size = _size(file)
        if size > most:
            raise _too_large(path, most)
        pieces, left = [], most + 1
        while left and (piece := file.read(min(_PIECE, left))):
            pieces.append(piece)
            left -= len(piece)
    if not left:
        raise _too_large(path, most)
    return b"".join(pieces)


def read_text(path: Path, most: int = SMALL) -> str:
    """A file's text. Raises NotRead, OSError, UnicodeDecodeError."""
    return read(path, most).decode()


def lines(path: Path, most: int = SMALL) -> Iterator[bytes]:
    """A file's lines without their ends, each of `most` bytes at most, however many there are.

    Raises:
        NotRead, OSError.
    """
    with _opened(path) as file:
        _size(file)
        while line := file.readline(most + 1):
            if len(line) > most:
                raise NotRead(errno.EFBIG, f"a line is over {most} bytes", str(path))
            yield line.rstrip(b"\r\n")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except IsADirectoryError:
        told = "it is a folder, not a file; name a file in it"
        raise NotRead(errno.EISDIR, told, str(path)) from None


def _size(file: BinaryIO) -> int:
    """As the file system tells it: 0 of a pipe. Raises NotRead of a device."""
    found = os.fstat(file.fileno())
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise NotRead(errno.EINVAL, "it is a device, not a file", file.name)
    return found.st_size


def _too_large(path: Path, most: int) -> NotRead:
    return NotRead(errno.EFBIG, f"it is over {most} bytes, so not what is asked for", str(path))
