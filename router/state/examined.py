"""What a Redis that is to count says of itself: asked by `check --live`, before requests are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Final, Protocol, cast

from policies.findings import Finding, Severity
from router.state.opening import connected, to_redis

PATIENCE: Final = 10.0
"""Seconds for all of it."""
KEEPS: Final = "noeviction"


class _Asked(Protocol):
    """What is asked of a client beside its scripts."""

    async def info(self, section: str) -> Mapping[str, object]:
        """What servers say of themselves."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


async def examine(url: str, prefix: str, patience: float = PATIENCE) -> list[Finding]:
    """What is wrong with the Redis, or the cluster, at a URL.

    Raises:
        ValueError: it is no such URL.
    """
    client = to_redis(url)
    try:
        async with asyncio.timeout(patience):
            await connected(client)
            await client.eval("return 1", 1, f"{prefix}:check")
            policies = await _evictions(client)
    except Exception as error:  # noqa: BLE001 - whatever it is, requests would meet it too
        told = (
            f"`state.redis` can't be used ({type(error).__name__}): each process would count "
            "limits alone, and refuse idempotency keys"
        )
        return [Finding(Severity.ERROR, "state_unusable", told)]
    finally:
        await cast("_Asked", client).aclose()
    if not policies:
        return []
    told = (
        f"`state.redis` drops keys when its memory is full (`maxmemory-policy {policies[0]}`): "
        "limits and burst budgets would begin anew, and what has an idempotency key run twice; set "
        f"`{KEEPS}`"
    )
    return [Finding(Severity.WARNING, "state_evicts", told)]


async def _evictions(client: object) -> list[str]:
    """By what its servers drop keys, where they do; nothing where they don't say."""
    from redis.exceptions import ResponseError

    with contextlib.suppress(ResponseError):  # not allowed to ask, which costs nobody a request
        told = await cast("_Asked", client).info("memory")
        return sorted(_dropping(told))
    return []


def _dropping(told: Mapping[str, object]) -> Iterator[str]:
    for one in told.values():  # of a cluster: a mapping of each node
        if isinstance(one, Mapping):
            yield from _dropping(one)
    policy = told.get("maxmemory_policy", KEEPS)
    if told.get("maxmemory") and policy != KEEPS:
        yield str(policy)
