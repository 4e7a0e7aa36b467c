"""The twelve steps, in order. What each does is elsewhere; that each is done is here.

Types hold the order: every step takes what the one before it made, and `dispatch` takes a
`Committed[Plan]`, which only the region log can make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from router.audit.log import Committed
from router.dispatch import DecideAgain, Dispatched
from router.errors import ClientGone, RequestError
from router.frozen import frozen, maker
from router.inbound.exchange import while_connected
from router.inbound.idempotency import Replayed
from router.relay import Relayed
from router.types import (
    Admitted,
    Arrival,
    Attempt,
    Authenticated,
    Classified,
    Decided,
    Filtered,
    Graded,
    Plan,
    Ranked,
)

TURNS = 3
"""A decision that lapses between commit and dispatch is made anew, so often at most."""


class Refused(Exception):
    """A request refused before anything was sent, and how far it had come."""

    def __init__(self, error: RequestError, at: Decided | Filtered) -> None:
        super().__init__(error.code)
        self.error = error
        self.at = at


@frozen
class Observed:
    """What one request came to, for metrics: its code is `ok` or an error's."""

    arrival: Arrival
    code: str
    attempts: int = 0
    endpoint: str | None = None


make_observed = maker(Observed)


class Steps(Protocol):
    """The twelve steps, and what is said when they end early."""

    async def authenticate(self, arrival: Arrival) -> Authenticated:
        """1. Raises RequestError; a 421 is recorded."""
        ...

    async def admit(self, authenticated: Authenticated) -> Admitted:
        """2. Raises RequestError, ClientGone."""
        ...

    def outdated(self, admitted: Admitted) -> bool:
        """Whether another policy, or other keys, came into force meanwhile."""
        ...

    async def again(self, admitted: Admitted) -> Admitted:
        """The same request as of now. Raises RequestError."""
        ...

    def classify(self, admitted: Admitted) -> Classified:
        """3. A classifier that fails leaves its attributes unknown. Raises RequestError."""
        ...

    def decide(self, classified: Classified) -> Decided:
        """4. Pure. Raises Refused."""
        ...

    def grade(self, decided: Decided) -> Graded:
        """5."""
        ...

    def filter(self, graded: Graded) -> Filtered:
        """6. Pure. Raises Refused."""
        ...

    async def rank(self, filtered: Filtered) -> Ranked:
        """7. Raises Refused, ClientGone: who waits for room leaves with the client."""
        ...

    def fulfil(self, ranked: Ranked, turn: int) -> Plan:
        """8. Raises Refused."""
        ...

    async def commit(self, plan: Plan) -> Committed[Plan]:
        """9. Durable when it returns. Raises RequestError; nothing was sent then."""
        ...

    async def dispatch(self, committed: Committed[Plan], tried: list[Attempt]) -> Dispatched:
        """10. Adds every attempt to `tried`. Raises RequestError, DecideAgain, Replayed."""
        ...

    async def relay(self, dispatched: Dispatched) -> Relayed:
        """11. The client has everything, or a typed error, or is gone."""
        ...

    def settle(
        self, committed: Committed[Plan], dispatched: Dispatched | None,
        how: Relayed | RequestError | str, tried: Sequence[Attempt],
    ) -> Observed:  # fmt: skip
        """12. Never raises."""
        ...

    async def refuse(self, refused: Refused) -> str | None:
        """Record a refusal; gives the record's name, `None` when the log is down."""
        ...

    async def answer(self, arrival: Arrival, error: RequestError, record: str | None) -> None:
        """Tell the client why."""
        ...


class Pipeline:
    """Walks each request, of every surface and purpose, through the twelve steps."""

    __slots__ = ("_observe", "_steps")

    def __init__(self, steps: Steps, observe: Callable[[Observed], None]) -> None:
        self._steps = steps
        self._observe = observe

    async def run(self, arrival: Arrival) -> None:
        """Answer one request. Whatever happens, the client is told and it is observed."""
        try:
            observed = await self._admitted(arrival)
        except Refused as refused:
            record = await self._steps.refuse(refused)
            await self._steps.answer(arrival, refused.error, record)
            observed = Observed(arrival, refused.error.code)
        except RequestError as error:
            await self._steps.answer(arrival, error, None)
            observed = Observed(arrival, error.code)
        except ClientGone:
            observed = Observed(arrival, "gone")
        self._observe(observed)

    async def _admitted(self, arrival: Arrival) -> Observed:
        authenticated = await self._steps.authenticate(arrival)
        admitted, steps = await self._steps.admit(authenticated), self._steps
        try:
            for turn in range(TURNS):
                if turn or steps.outdated(admitted):
                    admitted = await steps.again(admitted)
                observed = await self._once(admitted, turn)
                if observed is not None:
                    return observed
        finally:
            admitted.lease.close()
        raise RequestError("decided_again", "the policy changed; send it again", retry_after=1.0)

    async def _once(self, admitted: Admitted, turn: int) -> Observed | None:
        steps = self._steps
        classified = steps.classify(admitted)
        decided = steps.decide(classified)
        graded = steps.grade(decided)
        filtered = steps.filter(graded)
        if admitted.arrival.exchange.gone:
            raise ClientGone
        ranked = await steps.rank(filtered)
        if steps.outdated(admitted):
            return None  # a policy came while it waited
        committed, dispatched = await steps.commit(steps.fulfil(ranked, turn)), None
        # From here on every way out settles the decision.
        tried: list[Attempt] = []  # kept here, so that no way out forgets whom it asked
        how: Relayed | RequestError | str = "unknown"
        try:
            async with while_connected(committed.subject.arrival.exchange):
                dispatched = await steps.dispatch(committed, tried)
            how = await steps.relay(dispatched)
        except DecideAgain:
            how = "decided_again"
            return None
        except Replayed:
            how = "replayed"
        except ClientGone:
            how = "gone"
            raise
        except RequestError as error:
            how = error
            raise
        finally:
            observed = steps.settle(committed, dispatched, how, tried)
            del how  # an error holds this frame, and all that the request had
        return observed
