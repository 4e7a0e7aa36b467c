"""Step 12, settle: what a request came to, for the log, usage, prices, health and limits."""

from __future__ import annotations

from collections.abc import Sequence

from router import prices
from router.dispatch import Dispatched
from router.errors import RequestError
from router.frozen import frozen
from router.providers.bedrock_failures import EXCEPTIONS
from router.providers.failures import OPENAI_CODES
from router.relay import Relayed
from router.types import Attempt, Candidacy, Plan
from router.usage import Usage, estimate, read


@frozen
class Ended:
    """How a committed request ended.

    Attributes:
        status: `ok`, `incomplete`, `gone` (the client left), or the error's code.
        attempts: every endpoint asked, in order.
        candidacy: what answered; `None` when nothing did.
        place: the place the provider reported; `None` where it reports none.
        usage: prompt and completion tokens; `None` when nothing answered.
        estimated: whether `usage` was counted here, not told by the provider.
        micro_dollars: the price, in millionths of a US dollar; `None` where not known.
        millis: from arrival to the end.
        broke: why an answer broke off after content, a stable code; empty when it didn't.
        provider_code: the provider's own code for that, from the lists of those known.
        answer: the SHA-256 of the body that the client was given; empty where it isn't bound.
    """

    status: str
    attempts: tuple[Attempt, ...]
    candidacy: Candidacy | None
    place: str | None
    usage: tuple[int, int] | None
    estimated: bool
    micro_dollars: int | None
    millis: int
    broke: str = ""
    provider_code: str = ""
    answer: bytes = b""


def end(
    plan: Plan,
    dispatched: Dispatched | None,
    how: Relayed | RequestError | str,
    tried: Sequence[Attempt],
    now: float,
) -> Ended:
    """What a request came to; `tried` are all attempts made, `now` is loop time."""
    millis = round((now - plan.arrival.began) * 1000)
    if dispatched is None:
        return Ended(_status(how), tuple(tried), None, None, None, False, None, millis)
    usage, candidacy = _usage(plan, how), dispatched.candidacy
    price = prices.cost(candidacy.endpoint.price, usage)
    micro = None if price is None else round(price * 1_000_000)
    used, attempts = (usage.input, usage.output), tuple(tried)
    broke, code = _broke(how)
    answer = how.answer if isinstance(how, Relayed) else b""
    return Ended(
        _status(how), attempts, candidacy, None, used, usage.estimated, micro, millis, broke, code,
        answer,
    )  # fmt: skip


def _broke(how: Relayed | RequestError | str) -> tuple[str, str]:
    if not isinstance(how, Relayed) or how.failure is None:
        return "", ""
    told = "" if how.error is None else how.error.kind
    # Any other word is an endpoint's own, and may be a prompt's.
    return how.failure, told if told in OPENAI_CODES | EXCEPTIONS else ""


def _status(how: Relayed | RequestError | str) -> str:
    if isinstance(how, Relayed):
        if how.gone:
            return "gone"
        return "ok" if how.complete else "incomplete"
    return how.code if isinstance(how, RequestError) else how


def _usage(plan: Plan, how: Relayed | RequestError | str) -> Usage:
    """Told by the provider, else estimated from bytes and marked so."""
    told = read(how.usage) if isinstance(how, Relayed) else None
    sent = how.sent if isinstance(how, Relayed) else 0
    return told or estimate(len(plan.raw), sent)
