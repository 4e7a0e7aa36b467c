"""Which ledger a router counts in: its own memory, or the Redis that its configuration names."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from router.config import Config, ConfigError, StateSection
from router.settings.secrets import resolve
from router.state.answers import Answers, MemoryAnswers, NoAnswers
from router.state.client import Ready
from router.state.ledger import Ledger
from router.state.memory import MemoryLedger
from router.state.shared import LEASE, Scripts, SharedLedger
from router.state.shared_answers import SharedAnswers
from router.state.shared_spending import SharedSpending
from router.state.spending import LocalSpending, Spending

if TYPE_CHECKING:
    from redis.asyncio import Redis

CONNECT = 1.0
CONNECTIONS = 12
"""Of each of the three stores to one Redis. More requests at once wait for one of them: the
client's own pool would refuse them, which looks like a Redis that is gone, and would keep as many
as were ever needed at once."""
# Every call has a time of ours. With one of the client's own, `asyncio.wait_for` of Python 3.11 is
# around each write, and takes a cancellation for nothing that comes as the write ends.
_DATABASE = re.compile(r"/?[0-9]*")
CLUSTER = "redis+cluster://"
"""Scheme of a cluster's URL: any of its nodes."""
WANTED = (
    "no redis:// or rediss:// URL with options that exist, nor to a "
    f"{CLUSTER} one that names a node"
)


def open_ledger(
    config: Config,
    environment: Mapping[str, str],
    base: Path,
    clock: Callable[[], float],
    workers: int = 1,
) -> Ledger:
    """The ledger of a configuration; `clock` gives monotonic seconds.

    Of several `workers` each counts its part of every limit, whenever it counts alone.

    Raises:
        ConfigError: the reference leads nowhere, or to something that is no Redis URL.
    """
    if config.state is None:
        return MemoryLedger(clock, 1 / workers)
    client = _redis(config.state, environment, base)
    share, timeout = config.state.share / workers, config.state.timeout
    lease = max(LEASE, math.ceil(config.router.limits.deadline) + 60)
    return SharedLedger(client, clock, share, config.state.prefix, timeout, lease)


def open_spending(
    config: Config,
    environment: Mapping[str, str],
    base: Path,
    both: tuple[Callable[[], float], Callable[[], float]],
    me: str,
    workers: int = 1,
) -> Spending:
    """What counts the burst budgets of a configuration.

    Args:
        both: clocks: seconds since 1970, and monotonic seconds.
        me: this process's name among all that ever counted, as random bytes in hex.
        workers: of several each counts its part of every budget, whenever it counts alone.

    Raises:
        ConfigError: as `open_ledger`.
    """
    wall, clock = both
    epoch = wall() - clock()
    if config.state is None:
        return LocalSpending(clock, 1 / workers, epoch)
    client = _redis(config.state, environment, base)
    share, timeout = config.state.share / workers, config.state.timeout
    return SharedSpending(client, clock, share, me, epoch, config.state.prefix, timeout)


def open_answers(
    config: Config,
    environment: Mapping[str, str],
    base: Path,
    clock: Callable[[], float],
    workers: int = 1,
) -> Answers:
    """Where answers under idempotency keys are kept; `clock` gives monotonic seconds.

    Raises:
        ConfigError: as `open_ledger`.
    """
    section = config.idempotency
    if config.state is None:
        if workers > 1:
            return NoAnswers()
        return MemoryAnswers(clock, section.window, section.keys, section.answers)
    client = _redis(config.state, environment, base)
    return SharedAnswers(client, section.window, config.state.prefix)


def _redis(state: StateSection, environment: Mapping[str, str], base: Path) -> Scripts:
    def read() -> str:
        return resolve(state.redis, environment, base).decode("utf-8", "replace")

    try:
        named = Named(read)
    except ValueError:
        raise ConfigError(f"`state.redis` leads to {WANTED}") from None
    return Ready(named, named.connect)


class Named:
    """The Redis at a URL that is read again before each connecting: a password is in it, which
    is rotated, and whoever went on with the old one would count alone until its process ends.

    Args:
        read: gives the URL. Raises ConfigError.

    Raises:
        ConfigError; ValueError: it is no such URL.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._url = read()
        self._client = to_redis(self._url)

    async def eval(self, script: str, numkeys: int, *keys_and_args: str) -> object:
        """See `Scripts`."""
        return await self._client.eval(script, numkeys, *keys_and_args)

    async def zrem(self, name: str, *values: str) -> object:
        """See `Scripts`."""
        return await self._client.zrem(name, *values)

    async def connect(self) -> None:
        """Connect, by the URL as it is now. What can't be read or used is nobody's new URL: a
        secret is for a moment that is written anew."""
        with contextlib.suppress(ConfigError, ValueError):
            url = await asyncio.to_thread(self._read)
            if url != self._url:
                old, self._client, self._url = self._client, to_redis(url), url
                await cast("Redis", old).aclose()
        await connected(self._client)

    async def aclose(self) -> None:
        """Close all connections."""
        await cast("Redis", self._client).aclose()


def to_redis(url: str) -> Scripts:
    """A client of the server, or the cluster, at a URL; ValueError for one that is no such URL."""
    # most routers need none of it to start
    from redis.exceptions import RedisClusterException, RedisError

    try:
        return _client(url)
    except (TypeError, RedisError, RedisClusterException) as error:  # as an option that is none
        raise ValueError("no URL of a Redis") from error


async def connected(client: Scripts) -> None:
    """Connect a client, or find out that it can't be."""
    from redis.asyncio import RedisCluster

    known = cast("Redis | RedisCluster", client)
    if isinstance(known, RedisCluster):
        await known.initialize()
        asked = [node.execute_command("PING") for node in known.get_primaries()]
        # One that is away keeps nobody from the others.
        await asyncio.gather(*asked, return_exceptions=True)
    else:
        # A call failed on one of them: that server may have become another's replica, which
        # takes no writes, while the name leads to the one that does by now.
        await known.connection_pool.disconnect(inuse_connections=False)
        await known.ping()


def _client(url: str) -> Scripts:
    from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster

    if url.startswith(CLUSTER):
        node = url.replace(CLUSTER, "redis://", 1)
        cluster = RedisCluster.from_url(node, socket_connect_timeout=CONNECT, socket_timeout=None)
        return cast("Scripts", cluster)
    if not _DATABASE.fullmatch(urlsplit(url).path) and not url.startswith("unix:"):
        raise ValueError("a path that names no database")  # the client would take the first
    # redis-py types its commands for both kinds of client at once; see `Scripts`.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=CONNECT,
        socket_connect_timeout=CONNECT,
        socket_timeout=None,
    )
    # Opens none: an option that there isn't would else be told by each request, as a Redis away.
    pool.connection_class(**pool.connection_kwargs)
    return cast("Scripts", Redis.from_pool(pool))
