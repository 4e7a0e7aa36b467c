"""How each surface says that something went wrong, as JSON or as an event mid-stream, or that all
went well."""

from __future__ import annotations

import math
from typing import Final

import orjson

from policies.model import Policy
from router.errors import RequestError
from router.relay import ErrorEvent, chat_error, messages_error, responses_error
from router.types import Arrival

PATIENCE: Final = 60.0
"""Seconds."""
_EVENTS = {"messages": messages_error, "responses": responses_error}
_MARKED: Final = frozenset({"chat.completions", "completions"})


def error_event(surface: str) -> ErrorEvent:
    """The error event of a surface's streams."""
    return _EVENTS.get(surface, chat_error)


def end_mark(surface: str) -> bytes:
    """What a surface's streams end with, where that says nothing of the answer itself."""
    return b"data: [DONE]\n\n" if surface in _MARKED else b""


def _soon(error: RequestError) -> bool:
    """Whether asking again by itself is worth a client's while. OpenAI's clients follow no time
    above `PATIENCE`, and ask at once in its place."""
    return error.answer.retry and (error.retry_after or 0.0) <= PATIENCE


async def send_error(arrival: Arrival, error: RequestError, record: str | None) -> None:
    """Answer with the error; an answer that has begun is ended by an error event."""
    exchange = arrival.exchange
    if exchange.gone:
        return
    if exchange.started:
        await exchange.end(error_event(arrival.surface.name)(error.code))
        return
    body = orjson.dumps(error.body(record))
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": arrival.id,
        "x-should-retry": "true" if _soon(error) else "false",
        **error.headers,
    }
    policy: object = arrival.snapshot.policy
    if isinstance(policy, Policy):
        headers["x-domicile-policy"] = policy.digest[:16]
    if record is not None:
        headers["x-domicile-record"] = record
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    if error.answer.leave:
        headers["connection"] = "close"
    await exchange.start(error.status, [(k.encode(), v.encode()) for k, v in headers.items()])
    # An answer to HEAD has none: what follows would be taken for the next one's beginning.
    await exchange.end(b"" if exchange.head.method == "HEAD" else body)
