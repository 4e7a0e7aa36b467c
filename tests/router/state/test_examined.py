"""What `check --live` says of a Redis, asked of a real one."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from policies.findings import Severity
from router.state.examined import examine


async def limited(redis: Redis, memory: str, policy: str) -> None:
    await redis.config_set("maxmemory", memory)
    await redis.config_set("maxmemory-policy", policy)


@pytest.fixture
async def plain(redis: Redis) -> AsyncIterator[Redis]:
    """One as it is by default, also after the test."""
    await limited(redis, "0", "noeviction")
    yield redis
    await limited(redis, "0", "noeviction")
    await redis.acl_deluser("few")


async def test_one_that_keeps_what_it_is_told_is_well(plain: Redis, requires_redis: str) -> None:
    assert await examine(requires_redis, "domicile") == []
    assert not await plain.keys()


@pytest.mark.parametrize(
    "policy", ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"]
)
async def test_one_that_drops_keys_is_told(plain: Redis, requires_redis: str, policy: str) -> None:
    """As managed ones do by default: what has an idempotency key would run twice."""
    await limited(plain, "50mb", policy)
    (found,) = await examine(requires_redis, "domicile")
    assert (found.severity, found.code) == (Severity.WARNING, "state_evicts")
    assert policy in found.message
    await limited(plain, "0", policy)  # no limit: nothing is ever dropped
    assert await examine(requires_redis, "domicile") == []


async def allow(redis: Redis, *without: str) -> None:
    """Let `few` do all, with the password `pw`, but for these commands."""
    await redis.acl_setuser(
        "few", enabled=True, passwords=["+pw"], keys=["*"], categories=["+@all"], commands=without
    )


async def test_one_that_may_not_be_asked_is_not_blamed(plain: Redis, requires_redis: str) -> None:
    await allow(plain, "-info")
    assert await examine(requires_redis.replace("//", "//few:pw@"), "domicile") == []


@pytest.mark.parametrize("how", ["nobody", "silent", "no scripts", "wrong password"])
async def test_one_that_can_t_be_used_is_an_error(
    plain: Redis, requires_redis: str, how: str
) -> None:
    await allow(plain, "-eval")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{taken.getsockname()[1]}"
        if how == "silent":
            taken.listen()
        elif how == "no scripts":
            url = requires_redis.replace("//", "//few:pw@")
        elif how == "wrong password":
            url = requires_redis.replace("//", "//few:no@")
        (found,) = await examine(url, "domicile", 0.5)
    assert (found.severity, found.code) == (Severity.ERROR, "state_unusable")
