"""`domicile serve` as a process before a silent model server, and clients by the thousand."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from bench.machine import resident_mib, tree
from router.audit.layout import Folder
from tests.chaos.world import KEYS, Client, Heard, Question, write
from tests.router.supervisor.running import ROOT, started, until

LONG = "first_token: 10m, answer: 10m, idle: 10m"
AT_ONCE = 200
PATIENCE = 60.0
"""Seconds for what a busy machine may take long for; nothing here measures speed."""
SPARE = 500
FIRST_WORD = b'"content":"a"'


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """So many open files for this process and those it starts; skips where that isn't allowed."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE
    try:
        most = max(before[1], wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], wanted), most))
    except (ValueError, OSError):
        pytest.skip(f"{wanted} open files are not allowed here, {before[1]} are")
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@dataclass(slots=True)
class Crowded:
    """A router, its model server, and whoever is connected."""

    folder: Path
    process: Process
    upstream: Process
    port: int
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def resident(self) -> float:
        """MiB of the router."""
        return resident_mib(self.process.pid)

    @property
    def open(self) -> int:
        """Open files of the router, of all its processes."""
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in tree(self.process.pid))

    @property
    def logs(self) -> list[str]:
        """The names of its logs."""
        return Folder(self.folder / "log").log_ids()

    async def connect(self, data: bytes) -> asyncio.StreamReader:
        """One more connection on which this was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        writer.write(data)
        return reader

    async def streams(self, count: int) -> None:
        """So many streams that have begun and then say nothing."""

        async def one() -> None:
            reader = await self.connect(request("hush", stream=True))
            await reader.readuntil(FIRST_WORD)

        await by_turns(count, one)

    async def ask(self, count: int) -> list[Heard]:
        """Questions of a client with nothing special about it, one after the other."""
        client = Client(f"http://127.0.0.1:{self.port}")
        heard = [await client.ask(Question("clinic")) for _ in range(count)]
        await client.close()
        return heard

    async def leave(self, open_before: int) -> None:
        """Everybody hangs up; waits until the router has closed its side, upstream's too."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

        async def closed() -> bool:
            return self.open <= open_before + AT_ONCE

        await until(closed)

    async def end(self) -> int:
        """Stop the router; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


async def by_turns(count: int, one: Callable[[], Awaitable[None]]) -> None:
    """Do it so often, `AT_ONCE` at once."""
    left = iter(range(count))

    async def some() -> None:
        for _ in left:
            await asyncio.wait_for(one(), PATIENCE)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def request(text: str, *, stream: bool = False, more: str = "", key: str = "clinic") -> bytes:
    """A whole request as bytes; `more` are header lines."""
    messages = [{"role": "user", "content": text}]
    body = orjson.dumps({"model": "assistant", "messages": messages, "stream": stream})
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {KEYS[key]}\r\n{more}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def crowded(
    folder: Path, free_port: Callable[[], int], workers: int = 1
) -> AsyncIterator[Crowded]:
    """Start both; whatever is left at the end is killed, each by itself."""
    async with AsyncExitStack() as stack:
        upstream = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.silent", cwd=ROOT, stdout=PIPE,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        stack.push_async_callback(killed, upstream)
        assert upstream.stdout is not None
        ports = (await upstream.stdout.readline()).decode().split()
        half = len(ports) // 2
        urls = {
            f"self:{('fra1', 'par1')[number // half]}/{number % half}": f"http://127.0.0.1:{one}"
            for number, one in enumerate(ports)
        } | {"self:iad1/0": f"http://127.0.0.1:{ports[0]}"}
        port = free_port()
        many = {"clinic": 1_000_000, "games": 1_000_000}
        listening = (port, free_port())
        write(folder, urls, listening, limits=LONG, deadline="10m", concurrency=many)
        process = await started(folder, workers)
        stack.push_async_callback(killed, process)
        found = Crowded(folder, process, upstream, port)

        async def answers() -> bool:
            assert process.returncode is None, (folder / "stderr.txt").read_text()
            return (await found.ask(1))[0].status == 200

        await until(answers)
        try:
            yield found
        finally:
            for writer in found.writers:
                writer.transport.abort()


async def killed(process: Process) -> None:
    """Leave nothing behind."""
    if process.returncode is None:
        process.kill()
        await process.wait()
