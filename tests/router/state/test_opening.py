"""Which ledger a configuration asks for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis

from router.config import Config, ConfigError, load
from router.state.client import Ready
from router.state.ledger import Full, Seats
from router.state.memory import MemoryLedger
from router.state.opening import CONNECTIONS, open_ledger, to_redis
from router.state.shared import LEASE, Scripts, SharedLedger

BASE = """\
version: 1
router: {id: eu-1, region: aws:eu-central-1}
keys: {file: k}
policies: {baseline: [b]}
log: {dir: log, signing_key: file:k}
"""
STATE = "state: {redis: env:REDIS_URL, region: aws:eu-central-1, share: 0.25}\n"


def config(tmp_path: Path, text: str) -> Config:
    (tmp_path / "domicile.yaml").write_text(text)
    return load(tmp_path / "domicile.yaml")


def test_memory_by_default(tmp_path: Path) -> None:
    found = open_ledger(config(tmp_path, BASE), {}, tmp_path, lambda: 0.0)
    assert isinstance(found, MemoryLedger)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6379/0", "rediss://u:p@h:6380"])
def test_redis_by_reference(tmp_path: Path, url: str) -> None:
    found = open_ledger(config(tmp_path, BASE + STATE), {"REDIS_URL": url}, tmp_path, lambda: 0.0)
    assert isinstance(found, SharedLedger)
    assert found._lease == LEASE
    text = (BASE + STATE).replace("{id: eu-1,", "{id: eu-1, limits: {deadline: 2h},")
    slow = open_ledger(config(tmp_path, text), {"REDIS_URL": url}, tmp_path, lambda: 0.0)
    assert isinstance(slow, SharedLedger)
    assert slow._lease > 7200  # a seat outlasts its request


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"REDIS_URL": "http://h"},
        {"REDIS_URL": "redis+cluster://"},
        {"REDIS_URL": "redis+cluster://h?bogus=1"},
        {"REDIS_URL": "redis://u:p@h?bogus=1"},
        {"REDIS_URL": "redis://h?protocol=9"},
    ],
)
def test_a_wrong_reference(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        open_ledger(config(tmp_path, BASE + STATE), environment, tmp_path, lambda: 0.0)


async def test_a_crowd_is_counted_in_redis_over_few_connections(
    tmp_path: Path, requires_redis: str
) -> None:
    client = cast("Redis", to_redis(f"{requires_redis}?client_name={tmp_path.name}"))
    ledger = SharedLedger(cast("Scripts", client), lambda: 0.0, 0.25, timeout=10)
    seats = (Seats("concurrency", f"{tmp_path.name}/key", 400),)
    await asyncio.gather(*(ledger.take((), seats, f"lease-{number}") for number in range(400)))
    with pytest.raises(Full):  # counted alone, a quarter of the limit would have been full
        await ledger.take((), seats, "one more")
    assert not ledger.degraded
    clients = await client.client_list()
    await client.aclose()
    assert 0 < sum(one["name"] == tmp_path.name for one in clients) <= CONNECTIONS


async def test_a_rotated_password_is_taken_up(tmp_path: Path, redis: Redis) -> None:
    """The old one was kept until the process ended: limits were local, keys couldn't be had."""
    say: Callable[..., Awaitable[object]] = redis.execute_command
    known = redis.connection_pool.connection_kwargs
    secret, user = tmp_path / "url", tmp_path.name
    text = (
        (BASE + STATE)
        .replace("env:REDIS_URL", "file:url")
        .replace("share:", "timeout: 10s, share:")
    )

    async def rotate(password: str) -> None:
        await say("ACL", "SETUSER", user, "resetpass", f">{password}", "on")
        await say("ACL", "SETUSER", user, "~*", "+@all")
        secret.write_text(f"redis://{user}:{password}@{known['host']}:{known['port']}/0")

    await rotate("the-old-one")
    now = [0.0]
    ledger = open_ledger(config(tmp_path, text), {}, tmp_path, lambda: now[0])
    seats = (Seats("concurrency", f"{user}/key", 400),)
    try:
        await ledger.take((), seats, "first")
        await rotate("the-new-one")
        await ledger.take((), seats, "over the connection that there is")
        assert not ledger.degraded
        await say("CLIENT", "KILL", "USER", user)
        await ledger.take((), seats, "which is cut")
        now[0] += 60
        await ledger.take((), seats, "with the new one")
        assert not ledger.degraded
        secret.write_text("")  # as it is for a moment that is written anew
        await say("CLIENT", "KILL", "USER", user)
        await ledger.take((), seats, "cut again")
        now[0] += 60
        await ledger.take((), seats, "with what was read last")
        assert not ledger.degraded
    finally:
        await say("ACL", "DELUSER", user)
        await ledger.close()
        assert isinstance(ledger, SharedLedger)
        assert isinstance(ledger._redis, Ready)
        await cast("Redis", ledger._redis._client).aclose()


async def test_a_call_ends_when_it_is_cancelled_whenever_that_is(requires_redis: str) -> None:
    """Else our own time for a call is lost with it, which is a cancellation too."""
    client = cast("Redis", to_redis(requires_redis))
    await client.ping()
    for turns in range(1, 6):
        asked = asyncio.ensure_future(client.blpop("nothing", timeout=1))
        for _ in range(turns):
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    await client.aclose()


def test_a_router_that_counts_alone_does_not_load_redis() -> None:
    script = "import sys, router.state.opening; print([n for n in sys.modules if 'redis' in n][:3])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
