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
from router.watch.verdicts import Verdict

LARGEST: Final = 1 << 20
_MEANT: Final = {
    Kind.LOAD: Verdict.BUSY,
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
        return by_failure(told)
    except StreamFailed as error:
        return by_failure(whole.failure or error_in_answer(error.error))
    except AttemptFailed as error:
        if error.code in ("bad_answer", "empty"):
            return Verdict.DOWN
        raise
    return Verdict.ALIVE


def by_failure(failure: Failure) -> Verdict:
    """What a failure says of whoever told it, under a status of its own or inside an answer of
    success: as it would of a client's request.

    Too much to do is told by an engine that works. What isn't there is told, and is no mark: a
    request goes on from there at once, as it finds out. A mistake of ours is found by whoever reads
    what was asked: it may stand before an engine.
    """
    if failure.clients:
        return Verdict.REACHABLE
    return _MEANT.get(failure.kind, Verdict.DOWN)
