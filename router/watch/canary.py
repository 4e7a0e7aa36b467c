"""What an engine's answer to a canary says of it. Pure but for reading the answer.

It is judged as a client's answer is: a page of something else that stands at the address, however
kindly it says 200 or leads elsewhere, is no engine that works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from regions.model import Endpoint
from router.answers.framing import FramedWhole
from router.opening import StatusRefused, StreamFailed, open_whole
from router.providers.base import Ask, EqualEvents, Failure, Kind, Provider
from router.providers.failures import error_in_answer
from router.transport.messages import AttemptFailed, OutboundResponse
from router.watch.verdicts import Verdict, by_status

LARGEST: Final = 1 << 20
_MEANT: Final = {
    Kind.LOAD: by_status(429),
    Kind.MISSING: Verdict.ABSENT,
    Kind.AUTH: Verdict.AUTH,
}


async def judged(
    provider: Provider,
    ask: Ask,
    endpoint: Endpoint,
    response: OutboundResponse,
    until: float,
    clock: Callable[[], float],
) -> Verdict:
    """The verdict of an answer, read by `until` (loop time).

    Raises AttemptFailed for one that broke off, or did not come in time.
    """
    decoder = provider.decoder(ask, endpoint, response.headers)
    if isinstance(decoder, Failure | EqualEvents):
        response.abort()
        return Verdict.DOWN
    whole = FramedWhole(decoder, ask.surface)
    try:
        await open_whole(response, whole, until, clock, LARGEST)
    except StatusRefused as error:
        told = provider.failure(error.status, error.headers, error.body, ask.created)
        return by_answer(error.status, told)
    except StreamFailed as error:
        return by_error(whole.failure or error_in_answer(error.error))
    except AttemptFailed as error:
        if error.code in ("bad_answer", "empty"):
            return Verdict.DOWN
        raise
    return Verdict.ALIVE


def by_error(failure: Failure) -> Verdict:
    """What an error inside an answer of success says: as the status would that it should have had.
    Too much to do, and a mistake of ours, are told by an engine that works."""
    if failure.clients:
        return Verdict.ALIVE
    return _MEANT.get(failure.kind, Verdict.DOWN)


def by_answer(status: int, failure: Failure) -> Verdict:
    """What a status says that an engine answered a canary with: where it leads elsewhere, none is.

    What isn't there is told, and is no mark: a request goes on from there at once, as it finds out.
    Nor is a status of 500 and above whose words tell of a full queue, or blame what was asked.

    Args:
        failure: what the provider makes of it.
    """
    if status == 404:
        return Verdict.ABSENT
    if status >= 500 and failure.kind is Kind.LOAD:
        return Verdict.BUSY
    if status >= 500 and failure.clients:
        return Verdict.REACHABLE
    return Verdict.DOWN if status < 400 else by_status(status)
