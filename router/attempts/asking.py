"""What a committed plan asks of an endpoint, and how long that may take."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from router.attempts.running import Run
from router.audit.log import Committed
from router.frozen import maker
from router.providers.base import Ask
from router.salts import FIELD
from router.transport.messages import Timeouts
from router.types import Candidacy, Plan

_ask = maker(Ask)
_timeouts = maker(Timeouts)
_TRACE: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
"""`traceparent`: ids alone, no text. What else may come with it, `tracestate`, is free text."""


def ask_of(committed: Committed[Plan]) -> Ask:
    """The request as a provider sees it: equal for every attempt."""
    plan, receipt = committed.subject, committed.receipt
    arrival, admitted = plan.arrival, plan.admitted
    trace = arrival.exchange.head.get(b"traceparent")
    return _ask(
        arrival.surface.name,
        plan.body,
        plan.raw,
        admitted.asked.stream,
        admitted.asked.model,
        arrival.id,
        f"{receipt.log}/{receipt.index}",
        int(arrival.at),
        checked=True,
        priority=admitted.priority,
        salt=arrival.snapshot.salts.of(
            admitted.authenticated.principal.tenant, plan.body.get(FIELD)
        ),
        trace=trace if trace is not None and _TRACE.fullmatch(trace) else None,
    )


def ask_at(run: Run, candidacy: Candidacy) -> Ask:
    """The request for one endpoint: with the cache of its prompt, where its other half made it."""
    ask, moved = ask_of(run.committed), run.cache_for(candidacy.endpoint.name)
    return ask if moved is None else replace(ask, transfer=moved)


def timeouts_of(plan: Plan) -> Timeouts:
    """A whole answer's first byte comes when all of it is made. A model's own times count first."""
    asked, snapshot = plan.admitted.asked, plan.arrival.snapshot
    limits, model = snapshot.config.router.limits, snapshot.policy.models.get(asked.model)
    first = limits.first_token if asked.stream else limits.answer
    own = None if model is None else model.first_token if asked.stream else model.answer
    first = first if own is None else own
    return _timeouts(plan.arrival.deadline, limits.connect, first)


def idle_of(plan: Plan) -> float:
    """The most seconds between two pieces of a stream's answer; a model's own time counts first."""
    snapshot = plan.arrival.snapshot
    model = snapshot.policy.models.get(plan.admitted.asked.model)
    own = None if model is None else model.idle
    return snapshot.config.router.limits.idle if own is None else own
