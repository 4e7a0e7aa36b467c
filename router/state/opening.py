"""Which ledger a router counts in: its own memory, or the Redis that its configuration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from redis.asyncio import Redis, RedisCluster

from router.config import Config, ConfigError
from router.secrets import resolve
from router.state.ledger import Ledger
from router.state.memory import MemoryLedger
from router.state.shared import Scripts, SharedLedger

CONNECT = 1.0
CLUSTER = "redis+cluster://"
"""Scheme of a cluster's URL: any of its nodes."""


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
    url = resolve(config.state.redis, environment, base).decode("utf-8", "replace")
    try:
        client = _client(url)
    except ValueError:
        raise ConfigError("`state.redis` leads to no redis:// or rediss:// URL") from None
    return SharedLedger(client, clock, config.state.share / workers)


def _client(url: str) -> Scripts:
    if url.startswith(CLUSTER):
        node = url.replace(CLUSTER, "redis://", 1)
        return cast("Scripts", RedisCluster.from_url(node, socket_connect_timeout=CONNECT))
    # redis-py types its commands for both kinds of client at once; see `Scripts`.
    return cast("Scripts", Redis.from_url(url, socket_connect_timeout=CONNECT))
