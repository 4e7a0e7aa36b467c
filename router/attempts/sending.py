"""Step 10, one attempt's way: encode, send, and hold the answer's frames until first content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from router.answers.framing import Framed, FramedWhole, Passed, framed
from router.answers.outcomes import Inexpressible, Told
from router.attempts.asking import timeouts_of
from router.attempts.running import Run
from router.errors import RequestError
from router.opening import (
    OpenedStream,
    OpenedWhole,
    StreamFailed,
    look_into,
    open_stream,
    open_whole,
    status_refused,
)
from router.providers.base import Ask, EqualEvents, Failure
from router.settings.role_keys import CredentialBoard
from router.transport.messages import AttemptFailed, Fate, Transport
from router.types import Candidacy

ANSWER_LIMIT: Final = 64 << 20
ERROR_TIME: Final = 2.0
"""Seconds for the body of an error: the next endpoint waits for it."""


class Sender(Protocol):
    """What an attempt is sent with: the dispatcher."""

    @property
    def transport(self) -> Transport:
        """The way out."""
        ...

    @property
    def roles(self) -> CredentialBoard:
        """The role's keys."""
        ...

    @property
    def loop_time(self) -> Callable[[], float]:
        """Loop time, in seconds."""
        ...

    @property
    def wall_time(self) -> Callable[[], float]:
        """Seconds since the epoch."""
        ...


async def answered(
    run: Run, candidacy: Candidacy, replica: str, ask: Ask, by: Sender
) -> tuple[OpenedStream | OpenedWhole, str | None]:
    """One request out, one answer in; and the provider's own id of the call.

    Raises AttemptFailed.
    """
    plan, endpoint = run.plan, candidacy.endpoint
    snapshot, now = run.snapshot, by.wall_time()
    provider = snapshot.providers[endpoint.kind]
    target = by.roles.filled(endpoint, snapshot.targets[endpoint.name][replica], now)
    try:
        request = provider.encode(ask, endpoint, target, now)
    except RequestError as error:
        raise Inexpressible(error.with_traceback(None)) from None
    timeouts = timeouts_of(plan)
    sent_at = by.loop_time()
    response = await by.transport.send(request, timeouts)
    call_id = provider.call_id(response.headers)
    until = min(sent_at + timeouts.first_byte, timeouts.deadline)
    reader: Framed | Passed | FramedWhole | None = None
    try:
        if not 200 <= response.status < 300:
            raise await status_refused(response, min(until, by.loop_time() + ERROR_TIME))
        decoder = provider.decoder(ask, endpoint, response.headers)
        if isinstance(decoder, Failure):
            try:
                await look_into(response, min(until, by.loop_time() + ERROR_TIME))
            finally:
                response.abort()
            raise Told(decoder)
        # Frames are held until first content. `EqualEvents` come only of what is asked as a stream.
        if ask.stream or isinstance(decoder, EqualEvents):
            reader = events = framed(decoder, ask.surface, response.headers)
            return await open_stream(response, events, until, by.loop_time), call_id
        reader = whole = FramedWhole(decoder, ask.surface)
        opened = await open_whole(response, whole, until, by.loop_time, ANSWER_LIMIT)
        return opened, call_id
    except AttemptFailed as error:
        failure = None if reader is None else reader.failure
        if isinstance(error, StreamFailed) and failure is not None:
            raise _told(failure, error.fate, call_id) from error
        error.call_id = call_id
        raise


def _told(failure: Failure, fate: Fate, call_id: str | None) -> Told:
    """An error inside an answer keeps the provider's meaning."""
    told = Told(failure, fate)
    told.call_id = call_id
    return told
