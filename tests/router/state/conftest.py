from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis


@pytest.fixture
async def redis(requires_redis: str) -> AsyncIterator[Redis]:
    """A client of an empty Redis."""
    client: Redis = Redis.from_url(requires_redis)
    await client.flushall()
    yield client
    await client.aclose()
