"""A disk that fails, or dies, at a chosen operation."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from router.audit.disk import LocalDisk


class Died(BaseException):
    """Stands for the end of the process: nothing catches it and goes on."""


class QuickDisk(LocalDisk):
    """Never waits for the platter: for tests that end processes but not machines."""

    def sync(self, fd: int) -> None:
        pass

    def flush(self, fd: int) -> None:
        pass


@dataclass(slots=True)
class FaultyDisk(QuickDisk):
    """Counts operations; `fault(name, number)` may raise before each, or cut a write short."""

    fault: Callable[[str, int], None] = lambda _name, _number: None
    torn: float | None = None
    calls: list[str] = field(default_factory=list)

    def _before(self, name: str) -> None:
        self.calls.append(name)
        self.fault(name, len(self.calls))

    def open(self, path: Path) -> int:
        self._before("open")
        return LocalDisk.open(self, path)

    def write(self, fd: int, data: bytes) -> None:
        try:
            self._before("write")
        except BaseException:
            if self.torn is not None:
                LocalDisk.write(self, fd, data[: int(len(data) * self.torn)])
            raise
        LocalDisk.write(self, fd, data)

    def sync(self, fd: int) -> None:
        self._before("sync")

    def truncate(self, path: Path, size: int) -> None:
        self._before("truncate")
        LocalDisk.truncate(self, path, size)

    def replace(self, path: Path, data: bytes) -> None:
        self._before("replace")
        LocalDisk.replace(self, path, data)

    def remove(self, path: Path) -> None:
        self._before("remove")
        LocalDisk.remove(self, path)


def dies_at(number: int) -> Callable[[str, int], None]:
    """Die before the operation with this number, and at any later one."""

    def fault(_name: str, at: int) -> None:
        if at >= number:
            raise Died

    return fault


def fails(name: str, code: int, after: int = 0) -> Callable[[str, int], None]:
    """Raise OSError(code) at each operation of this name with a number above `after`."""

    def fault(called: str, at: int) -> None:
        if called == name and at > after:
            raise OSError(code, os.strerror(code))

    return fault


def killed_at(number: int) -> Callable[[str, int], None]:
    """A true SIGKILL before the operation with this number."""

    def fault(_name: str, at: int) -> None:
        if at == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault
