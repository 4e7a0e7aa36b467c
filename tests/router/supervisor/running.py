"""`domicile serve --workers N` as real processes over a simulated fleet, for tests."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from router.simulator.fleet import SimulatedFleet
from tests.chaos.world import Client, specs, write

ROOT = Path(__file__).resolve().parents[3]
SERVE = """
import sys
from router.cli.main import main
main(["serve", "--config", sys.argv[1], "--workers", sys.argv[2]])
"""
PATIENCE = 90.0
"""Seconds for what a busy machine may take long for; nothing here measures speed."""


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    """Wait until something holds that no event tells; fail when it takes longer."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@dataclass
class Running:
    """A supervisor, its address, its fleet."""

    process: asyncio.subprocess.Process
    folder: Path
    url: str
    admin: str
    fleet: SimulatedFleet
    http: httpx.AsyncClient

    async def status(self) -> dict[str, object]:
        found: dict[str, object] = (await self.http.get(self.admin + "/status")).json()
        return found

    async def workers(self) -> list[dict[str, object]]:
        found = (await self.status())["workers"]
        assert isinstance(found, list)
        return found

    async def pids(self) -> list[int]:
        return [int(str(one["pid"] or 0)) for one in await self.workers()]

    async def serving(self) -> None:
        """Wait until every worker serves."""

        async def all_do() -> bool:
            return all(one["state"] == "serving" for one in await self.workers())

        await until(all_do)

    async def ready(self) -> None:
        """Wait until the whole is ready."""
        await until(self._is_ready)

    async def _is_ready(self) -> bool:
        assert self.process.returncode is None, self.said
        try:
            return (await self.http.get(self.url + "/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    def token(self) -> dict[str, str]:
        """The header of this machine's operator."""
        text = (self.folder / "log" / "eu-1" / "admin.token").read_text().strip()
        return {"authorization": f"Bearer {text}"}

    def clients(self, count: int) -> list[Client]:
        """Clients with connections of their own."""
        return [Client(self.url) for _ in range(count)]

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(how)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    @property
    def said(self) -> str:
        """What was written to the standard error."""
        return (self.folder / "stderr.txt").read_text()


async def started(
    folder: Path, workers: int, name: str = "domicile.yaml"
) -> asyncio.subprocess.Process:
    """Start it on the files of a folder; what it says goes to `stderr.txt` there."""
    main = str(folder / name)
    with (folder / "stderr.txt").open("ab") as said:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", SERVE, main, str(workers), cwd=ROOT, stdout=said, stderr=said,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip


@asynccontextmanager
async def running(
    folder: Path, free_port: Callable[[], int], workers: int = 2, state: str = "", limits: str = ""
) -> AsyncIterator[Running]:
    """Start it; whatever is left at the end is killed, one by one.

    `state` stands in the configuration, `limits` (`limits: {…}`) in the tenant `clinic`.
    """
    async with SimulatedFleet(specs()) as fleet, httpx.AsyncClient(trust_env=False) as http:
        port, admin = free_port(), free_port()
        more = {"clinic": limits} if limits else {}
        main = write(folder, {one.name: one.url for one in fleet}, (port, admin), more=more)
        main.write_text(main.read_text() + state)
        process = await started(folder, workers)
        one = Running(
            process, folder, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}", fleet, http
        )
        try:
            yield one
        finally:
            if process.returncode is None:
                process.kill()  # the workers see it go, and end
                await process.wait()
