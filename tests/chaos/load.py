"""Clients at a steady rate, whatever happens to the router: what each heard is a line.

python -m tests.chaos.load URL RATE SECONDS SEED JOURNAL

The next request comes at its time, answered or not. A line is `[began, seconds, tenant, stream,
status, code, request, record, left, endpoint]`, times of the wall; what is neither a whole answer
nor a typed error is a line `{"malformed": …}`; the last one says how late a turn was at most.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import orjson
import uvloop

from tests.chaos.evidence import malformed
from tests.chaos.world import Client, Heard, Question

STREAMS = 0.2
CLIENTS = 32
"""Separate pools of connections; workers are chosen by connection."""


def question(rng: random.Random) -> Question:
    """Most may use the EU only; some hang up."""
    key = rng.choices(
        ("clinic", "games", "bank", "island", "nobody", "narrow"), (64, 24, 2, 2, 2, 6)
    )
    patience = rng.choices((None, 0.002, 0.05), (96, 2, 2))
    stream = rng.random() < STREAMS
    return Question(key[0], stream, patience=patience[0], tokens=24 if stream else 3)


def line(began: float, heard: Heard) -> list[object]:
    """What is kept of one answer."""
    code = heard.code if heard.status else ("left" if heard.left else heard.body.decode())
    names = ("x-request-id", "x-domicile-record")
    request, record = (heard.headers.get(name, "") for name in names)
    endpoint = heard.headers.get("x-domicile-endpoint", "")
    return [began, heard.seconds, heard.tenant, heard.stream, heard.status, code,
            request, record, heard.left, endpoint]  # fmt: skip


class Load:
    """Everybody who asks."""

    def __init__(self, url: str, journal: BinaryIO, rng: random.Random) -> None:
        self._clients = [Client(url) for _ in range(CLIENTS)]
        self._journal, self._rng = journal, rng
        self._open: set[asyncio.Task[None]] = set()

    async def run(self, rate: float, seconds: float, clock: Callable[[], float]) -> None:
        """Ask `rate` times a second by the loop's clock; a late turn is made good."""
        loop = asyncio.get_running_loop()
        began, latest = loop.time(), 0.0
        for number in range(int(rate * seconds)):
            wait = began + number / rate - loop.time()
            latest = max(latest, -wait)
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self._ask(self._clients[number % CLIENTS], clock))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        await asyncio.gather(*self._open)
        self._write({"latest": latest})
        for client in self._clients:
            await client.close()

    async def _ask(self, client: Client, clock: Callable[[], float]) -> None:
        began = clock()
        heard = await client.ask(question(self._rng))
        self._write(line(began, heard))
        if heard.status:
            for text in malformed([heard]):
                self._write({"malformed": text, "began": began, "seconds": heard.seconds})

    def _write(self, row: object) -> None:
        self._journal.write(orjson.dumps(row) + b"\n")


async def run(url: str, rate: float, seconds: float, seed: int, journal: Path) -> None:
    """Ask, and write down what was heard."""
    with journal.open("ab") as file:
        await Load(url, file, random.Random(seed)).run(rate, seconds, time.time)


if __name__ == "__main__":
    where, rate, seconds, seed, journal = sys.argv[1:]
    uvloop.run(run(where, float(rate), float(seconds), int(seed), Path(journal)))
