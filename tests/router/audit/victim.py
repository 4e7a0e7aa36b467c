"""A process that writes until it is killed: prints each committed receipt, then goes on.

python -m tests.router.audit.victim FOLDER [OPERATION]: dies by SIGKILL before the file operation
with that number, or whenever someone kills it.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

import orjson

from router.audit.entry import Entry, Interned
from router.audit.log import AuditLog
from router.audit.settings import LogSettings
from tests.router.audit.faultydisk import FaultyDisk, killed_at


async def main(root: Path, operation: int) -> None:
    settings = LogSettings(root / "logs", "eu-1", root / "log.key", segment_bytes=4000, heartbeat=0)
    disk = FaultyDisk(fault=killed_at(operation)) if operation else FaultyDisk()
    log = await AuditLog.open(settings, clock=time.time, entropy=os.urandom, disk=disk)
    await asyncio.gather(beat(log), *(client(log, number) for number in range(4)))


async def beat(log: AuditLog) -> None:
    while True:
        await log.tick()
        await asyncio.sleep(0.01)


async def client(log: AuditLog, number: int) -> None:
    shared = Interned({"tenant": f"t{number}"})
    for at in range(100_000):
        id_ = f"{os.getpid()}-{number}-{at}"
        entry = Entry("decision", id_, time.time(), {"plan": ["a", "b"]}, shared)
        committed = await log.commit(entry, None)
        # From here on the request may have been sent: this line stands for that.
        os.write(1, orjson.dumps({"id": id_, **committed.receipt.to_json()}) + b"\n")
        await asyncio.sleep(0)
        await log.record(Entry("outcome", id_, time.time(), {"attempts": [{"endpoint": "a"}]}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
