"""A request that is never sent: what this router would decide about it, and why.

It walks the router's own steps 3 to 7, with every endpoint taken as healthy and idle. Where
the router would stop early, the rest is still looked at, so that a refusal shows everything
that is in the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from policies.model import Priority
from policies.timed import effective_now
from regions.footprints.parameters import examine
from regions.health import Standing
from router import deciding
from router.admission import Concurrency, parse
from router.auth import Home, Principal
from router.capacity.pools import behind, pooled
from router.capacity.priority import HEADER as PRIORITY
from router.capacity.priority import priority_of
from router.decisions.classifying import suite_of
from router.eligible import Filter
from router.errors import RequestError
from router.inbound.exchange import AsgiExchange, Message
from router.inbound.misdirection import Direction, direct
from router.pipeline import Refused
from router.selection import Condition, PreferConflict, order
from router.snapshot import Snapshot
from router.surfaces.base import Surface
from router.surfaces.chat import ChatCompletions
from router.types import (
    Admitted,
    Arrival,
    Authenticated,
    Candidacy,
    Decided,
    Filtered,
    Purpose,
)

IDLE: Final = Condition(Standing.GOOD, 0.0)
_PROMPT: Final = {"messages": [{"role": "user", "content": "hello"}]}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about.

    Attributes:
        tenant: whose request it is; with a `key` that key's own, or the same.
        key: the id of the key it comes with, from the keys file: never the key itself. The
            key's app and attributes are in force.
        model: the public model name; with a `body`, that body's own when `None`.
        said: attribute → values, as a client's headers claim them.
        body: a request body as bytes; without one a plain short chat.
        at: seconds since the epoch.
        tier: the tier asked for at least.
        priority: the class asked for.
    """

    tenant: str | None
    at: float
    model: str | None = None
    app: str | None = None
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: bytes | None = None
    tier: str | None = None
    priority: str | None = None
    purpose: Purpose = Purpose.INTERACTIVE
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Considered:
    """What the router would do.

    Attributes:
        error: what the client would be told; `None` when the request would be sent.
        home: where the request belongs, when not here.
        filtered: every endpoint judged; `None` when the model doesn't exist.
        order: the endpoints it may be sent to, first choice first; empty when refused.
    """

    decided: Decided
    error: RequestError | None
    home: Direction | None
    filtered: Filtered | None
    order: tuple[Candidacy, ...] = ()

    @property
    def priority(self) -> Priority | None:
        """The request's class; `None` where there are none."""
        return self.decided.classified.admitted.priority

    @property
    def router_inside(self) -> bool:
        """Whether this router's own region lies inside the request's boundary."""
        return self.home is None and not self.decided.decision.denied


def consider(snapshot: Snapshot, question: Question, surface: Surface | None = None) -> Considered:
    """Decide about a request without sending it.

    Raises:
        RequestError: the request itself is wrong: its key, its body, an attribute, the tier.
    """
    admitted = _admitted(snapshot, question, surface or ChatCompletions())
    home = deciding.elsewhere(admitted.authenticated)
    suite = suite_of(snapshot.policy, lambda: 0.0)
    decided = deciding.decided(deciding.classified(admitted, suite))
    error = deciding.refusal(decided)
    if home is None and error is None:
        home = direct(decided.decision.common.process, snapshot)
    if home is not None and error is None:
        error = home.error()
    return _considered(decided, error, home)


def _considered(decided: Decided, error: RequestError | None, home: Direction | None) -> Considered:
    """Judge every endpoint even when the request ends before: the first error stays."""
    filtering = Filter({})
    filtered: Filtered | None = None
    chosen: tuple[Candidacy, ...] = ()
    try:
        graded = deciding.graded(decided)
        filtered = filtering.judge_all(graded)
        chosen = _ordered(filtering.run(graded), decided.classified.admitted.priority)
    except Refused as refused:
        error = error or refused.error
    except PreferConflict:
        message = "the preferences of the rules that apply shut out every endpoint"
        error = error or RequestError("prefer_conflict", message)
    return Considered(decided, error, home, filtered, () if error is not None else chosen)


def _ordered(filtered: Filtered, priority: Priority | None) -> tuple[Candidacy, ...]:
    eligible, spare = pooled(filtered.eligible, priority)
    return order(eligible, lambda name: behind(IDLE) if name in spare else IDLE)


def _admitted(snapshot: Snapshot, question: Question, surface: Surface) -> Admitted:
    raw = _body(question)
    body = parse(raw)
    asked = surface.read(body)
    principal = _principal(snapshot, question)
    arrival = Arrival(
        _exchange(question, surface),
        "hypothetical",
        question.at,
        0.0,
        snapshot.config.router.limits.deadline,
        surface,
        question.purpose,
        snapshot,
    )
    known = Authenticated(arrival, principal, effective_now(question.at, None))
    lease = Concurrency(1).enter(principal.key, None)
    call, priority = examine(surface.name, body), priority_of(known, body)
    return Admitted(known, raw, body, asked, call, lease, priority)


def _principal(snapshot: Snapshot, question: Question) -> Principal:
    """Who asks: the holder of the key, or whom the question names."""
    if question.key is None:
        return Principal("hypothetical", question.tenant or "", question.app)
    holder = snapshot.keys.held(question.key, question.at)
    if isinstance(holder, Home):
        message = f"key `{holder.key}` belongs to the router at {holder.url} in {holder.region}"
        raise RequestError("misdirected", message)
    if holder.role == "auditor":
        raise RequestError("role_not_allowed", "an auditor's key reads records and sends none")
    for named, own in ((question.tenant, holder.tenant), (question.app, holder.app)):
        if named is not None and named != own:
            message = f"key `{holder.key}` is of `{own}`, not of `{named}`; leave that one out"
            raise RequestError("invalid_request", message)
    return holder


def _body(question: Question) -> bytes:
    if question.body is None:
        return orjson.dumps({"model": question.model, **_PROMPT})
    if question.model is None:
        return question.body
    return orjson.dumps({**parse(question.body), "model": question.model})


def _exchange(question: Question, surface: Surface) -> AsgiExchange:
    headers = [
        (f"x-domicile-attr-{name}".lower().encode(), ",".join(values).encode())
        for name, values in question.said.items()
    ]
    if question.tier is not None:
        headers.append((b"x-domicile-tier", question.tier.encode()))
    if question.priority is not None:
        headers.append((PRIORITY, question.priority.encode()))
    scope: Message = {
        "method": "POST", "path": surface.path, "query_string": b"", "headers": headers,
    }  # fmt: skip
    return AsgiExchange(scope, _never, _unsent)


async def _never() -> Message:
    raise AssertionError("a hypothetical request has no body to receive")


async def _unsent(message: Message) -> None:
    raise AssertionError("a hypothetical request is not answered")
