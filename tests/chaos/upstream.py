"""One region's model servers as a process of their own, so that it can be killed and frozen.

python -m tests.chaos.upstream JOURNAL NAME=HOST:PORT...

Every request is a line in the journal before it is answered: nothing that reached an upstream is
forgotten when the process is killed. The first line on the output is the control's URL.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import uvloop

from router.simulator.fleet import SimulatedFleet
from router.simulator.record import Hit
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec

ENGINE = EngineSpec(step_floor=0.004, per_sequence=0.00002, prefill_rate=100_000, max_num_seqs=256)


class Journal(list[Hit]):
    """Takes the place of a replica's record: writes each hit down and keeps none."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = file

    def append(self, hit: Hit) -> None:
        """One line, one write: whole, or not there."""
        row = [hit.request_id, hit.region, hit.replica, hit.wall]
        os.write(self._file, orjson.dumps(row) + b"\n")


async def started(stack: AsyncExitStack, fleet: SimulatedFleet) -> SimulatedFleet:
    """Start it once its addresses are there: a link may still be on its way."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await stack.enter_async_context(fleet)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
                await asyncio.sleep(0.05)


async def serve(journal: Path, named: list[str]) -> None:
    """Serve until killed."""
    specs = {}
    for one in named:
        name, _, place = one.partition("=")
        host, _, port = place.partition(":")
        specs[name] = ReplicaSpec(engine=ENGINE, host=host, port=int(port))
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    async with AsyncExitStack() as stack:
        fleet = await started(stack, SimulatedFleet(specs, control=True))
        for replica in fleet:
            replica.seen = Journal(file)
        sys.stdout.write(f"{fleet.control_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), sys.argv[2:]))
