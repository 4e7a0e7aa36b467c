"""Processes under measurement: started on one core, their CPU time read from the kernel, ended."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from router.audit.disk import LocalDisk

TICK = os.sysconf("SC_CLK_TCK")


def start(
    command: Sequence[str],
    core: str,
    log: BinaryIO,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program on one core, in a process group of its own, without proxy variables."""
    whole = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()} | dict(env or {})
    return subprocess.Popen(
        ["taskset", "-c", core, *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=whole,
        cwd=folder,
        start_new_session=True,
    )


def tree(pid: int) -> list[int]:
    """A process and everything below it."""
    children: dict[int, list[int]] = {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            fields = _stat(int(one.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(one.name))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of a process tree so far: the live threads' run time, in nanosecond steps."""
    total = 0.0
    for one in tree(pid):
        for thread in Path(f"/proc/{one}/task").glob("*/schedstat"):
            try:
                total += int(thread.read_text().split()[0]) / 1e9
            except (OSError, IndexError):
                continue
    return total


def peak_mib(pid: int) -> float:
    """Peak resident memory of a process tree; what processes share counts once for each."""
    return _status_mib(pid, "VmHWM")


def resident_mib(pid: int) -> float:
    """Resident memory of a process tree now; what processes share counts once for each."""
    return _status_mib(pid, "VmRSS")


def _status_mib(pid: int, field: str) -> float:
    total = 0
    for one in tree(pid):
        try:
            found = re.search(field + r":\s+(\d+)", Path(f"/proc/{one}/status").read_text())
        except OSError:
            continue
        total += int(found[1]) if found else 0
    return total / 1024


def sync_us(folder: Path, size: int, count: int = 100) -> float:
    """One write of `size` bytes with its sync on a folder's volume, as the region log writes: the
    median in microseconds, from this process and on whatever core it has."""
    disk, path, line = LocalDisk(), folder / "sync", b"x" * size
    file = disk.open(path)
    times = []
    try:
        for _ in range(count):
            began = time.perf_counter()
            disk.write(file, line)
            disk.size(file)
            disk.sync(file)
            times.append(time.perf_counter() - began)
    finally:
        disk.close(file)
        path.unlink()
    return statistics.median(times) * 1e6


def busy_seconds(core: str) -> float:
    """How long a core has been busy since the machine started."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *values = line.split()
        if name == f"cpu{core}":
            user, nice, system, _, _, irq, soft, *_ = map(int, values)
            return (user + nice + system + irq + soft) / TICK
    return 0.0


@dataclass(slots=True)
class Share:
    """How much of a core was taken by others than the process measured, from 0 to 1."""

    core: str
    pid: int
    began: float = 0.0
    busy: float = 0.0
    own: float = 0.0

    def begin(self) -> None:
        """Remember where the counters stand."""
        self.began, self.busy = time.monotonic(), busy_seconds(self.core)
        self.own = cpu_seconds(self.pid)

    def end(self) -> float:
        """The others' share since `begin`."""
        wall = time.monotonic() - self.began
        others = busy_seconds(self.core) - self.busy - (cpu_seconds(self.pid) - self.own)
        return max(0.0, others / wall)


def stop(process: subprocess.Popen[bytes], patience: float = 10.0) -> None:
    """Ask the whole group to end, then end it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []
