"""The few file operations the log needs, behind one Protocol so that tests can make them fail."""

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from router.audit.errors import LogLocked, LogUnavailable

_DRAFT: Final = re.compile(r"\..+\.\d+\.draft")
LEFT: Final = 3600.0
"""Seconds after which nobody writes a draft any more; a process in another container, whose number
means nothing here, may write a younger one."""
ROOM: Final = 64 << 10
"""Bytes, those of a batch of entries, without which nothing more is promised."""


class Disk(Protocol):
    """Every operation raises OSError when it fails; nothing is retried behind the caller."""

    def open(self, path: Path) -> int:
        """Open for appending; a new file's name is durable when this returns."""

    def write(self, fd: int, data: bytes) -> None:
        """Write all of `data` at the end."""

    def size(self, fd: int) -> int:
        """How many bytes its file has."""

    def sync(self, fd: int) -> None:
        """Return once everything written to `fd` is on stable storage."""

    def close(self, fd: int) -> None:
        """Close a descriptor."""

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file, durably."""

    def replace(self, path: Path, data: bytes) -> None:
        """Put `data` at `path`, durably, so that a reader sees the old file or the new one."""

    def remove(self, path: Path) -> None:
        """Remove a file, durably."""

    def lock(self, path: Path, *, wait: bool) -> int:
        """Take an exclusive lock that ends with the process. LogLocked if held and not `wait`.

        LogUnavailable, and no OSError: there can be none, so nothing can be written there.
        """


def has_room(folder: Path) -> bool:
    """Whether a batch of entries still fits where `folder` is, as its file system tells.

    One that tells no size has room, and so has a folder that can't be asked: what is wrong with
    it shows at the next write.
    """
    try:
        found = os.statvfs(folder)
    except OSError:
        return True
    blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    if found.f_blocks and blocks * found.f_frsize < ROOM:
        return False
    return not found.f_files or found.f_favail > 0


@dataclass(slots=True, eq=False)
class LocalDisk:
    """The real file system."""

    _swept: set[Path] = field(default_factory=set, init=False, repr=False)

    def open(self, path: Path) -> int:
        """See Disk."""
        missing = [path, *path.parents][: [p.exists() for p in (path, *path.parents)].index(True)]
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        for new in missing:
            self._sync_folder(new.parent)
        return fd

    def write(self, fd: int, data: bytes) -> None:
        """See Disk."""
        view = memoryview(data)
        while view:
            written = os.write(fd, view)
            if written == 0:
                raise OSError(errno.EIO, "nothing was written")
            view = view[written:]

    def size(self, fd: int) -> int:
        """See Disk."""
        return os.fstat(fd).st_size

    def sync(self, fd: int) -> None:
        """See Disk."""
        os.fdatasync(fd)

    def flush(self, fd: int) -> None:
        """Metadata too: file sizes and names."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """See Disk."""
        os.close(fd)

    def truncate(self, path: Path, size: int) -> None:
        """See Disk."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            self.flush(fd)
        finally:
            os.close(fd)

    def replace(self, path: Path, data: bytes) -> None:
        """See Disk."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            try:
                self.write(fd, data)
                self.flush(fd)
                self._sweep(path.parent, os.fstat(fd).st_mtime)
            finally:
                os.close(fd)
            os.replace(draft, path)
        except OSError:
            # What fills a disk would else stay: each start has another name for it.
            draft.unlink(missing_ok=True)
            raise
        self._sync_folder(path.parent)

    def _sweep(self, folder: Path, now: float) -> None:
        """Once, remove what killed processes left half written; `now` is the disk's own time."""
        if folder in self._swept:
            return
        self._swept.add(folder)
        for left in folder.glob(".*.draft"):
            # Whoever may not remove it may still write; another process may have been quicker.
            with suppress(OSError):
                if _DRAFT.fullmatch(left.name) and now - left.stat().st_mtime > LEFT:
                    left.unlink()

    def remove(self, path: Path) -> None:
        """See Disk."""
        path.unlink()
        self._sync_folder(path.parent)

    def lock(self, path: Path, *, wait: bool) -> int:
        """See Disk."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise LogUnavailable(f"can't write `{path}`: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            os.close(fd)
            raise LogLocked(
                f"`{path.parent}` is the log of another running process; give this one its own"
            ) from error
        return fd

    def _sync_folder(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.flush(fd)
        finally:
            os.close(fd)


@contextmanager
def refused(log: Path) -> Iterator[None]:
    """Tell what the disk refuses while a log is opened. Raises LogUnavailable for OSError."""
    try:
        yield
    except OSError as error:
        raise LogUnavailable(f"the log `{log}` can't be opened: {told(error)}") from error


def told(error: BaseException, path: Path | None = None) -> str:
    """What the system refused, and of which file: what is written names none where a disk is full.

    Args:
        path: what was written to; else the error's own.
    """
    if not isinstance(error, OSError):
        return repr(error)
    where = path or error.filename
    return f"{'' if where is None else f'`{where}`: '}{error.strerror or error}"
