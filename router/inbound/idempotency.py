"""Idempotency keys: a request sent twice with one `idempotency-key` is carried out once.

The same key of the same caller with the same body gives the answer of the first time; while that
one runs, 409; with another body, 422. A key is looked at when the request is planned and before it
is committed: it is authenticated and decided anew each time, and an answer that an endpoint gave
which may not be called any more is not given again, nor one made of what would not be sent now, or
elsewhere than where that endpoint runs now. What is kept lies in one region, so a request with a
key is refused when a boundary that applies to it does not allow keeping anything there; where that
ends before the key does, the answer is not kept and its key is spent.

A request that failed is carried out again. One whose fate is unknown is too, unless it stores
something elsewhere: then its key is spent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from router.attempts.retrying import STATEFUL
from router.dispatch import DecideAgain, Dispatched
from router.errors import RequestError
from router.inbound.exchange import Exchange, Headers
from router.inbound.passed import Passed
from router.narrowing.drifted import covers, read, shown
from router.narrowing.vetoes import VetoBoard
from router.relay import Relayed
from router.state.answers import (
    Answer,
    Answers,
    Differs,
    InFlight,
    Spent,
    Taken,
)
from router.types import Attempt, Candidacy, Plan, Purpose

HEADER: Final = b"idempotency-key"
LONGEST: Final = 255
REPLAYED: Final = (b"x-domicile-replayed", b"true")
_CONNECTION: Final = (b"x-ratelimit-",)
"""Headers that tell of the moment, and not of the answer."""


class Replayed(Exception):
    """The client was given the answer that is kept under its key; nothing was sent."""


class Once:
    """One request's hold of its key. `answer` is the kept one, where there is one."""

    __slots__ = ("_largest", "_recorded", "_store", "_token", "answer", "key")

    def __init__(
        self, store: Answers, key: str, token: str, answer: Answer | None, largest: int
    ) -> None:
        self.answer = answer
        self._store: Answers | None = store if answer is None else None
        self.key = key
        self._token = token
        self._largest = largest
        self._recorded: Recorded | None = None

    def recorded(self, exchange: Exchange) -> Exchange:
        """The exchange, with what is written to it kept for the next time."""
        self._recorded = Recorded(exchange, self._largest)
        return self._recorded

    def done(self, plan: Plan, candidacy: Candidacy, until: float) -> None:
        """The answer is whole, and would be kept until then."""
        store, self._store = self._store, None
        made = None if self._recorded is None else self._recorded.answer(plan, candidacy)
        if plan.good_until is not None and plan.good_until < until:
            made = None  # what allows keeping it ends before
        if store is not None:
            store.keep(self.key, self._token, made)

    def spend(self) -> None:
        """It may have been carried out, and must not be again."""
        store, self._store = self._store, None
        if store is not None:
            store.keep(self.key, self._token, None)

    def close(self) -> None:
        """Let the next request with this key be carried out, unless this one was."""
        store, self._store = self._store, None
        if store is not None:
            store.release(self.key, self._token)

    async def replay(self, exchange: Exchange, answer: Answer) -> None:
        """Give the kept answer."""
        headers = [(n, v) for n, v in answer.headers if not n.startswith(_CONNECTION)]
        await exchange.start(answer.status, [*headers, REPLAYED])
        await exchange.end(answer.body)


class Recorded(Passed):
    """An exchange that keeps a copy of its answer, up to a size. See `Exchange`."""

    __slots__ = ("_headers", "_largest", "_parts", "_size", "_status")

    def __init__(self, exchange: Exchange, largest: int) -> None:
        super().__init__(exchange)
        self._largest = largest
        self._status = 0
        self._headers: Headers = ()
        self._parts: list[bytes] = []
        self._size = 0

    def answer(self, plan: Plan, candidacy: Candidacy) -> Answer | None:
        """What was written; `None` when it was too much."""
        if self._size > self._largest:
            return None
        where, sent = shown(candidacy.footprint), _digest(plan.raw)
        origin = plan.id, candidacy.endpoint.name, where, sent
        return Answer(*origin, self._status, tuple(self._headers), b"".join(self._parts))

    def seen(self, data: bytes) -> None:
        """See `Passed`."""
        self._size += len(data)
        if self._size <= self._largest:
            self._parts.append(bytes(data))
        else:
            self._parts.clear()

    async def start(self, status: int, headers: Headers) -> None:
        """See `Exchange`."""
        self._status, self._headers = status, headers
        await super().start(status, headers)


