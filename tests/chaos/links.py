"""Two regions behind links that are cut, slow and lossy, while clients ask.

python -m tests.chaos.links FOLDER

Run it in a network namespace of its own; it makes two more. The folder then holds the evidence
that `tests.chaos.judging` reads; each phase is a line in `events.jsonl`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import orjson

from tests.chaos.town import Link, Town, stamp
from tests.router.supervisor.running import ROOT

RATE = 30
NEAR = 0.01
SLOW = 0.15
PHASES = (
    ("usual", 2.0), ("one cut", 3.5), ("joined", 4.0), ("both cut", 7.0), ("joined again", 4.0),
    ("lossy", 3.0), ("slow", 3.0),
)  # fmt: skip


class Course:
    """The phases, one after the other."""

    def __init__(self, folder: Path, links: dict[str, Link]) -> None:
        self._events = folder / "events.jsonl"
        self._fra, self._par = links["self:fra1"], links["self:par1"]

    async def run(self) -> None:
        """All phases."""
        for link in (self._fra, self._par):
            link.set(NEAR)
        for name, seconds in PHASES:
            self._begin(name)
            began = stamp()
            await asyncio.sleep(seconds)
            with self._events.open("ab") as file:
                file.write(orjson.dumps([name, "", began, stamp()]) + b"\n")

    def _begin(self, name: str) -> None:
        match name:
            case "one cut":
                self._fra.send(signal.SIGSTOP)
            case "both cut":
                self._fra.send(signal.SIGSTOP)
                self._par.send(signal.SIGSTOP)
            case "joined" | "joined again":
                self._fra.send(signal.SIGCONT)
                self._par.send(signal.SIGCONT)
            case "lossy":
                self._fra.set(NEAR, 0.03)
                self._par.set(NEAR, 0.03)
            case "slow":
                self._fra.set(SLOW)
                self._par.set(NEAR)


@asynccontextmanager
async def opened(folder: Path, links: dict[str, Link]) -> AsyncIterator[Town]:
    """A town behind these links."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        town = Town(folder, http, links)
        try:
            await town.open()
            yield town
        finally:
            code = await town.close()
            (folder / "code").write_text(str(code))


async def run(folder: Path) -> None:
    """The town, its clients, the phases."""
    links = {
        "self:fra1": Link("fra", "10.77.1.1", "10.77.1.2"),
        "self:par1": Link("par", "10.77.2.1", "10.77.2.2"),
    }
    async with opened(folder, links) as town:
        seconds = sum(seconds for _, seconds in PHASES)
        figures = (str(RATE), str(seconds), "1", str(folder / "load.jsonl"))
        command = ("-m", "tests.chaos.load", town.url, *figures)
        clients = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT)
        while not (folder / "load.jsonl").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await Course(folder, links).run()
        assert await clients.wait() == 0


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
