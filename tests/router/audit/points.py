"""A process that dies by SIGKILL at each numbered point of the write path (see `writer.py`).

python -m tests.router.audit.points FOLDER: for each point a child writes below `FOLDER/<point>`,
appends every receipt it was given to `told.jsonl` (from there on its request may have been sent),
and is killed when it gets there for the seventh time.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random

import orjson

from router.audit.disk import LocalDisk
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox

POINTS = (
    "1 nothing written",
    "2 segment opened",
    "3 lines partly written",
    "4 lines written",
    "5 lines synced",
    "6 leaves written",
    "7 head signed",
    "8 published partly",
    "8 published, not synced",
    "8 published",
    "9 checkpoint replaced",
    "10 told",
)
TIMES = 7


class PointDisk(QuickDisk):
    """Dies at one point, once it has been there often enough."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._point = point
        self._seen: Counter[str] = Counter()
        self._paths: dict[int, Path] = {}

    def at(self, point: str) -> bool:
        """Whether this is the time to die; counts."""
        self._seen[point] += 1
        return point == self._point and self._seen[point] == TIMES

    def reached(self, point: str) -> None:
        """Die here, if it is the point."""
        if self.at(point):
            os.kill(os.getpid(), signal.SIGKILL)

    def open(self, path: Path) -> int:
        fresh = path.suffix == ".jsonl" and path.parent.name == "segments" and not path.exists()
        if path.name == "checkpoints.jsonl" and path.exists():
            self.reached("7 head signed")
        fd = LocalDisk.open(self, path)
        self._paths[fd] = path
        if fresh:
            self.reached("2 segment opened")
        return fd

    def write(self, fd: int, data: bytes) -> None:
        path = self._paths.get(fd, Path())
        if path.parent.name == "segments" and path.suffix == ".jsonl":
            self.reached("1 nothing written")
            self._torn(fd, data, "3 lines partly written")
            LocalDisk.write(self, fd, data)
            self.reached("4 lines written")
        elif path.name == "checkpoints.jsonl":
            self._torn(fd, data, "8 published partly")
            LocalDisk.write(self, fd, data)
            self.reached("8 published, not synced")
        else:
            LocalDisk.write(self, fd, data)
            if path.suffix == ".leaves":
                self.reached("6 leaves written")

    def _torn(self, fd: int, data: bytes, point: str) -> None:
        if self.at(point):
            LocalDisk.write(self, fd, data[: len(data) * 2 // 3])
            os.kill(os.getpid(), signal.SIGKILL)

    def sync(self, fd: int) -> None:
        path = self._paths.get(fd, Path())
        if path.parent.name == "segments" and path.suffix == ".jsonl":
            self.reached("5 lines synced")
        elif path.name == "checkpoints.jsonl":
            self.reached("8 published")

    def replace(self, path: Path, data: bytes) -> None:
        LocalDisk.replace(self, path, data)
        if path.name == "checkpoint":
            self.reached("9 checkpoint replaced")


async def live(root: Path, point: str) -> None:
    """Requests from several clients, heartbeats, rotations, until the end."""
    box, disk = LogBox(root, segment_bytes=900), PointDisk(point)
    log = await box.open(disk=disk)
    told = os.open(root / "told.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def client(number: int) -> None:
        for at in range(50):
            entry = box.decision(f"q{number}-{at}")
            receipt = (await log.commit(entry, None)).receipt
            os.write(told, orjson.dumps({"id": entry.id, **receipt.to_json()}) + b"\n")
            disk.reached("10 told")
            if Random(at).random() < 0.5:
                await log.record(box.outcome(entry.id))
            box.clock.now += 20
            await log.tick()

    await asyncio.gather(*(client(number) for number in range(3)))


def main(root: Path) -> None:
    """One child for each point."""
    for point in POINTS:
        folder = root / point
        folder.mkdir()
        child = os.fork()
        if child == 0:
            asyncio.run(live(folder, point))
            os._exit(1)  # it got through: the point was never reached
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"`{point}` was not reached")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
