"""Step 12, settle: what a request came to, for the log, usage, prices, health and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from router import prices
from router.dispatch import Dispatched
from router.errors import RequestError
from router.frozen import frozen, maker
from router.opening import OpenedStream
from router.providers.bedrock_failures import EXCEPTIONS
from router.providers.failures import OPENAI_CODES
from router.relay import Relayed
from router.types import Attempt, Candidacy, Plan
from router.usage import Usage, estimate, prompt_bytes, read, streamed_bytes


@frozen
class Ended:
    """How a committed request ended.

    Attributes:
        status: `ok`, `incomplete`, `gone` (the client left), or the error's code.
        attempts: every endpoint asked, in order.
        candidacy: what answered; `None` when nothing did.
        place: the place the provider reported; `None` where it reports none.
        usage: prompt and completion tokens; `None` when nothing answered, unless the client did not
            wait for it: then the prompt's.
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


_ended = maker(Ended)


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
        asked, micro = _left(plan, how, tried)
        return Ended(
            _status(how), tuple(tried), None, None, asked, asked is not None, micro, millis
        )
    candidacy, usage = dispatched.candidacy, None
    broke, code, answer = "", "", b""
    if isinstance(how, Relayed):
        usage, answer = read(how.usage), how.answer
        if how.failure is not None:
            broke, code = how.failure, _code(how)
    # Told by the provider, else estimated from bytes and marked so.
    if usage is None or not (usage.input and usage.output):
        usage = _completed(usage, plan, dispatched, how)
    price = prices.cost(candidacy.endpoint.price, usage)
    micro = None if price is None else round(price * 1_000_000)
    used = usage.input, usage.output
    return _ended(
        _status(how), tuple(tried), candidacy, None, used, usage.estimated, micro, millis, broke,
        code, answer,
    )  # fmt: skip


def _completed(
    told: Usage | None, plan: Plan, dispatched: Dispatched, how: Relayed | RequestError | str
) -> Usage:
    """What was told, with the counts that are none: no prompt has no tokens, and no text has."""
    guess, opened = _estimated(plan, dispatched, how), dispatched.opened
    if told is None:
        return guess
    held = opened.held if isinstance(opened, OpenedStream) else (opened.frame,)
    text = told.output or not any(one.content for one in held)
    if told.input and text:
        return told
    return replace(
        told,
        input=told.input or guess.input,
        output=told.output if text else guess.output,
        estimated=True,
    )


def _estimated(plan: Plan, dispatched: Dispatched, how: Relayed | RequestError | str) -> Usage:
    """From what went in and came out: text alone, neither media nor what events are made of."""
    sent, opened = how.sent if isinstance(how, Relayed) else 0, dispatched.opened
    if isinstance(how, Relayed) and isinstance(opened, OpenedStream):
        first = next((one.data for one in opened.held if one.content), b"")
        sent = streamed_bytes(first, sent, how.events)
    return estimate(prompt_bytes(plan.raw, plan.body), sent)


def _left(
    plan: Plan, how: RequestError | str | Relayed, tried: Sequence[Attempt]
) -> tuple[tuple[int, int] | None, int | None]:
    """The prompt of a request that its own client ended while an endpoint had it, and its price in
    millionths of a dollar: no limit would else count what is asked for and not waited for.

    What endpoints fail by, or don't answer in the router's own time, costs nobody anything.
    """
    arrival = plan.arrival
    own = arrival.deadline - arrival.began < arrival.snapshot.config.router.limits.deadline
    hurried = own and isinstance(how, RequestError) and how.code == "deadline"
    last = tried[-1] if tried and (how == "gone" or hurried) else None
    if last is None or not (last.result == "given_up" or last.retried_unknown):
        return None, None
    usage, name = estimate(prompt_bytes(plan.raw, plan.body), 0), last.judged or last.endpoint
    asked = next(one.endpoint for one in plan.ranked.order if one.endpoint.name == name)
    price = prices.cost(asked.price, usage)
    return (usage.input, 0), None if price is None else round(price * 1_000_000)


def _code(how: Relayed) -> str:
    told = "" if how.error is None else how.error.kind
    # Any other word is an endpoint's own, and may be a prompt's.
    return told if told in OPENAI_CODES | EXCEPTIONS else ""


def _status(how: Relayed | RequestError | str) -> str:
    if isinstance(how, Relayed):
        if how.gone:
            return "gone"
        return "ok" if how.complete else "incomplete"
    return how.code if isinstance(how, RequestError) else how