@dataclass(slots=True)
class Idempotency:
    """Keys of one process's requests.

    Attributes:
        region: where the store lies.
        largest: bytes of an answer that is kept.
        window: seconds that it is kept for.
        stamp: the time to judge by, epoch seconds.
    """

    store: Answers
    region: str
    largest: int
    window: float
    stamp: Callable[[], float]
    loop_time: Callable[[], float]
    vetoes: VetoBoard

    async def enter(self, plan: Plan) -> Once | None:
        """Take the key of a planned request; `None` when it has none.

        Raises:
            RequestError: the key can't be used, or nothing may be kept for this request here.
        """
        arrival = plan.arrival
        if arrival.purpose is not Purpose.INTERACTIVE:
            return None
        given = arrival.exchange.head.all(HEADER)
        if not given:
            return None
        known = plan.admitted.lease.once
        value = checked(given)
        self._may_keep(plan)
        principal = plan.admitted.authenticated.principal
        key = _digest(principal.tenant.encode(), principal.key.encode(), value)
        if known is not None:
            if known.key == key:
                return known  # decided again, under the key it holds already
            message = "your key is another tenant's now; send it again"
            raise RequestError("decided_again", message, retry_after=1.0)
        digest = _digest(arrival.surface.name.encode(), plan.admitted.raw)
        lease = max(1.0, arrival.deadline - self.loop_time()) + 5.0
        try:
            answer = await self.store.begin(key, digest, arrival.id, lease, principal.tenant)
        except Taken as taken:
            raise refused(taken) from None
        if answer is not None:
            self._may_give(plan, answer)
        return Once(self.store, key, arrival.id, answer, self.largest)

    async def give(self, plan: Plan) -> None:
        """Give the answer that is kept under a committed request's key, if one is.

        Raises:
            Replayed: it was given.
            DecideAgain: the decision lapsed.
            RequestError: what answered then is vetoed now.
        """
        once = plan.admitted.lease.once
        if once is None or once.answer is None:
            return
        if plan.good_until is not None and self.stamp() >= plan.good_until:
            raise DecideAgain
        self._may_give(plan, once.answer)
        await once.replay(plan.arrival.exchange, once.answer)
        raise Replayed

    def _may_keep(self, plan: Plan) -> None:
        place = plan.arrival.snapshot.policy.atlas.place(self.region)
        for candidacy in plan.ranked.order:
            if not candidacy.verdict.allowed.retain.contains(place):
                raise RequestError(
                    "idempotency_outside_boundary",
                    f"an idempotency key keeps the answer in `{self.region}`, and the policy does "
                    "not allow this request to be kept there: send it without the key",
                )

    def _may_give(self, plan: Plan, answer: Answer) -> None:
        """An answer given again is judged by the policy and the vetoes of now, and by where it was
        made: files, or another router of the same store, may call another place by that name."""
        key = plan.admitted.authenticated.principal.key
        made = read(answer.footprint, plan.arrival.snapshot.policy.atlas)
        for one in plan.ranked.filtered.eligible:
            if one.endpoint.name == answer.endpoint:
                vetoed = self.vetoes.current.against(answer.endpoint, one.footprint, key)
                same = covers(one.footprint, made) and answer.sent == _digest(plan.raw)
                if same and vetoed is None:
                    return
                break
        raise RequestError(
            "idempotency_outside_boundary",
            "what answered the first request with this key may not be called for it now: send it "
            "with another key",
        )

    def kept(
        self, plan: Plan, dispatched: Dispatched | None, how: Relayed | RequestError | str,
        tried: Sequence[Attempt],
    ) -> None:  # fmt: skip
        """What becomes of a request's key at its end. Closing the lease releases it, if nothing
        here did."""
        once = plan.admitted.lease.once
        if once is None:
            return
        if dispatched is not None and isinstance(how, Relayed) and how.complete:
            once.done(plan, dispatched.candidacy, self.stamp() + self.window)
        elif tried and how != "decided_again" and plan.admitted.call.movers & STATEFUL:
            once.spend()


def checked(given: list[bytes]) -> bytes:
    """The key of a request.

    Raises:
        RequestError: several, none, or one that is too long or no visible ASCII.
    """
    value = given[0]
    if len(given) > 1 or not 0 < len(value) <= LONGEST or not all(32 < c < 127 for c in value):
        raise RequestError(
            "invalid_header",
            f"send one `idempotency-key` of 1 to {LONGEST} visible ASCII characters",
        )
    return value


def refused(taken: Taken) -> RequestError:
    """Why a key can't be used, as the client's error."""
    if isinstance(taken, InFlight):
        message = "a request with this idempotency key is being carried out; ask again for it"
        return RequestError("idempotency_in_flight", message, retry_after=1.0)
    if isinstance(taken, Differs):
        message = "this idempotency key was used with another body; send another key"
        return RequestError("idempotency_mismatch", message)
    if isinstance(taken, Spent):
        message = "the request with this idempotency key was carried out, its answer isn't kept"
        return RequestError("idempotency_spent", message)
    message = f"idempotency keys can't be had: {taken}; send the request without one, or later"
    return RequestError("idempotency_unavailable", message, retry_after=5.0)


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()
