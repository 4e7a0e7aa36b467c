"""When a request must be over: the router's own limit, or what its client says if that is sooner.

A client that has given up may not close its connection; what it said beforehand ends its request
all the same.
"""

from __future__ import annotations

import asyncio
from typing import Final

from policies.measures import duration
from router.errors import RequestError
from router.inbound.exchange import Exchange, Prompt

HEADER: Final = b"x-domicile-deadline"


def seconds_for(said: bytes | None, most: float) -> float:
    """Seconds that a request may take in all, `most` if its header (`30s`) doesn't say less.

    Raises:
        RequestError: the header is no time.
    """
    if said is None:
        return most
    name = HEADER.decode()
    try:
        asked = duration(said.decode("latin-1"))
    except ValueError:
        asked = 0.0
    if asked <= 0:
        message = f"`{name}` must be a time above 0 with its unit, as `30s` or `500ms`"
        raise RequestError("invalid_header", message, param=name)
    return min(asked, most)


def here(exchange: Exchange, limit: int) -> bytes | None:
    """The request's body where it is here already; else `None`, and see `whole_body`."""
    return exchange.here(limit) if isinstance(exchange, Prompt) else None


async def whole_body(exchange: Exchange, limit: int, until: float) -> bytes:
    """The request's body; `until` is the request's deadline on the loop's clock.

    Raises:
        RequestError: it is above `limit` bytes, or its client takes too long to send it.
        ClientGone: it left.
    """
    found = here(exchange, limit)
    if found is not None:
        return found
    try:
        async with asyncio.timeout_at(until):
            return await exchange.body(limit)
    except TimeoutError:
        message = "the body did not come whole before the request's deadline; send it faster"
        raise RequestError("deadline", message) from None
