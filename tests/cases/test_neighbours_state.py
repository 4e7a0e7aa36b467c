"""Neighbours of the reports on shared state: a Redis that is not the one that it was."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from regions.document import DocumentErrors
from router.config import Config, load
from router.state.client import Ready
from router.state.ledger import Bucket, Full, Seats, Take
from router.state.opening import Named, open_answers, open_ledger, open_spending, to_redis
from router.state.shared import SharedLedger
from router.state.shared_answers import SharedAnswers
from router.state.shared_spending import SharedSpending
from router.state.spending import Budget, Claim, Spent

TOKENS = Bucket("tokens", "t/tokens", 1000, 60)
OPEN = Seats("concurrency", "t/open", 10)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[int]]:
    """The ports of two servers, the second a replica of the first."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server")
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in free]
    for one in free:
        one.close()
    running = []
    for port, more in zip(ports, ([], ["--replicaof", "127.0.0.1", str(ports[0])]), strict=True):
        words = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *more]
        running.append(
            subprocess.Popen([*words, "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
        )
    yield ports
    for process in running:
        process.terminate()
    for process in running:
        process.wait(10)


async def role(port: int, wanted: str, *of: str) -> None:
    """Make a server the primary or a replica, where `of` says of whom; wait until it is."""
    client = Redis(port=port)
    for _ in range(200):
        with suppress(RedisError, OSError):
            if of:
                await client.replicaof(*of)
                of = ()
            told = await client.info("replication")
            if (told["role"], told.get("master_link_status", "up")) == (wanted, "up"):
                break
        await asyncio.sleep(0.05)
    else:
        pytest.fail(f"no {wanted} at {port}")
    await client.aclose()


class Name:
    """What a name leads to: connections that are open stay where they are."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port to connect to."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        yield server.sockets[0].getsockname()[1]
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(asyncio.create_task(self._joined(reader, writer)))

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, back = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(passed(reader, back), passed(far, writer))


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    finally:
        writer.close()


def told(ledger: SharedLedger) -> str:
    return ledger.degraded


async def test_a_server_that_became_a_replica_is_left(two: list[int]) -> None:
    """Its open connections work, and refuse every write: limits were local for ever."""
    first, second = two
    await role(second, "slave")
    name = Name(first)
    async with name.listening() as port:
        client = Named(lambda: f"redis://127.0.0.1:{port}/0")
        ready = Ready(client, client.connect)
        ledger = SharedLedger(ready, time.monotonic, 0.5, timeout=5.0)
        await ledger.take([Take(TOKENS, 1)], [OPEN], "a")
        assert told(ledger) == ""
        await role(second, "master", "NO", "ONE")
        await role(first, "slave", "127.0.0.1", str(second))
        name.port = second
        await ledger.take([Take(TOKENS, 1)], [OPEN], "b")
        assert told(ledger).startswith("redis: ReadOnlyError")
        async with asyncio.timeout(20):
            while told(ledger):
                await asyncio.sleep(0.3)
                await ledger.take([Take(TOKENS, 1)], [], "c")
        await client.aclose()


PLAIN = """\
version: 1
router: {id: eu-1, region: self:fra1}
keys: {file: k}
policies: {baseline: [b]}
log: {dir: log, signing_key: "file:k"}
state: {redis: "env:REDIS", region: self:fra1, timeout: 5sMORE}
"""


def configured(folder: Path, more: str = "") -> Config:
    (folder / "domicile.yaml").write_text(PLAIN.replace("MORE", more))
    return load(folder / "domicile.yaml")


async def ended(store: object) -> None:
    """Close a store's connections: a router keeps them as long as it lives."""
    assert isinstance(store, SharedLedger | SharedAnswers | SharedSpending)
    await store.close()
    assert isinstance(store._redis, Ready)
    await cast("Redis", store._redis._client).aclose()


async def test_deployments_that_share_a_redis_share_nothing_else(
    tmp_path: Path, requires_redis: str
) -> None:
    """A test's requests would else use up the limits of those that count."""
    names = ["", ", prefix: staging", ", prefix: a.b-c:d"]
    found = [configured(tmp_path, name) for name in names]
    environment = {"REDIS": requires_redis}
    seat = [Seats("concurrency", f"{tmp_path.name}/open", 1)]
    for config in found:
        ledger = open_ledger(config, environment, tmp_path, time.monotonic)
        await ledger.take([], seat, "a")
        with pytest.raises(Full):
            await ledger.take([], seat, "b")
        assert told(cast("SharedLedger", ledger)) == ""
        await ended(ledger)
    kept = [open_answers(one, environment, tmp_path, time.monotonic) for one in found]
    for number, answers in enumerate(kept):
        key = f"{tmp_path.name}/key"
        assert await answers.begin(key, "digest", f"token-{number}", 60.0) is None
        await ended(answers)
    spent = [
        open_spending(one, environment, tmp_path, (time.time, time.monotonic), f"{number:032x}")
        for number, one in enumerate(found)
    ]
    burst = [Claim(Budget(tmp_path.name, "tokens", 10, 3600), 10)]
    for spending in spent:
        await spending.take(burst)
        with pytest.raises(Spent):
            await spending.take(burst)
        await ended(spending)


@pytest.mark.parametrize("name", ["", "a b", "{a}", "a{b}c", "-a", "ü", "a" * 65])
def test_a_prefix_is_a_plain_word(tmp_path: Path, name: str) -> None:
    """Braces would choose a cluster's node."""
    with pytest.raises(DocumentErrors, match="prefix"):
        configured(tmp_path, f', prefix: "{name}"')


@pytest.mark.parametrize(
    "url",
    [
        "redis://h/prod", "redis://h:6379/0/1", "redis://h/-1", "rediss://h/0x1", "redis://h?db=a",
        "redis+cluster://h/3", "redis+sentinel://h:26379/mymaster", "valkey://h", "http://h", "",
        "redis://h:99999", "h:6379",
    ],
)  # fmt: skip
def test_an_address_that_leads_elsewhere_than_it_says_is_refused(url: str) -> None:
    """Of a database that it can't read the client takes the first, which is another router's."""
    with pytest.raises(ValueError):
        to_redis(url)


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("redis://h", 0), ("redis://h/", 0), ("redis://h:6379/7", 7), ("rediss://u:p@h/15", 15),
        ("redis://h?db=3", 3), ("unix:///run/redis.sock?db=2", 2),
    ],
)  # fmt: skip
def test_the_database_is_the_one_that_it_names(url: str, database: int) -> None:
    client = cast("Redis", to_redis(url))
    assert (client.connection_pool.connection_kwargs.get("db") or 0) == database
