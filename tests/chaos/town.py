"""Everything of a soak as processes of their own: regions, Redis, the router with two workers.

All listens on loopback of whatever network namespace this runs in. In one of its own links can be
cut there, silently or with a reset.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.chaos.world import REPLICAS, write
from tests.router.supervisor.running import ROOT, SERVE

STATE = "state: {redis: 'file:redis.url', region: 'self:fra1'}\n"
LIMITS = "first_token: 1s, answer: 1500ms, idle: 1s"
INSIDE = 'ip link set lo up && exec "$@"'
"""For `sh -c` in a new network namespace: what follows is the program."""
_TABLE = """
add table inet soak
add set inet soak silent { type inet_service; }
add set inet soak closed { type inet_service; }
add chain inet soak way { type filter hook input priority 0; }
add rule inet soak way tcp dport @silent drop
add rule inet soak way tcp sport @silent drop
add rule inet soak way tcp dport @closed reject with tcp reset
"""


def free_ports(count: int) -> list[int]:
    """So many different ports that are free now."""
    doors = [socket.socket() for _ in range(count)]
    try:
        for door in doors:
            door.bind(("127.0.0.1", 0))
        return [int(door.getsockname()[1]) for door in doors]
    finally:
        for door in doors:
            door.close()


async def run(*command: str, given: str = "") -> str:
    """What a program says; it must end well."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate(given.encode())
    assert process.returncode == 0, f"{' '.join(command)}: {said.decode()}"
    return said.decode()


@dataclass(slots=True)
class Part:
    """A process that is killed, frozen and started again."""

    name: str
    command: Sequence[str]
    output: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it unless it runs."""
        if self.process is None:
            self.process = await self._spawn(None)

    async def _spawn(self, stdout: int | None) -> asyncio.subprocess.Process:
        with self.output.open("ab") as said:
            return await asyncio.create_subprocess_exec(
                *self.command, cwd=ROOT, stderr=said, env={"PATH": os.environ["PATH"]},
                stdout=said if stdout is None else stdout,
            )  # fmt: skip

    def send(self, number: signal.Signals) -> None:
        """Freeze it or let it run on."""
        if self.process is not None:
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            if self.process.returncode is None:
                self.process.kill()
            await self.process.wait()
            self.process = None


@dataclass(slots=True)
class Link:
    """A link to the namespace that a process has for itself; see `tests.chaos.link`."""

    name: str
    ours: str
    far: str
    process: asyncio.subprocess.Process | None = None

    async def join(self, pid: int) -> None:
        """Make it, once that process is in its own namespace."""
        own = os.readlink("/proc/self/ns/net")
        async with asyncio.timeout(30):
            while os.readlink(f"/proc/{pid}/ns/net") == own:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        command = ("-m", "tests.chaos.link", self.name, self.ours, str(pid), self.far)
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=ROOT, stdin=pipe, stdout=pipe
        )
        assert self.process.stdout is not None
        assert await self.process.stdout.readline() == b"joined\n"

    def set(self, delay: float, loss: float = 0.0) -> None:
        """Seconds each way, and the share of packets that are lost."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(f"{delay} {loss}\n".encode())

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP cuts it, SIGCONT joins it."""
        assert self.process is not None
        self.process.send_signal(number)

    async def close(self) -> None:
        """Take it away."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@dataclass(slots=True)
class Region(Part):
    """The process of one region's replicas."""

    ports: dict[str, int] = field(default_factory=dict)
    link: Link | None = None
    control: str = ""

    async def start(self) -> None:
        """Start it, and wait until its replicas listen."""
        if self.process is None:
            self.process = await self._spawn(asyncio.subprocess.PIPE)
            assert self.process.stdout is not None
            if self.link is not None:
                await self.link.join(self.process.pid)
            self.control = (await self.process.stdout.readline()).decode().strip()
            assert self.control, f"{self.name} did not start: see {self.output}"


class Town:
    """All of it, in one folder."""

    def __init__(
        self, folder: Path, http: httpx.AsyncClient, links: Mapping[str, Link] | None = None
    ) -> None:
        """`links`: the regions that are in namespaces of their own, and the way there."""
        self.folder, self.http, self._links = folder, http, links or {}
        ports = free_ports(len(REPLICAS) + 3)
        placed = dict(zip(REPLICAS, ports, strict=False))
        self.regions = {
            name: self._region(name, {r: p for r, p in placed.items() if r.startswith(name)})
            for name in ("self:fra1", "self:par1", "self:iad1")
        }
        public, admin, redis = ports[len(REPLICAS) :]
        self.url, self.admin = f"http://127.0.0.1:{public}", f"http://127.0.0.1:{admin}"
        urls = {name: f"http://{self._host(name)}:{port}" for name, port in placed.items()}
        self.config = _files(folder, urls, (public, admin), redis)
        said = folder / "router.stderr"
        serve = (sys.executable, "-c", SERVE, str(self.config), "2")
        self.router = Part("router", serve, said)
        program = shutil.which("redis-server") or "redis-server"
        options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder))
        command = (program, "--port", str(redis), *options, "--logfile", str(folder / "redis.log"))
        self.redis = Part("redis", command, folder / "redis.stderr")
        self.can_cut = False

    def _region(self, name: str, ports: dict[str, int]) -> Region:
        journal = self.folder / f"{name.removeprefix('self:')}.hits"
        named = [f"{replica}={self._host(replica)}:{port}" for replica, port in ports.items()]
        command = (sys.executable, "-m", "tests.chaos.upstream", str(journal), *named)
        link = self._links.get(name)
        if link is not None:
            command = ("unshare", "--net", "sh", "-c", INSIDE, "sh", *command)
        output = self.folder / "regions.stderr"
        return Region(name, command, output, ports=ports, link=link)

    def _host(self, replica: str) -> str:
        link = self._links.get(replica.partition("/")[0])
        return "127.0.0.1" if link is None else link.far

    async def open(self) -> None:
        """Start everything; the router last, until it is ready."""
        await self.redis.start()
        for region in self.regions.values():
            await region.start()
        await self.router.start()
        async with asyncio.timeout(90):
            while not await self._ready():  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _ready(self) -> bool:
        process = self.router.process
        assert process is not None
        assert process.returncode is None, self.router.output.read_text()
        try:
            return (await self.http.get(self.url + "/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def fence(self) -> None:
        """From now on links can be cut: this namespace is nobody else's."""
        await run("nft", "-f", "-", given=_TABLE)
        self.can_cut = True

    async def cut(self, region: str, how: str) -> None:
        """Cut a region off: `silent` drops, `closed` refuses."""
        await run("nft", "add", "element", "inet", "soak", how, self._ports(region))

    async def join(self, region: str, how: str) -> None:
        """The link is back."""
        await run("nft", "delete", "element", "inet", "soak", how, self._ports(region))

    def _ports(self, region: str) -> str:
        return "{ " + ", ".join(map(str, self.regions[region].ports.values())) + " }"

    async def control(self, replica: str, verb: str, fault: object = None) -> None:
        """Break one replica; nothing when its process is away."""
        region = self.regions[replica.partition("/")[0]]
        try:
            answer = await self.http.post(f"{region.control}/{verb}?{replica}", json=fault)
        except httpx.TransportError:
            return
        assert answer.status_code == 200, answer.text

    async def workers(self) -> list[dict[str, object]]:
        """The router's workers, as it tells."""
        found = (await self.http.get(self.admin + "/status")).json()["workers"]
        assert isinstance(found, list)
        return found

    async def reload(self) -> str:
        """Have the files looked at; gives why they are refused, if they are."""
        token = (self.folder / "log" / "eu-1" / "admin.token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        answer = await self.http.post(self.admin + "/reload", headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["refused"])

    async def metrics(self) -> dict[str, float]:
        """The router's metrics: name with labels → value."""
        text = (await self.http.get(self.admin + "/metrics")).text
        rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    async def close(self) -> int:
        """End the router in good order, the rest at once; gives the router's exit code."""
        process = self.router.process
        code = -1
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            code = await asyncio.wait_for(process.wait(), 60)
        for link in self._links.values():
            await link.close()
        for part in (self.router, self.redis, *self.regions.values()):
            await part.kill()
        return code


def _files(folder: Path, urls: dict[str, str], ports: tuple[int, int], redis: int) -> Path:
    more = {"clinic": "limits: {requests: 100000/min}"}
    main = write(folder, urls, ports, limits=LIMITS, more=more)
    main.write_text(main.read_text() + STATE)
    (folder / "redis.url").write_text(f"redis://127.0.0.1:{redis}/0")
    return main


def memory(pid: int) -> int:
    """Resident KiB of a process; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def descriptors(pid: int) -> int:
    """Open descriptors of a process; 0 when it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def alive(pids: Iterable[int]) -> list[int]:
    """Which of these processes still run."""
    return [pid for pid in pids if memory(pid)]


def stamp() -> float:
    """The wall's time, which all processes and the log share."""
    return time.time()
