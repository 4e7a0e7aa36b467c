"""Step 10, dispatch: a committed plan → an opened answer.

For every attempt, in this order:

1. the client is still there and the deadline has not passed;
2. the decision is still good, and nothing vetoes the endpoint now (law 8);
3. from the second attempt on: the retry budget allows it, and its entry is durable;
   so is that of one beside another (see `router.attempts.hedging`); what it may cost was taken
   before where the endpoint has a burst budget (see `router.capacity.bursts`);
4. encode, send, and hold the answer's frames until first content.

Before first content the next endpoint of the plan is asked. A request whose fate is unknown
is tried again only where running it twice is known to do no harm: on self-operated
endpoints, or with `retry_unknown: true`. Stateful calls never are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from regions.health import HealthBook, Sign, Standing
from regions.model import Tier
from router.answers.outcomes import attempts_told, ended, failed, failed_attempt, hedged
from router.attempts.asking import ask_of
from router.attempts.hedging import Hedges, beside_of, race
from router.attempts.prefilling import Prefills
from router.attempts.retrying import Retries, is_harmless
from router.attempts.running import Run
from router.attempts.sending import answered
from router.attempts.silence import Patience, Silence
from router.audit.log import Committed
from router.capacity.bursts import Bursts, Paid
from router.capacity.load import Held, InFlight
from router.errors import RequestError
from router.frozen import frozen, maker
from router.narrowing.vetoes import VetoBoard
from router.opening import OpenedStream, OpenedWhole
from router.providers.base import Ask, Kind
from router.selection import larger_than
from router.settings.role_keys import CredentialBoard
from router.snapshot import Snapshot
from router.transport.messages import AttemptFailed, Fate, Transport
from router.types import Attempt, Candidacy, Plan, make_attempt

HERE: Final = 2
"""Replicas of one endpoint that a request asks, while there is another endpoint in its plan."""
_TOP: Final = max(Tier)
_TICK: Final = 0.01
"""Seconds that a timer may fire before its time."""


class DecideAgain(Exception):
    """The plan may no longer be relied on; the request is decided anew."""


@frozen
class Dispatched:
    """An answer whose first content is here, and everything that was tried for it."""

    committed: Committed[Plan]
    candidacy: Candidacy
    opened: OpenedStream | OpenedWhole
    attempts: tuple[Attempt, ...]
    held: Held
    replica: str
    began: float

    @property
    def plan(self) -> Plan:
        """The plan it came from."""
        return self.committed.subject


_dispatched = maker(Dispatched)


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Everything dispatch works with; one per process."""

    transport: Transport
    health: HealthBook
    inflight: InFlight
    vetoes: VetoBoard
    budget: Retries
    roles: CredentialBoard
    silence: Silence
    hedges: Hedges
    prefills: Prefills
    bursts: Bursts
    in_turn: Callable[[Snapshot, str, str | None, int], Iterable[str]]
    record: Callable[[Plan, Candidacy, int], Awaitable[object]]
    loop_time: Callable[[], float]
    wall_time: Callable[[], float]
    stamp: Callable[[], float]
    doubts: Callable[[Dispatched], bool] = lambda found: False
    newest: Callable[[], Snapshot] | None = None

    async def run(self, committed: Committed[Plan], attempts: list[Attempt]) -> Dispatched:
        """Ask the plan's endpoints in order until one answers; each attempt is put in `attempts`.

        Raises:
            RequestError: none did; says why, with every attempt.
            DecideAgain: the decision lapsed.
        """
        run, found = Run(committed, attempts), None
        self.budget.earn(run.tenant)
        self._look(run)
        replica = self._usual(run)
        try:
            if replica is not None:
                found = await self.attempt(run, run.plan.ranked.order[0], replica)
            if found is None or not self._believed(run, found):
                found = await self._asked(run)
        except RequestError as error:
            if run.doubted is None:
                if not error.reasons:
                    error.reasons = attempts_told(run.attempts)
                raise
            found = None
        found = found or run.doubted
        if found is None:
            late = self.loop_time() >= run.arrival.deadline - _TICK
            raise ended(run.failures, run.attempts, run.vetoed, run.spent, run.plan, late=late)
        return replace(found, attempts=tuple(run.attempts)) if found is run.doubted else found

    async def _asked(self, run: Run) -> Dispatched | None:
        """The first answer that is not doubted; a doubted one is kept for when nobody larger has
        any, and its own tier isn't asked again."""
        for candidacy in run.plan.ranked.order:
            if run.doubted and candidacy not in self._larger(run, run.doubted.candidacy):
                continue
            found = await self._endpoint(run, candidacy)
            if found is None:
                run.out.add(candidacy.endpoint.name)
            elif self._believed(run, found):
                return found
        return None

    def _look(self, run: Run) -> None:
        """See where replicas are now: they may have moved while the request waited for room, or
        for an answer of those before."""
        newest = run.snapshot if self.newest is None else self.newest()
        if newest is not run.snapshot and newest.decides_as(run.snapshot):
            run.snapshot = newest

    def _usual(self, run: Run) -> str | None:
        """The replica that the place of a whole answer is kept at, where the first attempt is one
        there and nothing else: no prompt computed elsewhere, none beside it, which streams have."""
        plan, now = run.plan, self.loop_time()
        replica, endpoint = plan.admitted.lease.replica, plan.ranked.order[0].endpoint
        if replica is None or endpoint.prefill is not None or plan.admitted.asked.stream:
            return None
        known = replica in run.snapshot.targets[endpoint.name]
        well = known and self.health.standing(replica, now) <= Standing.TRIAL
        return replica if well and now < run.arrival.deadline else None

    def _believed(self, run: Run, found: Dispatched) -> bool:
        """Whether an answer is not doubted; one that is is kept, see `_asked`."""
        first = found.candidacy
        if first.tier is _TOP or not (self._larger(run, first) and self.doubts(found)):
            return True
        if found.held.paid is not None:
            found.held.paid.unused(found.opened)
        found.held.close()
        run.attempts[-1] = replace(run.attempts[-1], result="escalated")
        run.doubted = found
        return False

    async def _endpoint(self, run: Run, candidacy: Candidacy) -> Dispatched | None:
        """Ask the replicas of one endpoint, best first."""
        name = candidacy.endpoint.name
        kept, streams = run.plan.admitted.lease.replica, run.plan.admitted.asked.stream
        only, prompt = candidacy is run.plan.ranked.order[-1], run.plan.classified.prompt_tokens
        self._look(run)
        here = run.snapshot.targets[name].keys()
        for replica in self.in_turn(run.snapshot, name, kept, prompt):
            if not only and len(run.asked & here) >= HERE:
                return None  # the whole place may be gone: the next one gets the other attempts
            if replica in run.asked:
                continue  # first of all, or beside another one
            if run.is_unfit(candidacy.endpoint) or not self.may_go_on(run):
                return None
            halved = candidacy.endpoint.prefill is not None
            if halved and not await self.prefills.step(run, candidacy, replica, self):
                return None
            first = streams and not run.attempts
            wait = self.hedges.wait(run.plan, candidacy, replica) if first else None
            if wait is None:
                found = await self.attempt(run, candidacy, replica)
            else:
                found = await self._hedged(run, candidacy, replica, wait)
            if found is None and halved and self.prefills.lost(run, candidacy, self):
                found = await self.attempt(run, candidacy, replica)
            if found is not None:
                return found
        return None

    async def _hedged(
        self, run: Run, candidacy: Candidacy, replica: str, wait: float
    ) -> Dispatched | None:
        """One attempt, and after `wait` seconds another one beside it."""

        def beside() -> Coroutine[object, object, Dispatched | None] | None:
            try:
                other = self._other(run, candidacy, replica)
            except DecideAgain:
                return None  # which ends no attempt that was made in time
            if other is None or not self.hedges.spend(run.plan, candidacy):
                return None
            if not self.budget.spend(run.tenant):
                return None
            return self.attempt(run, *other)

        found = await race(self.attempt(run, candidacy, replica), wait, beside, give_up)
        if found is None:
            return None
        mine = found.attempts[-1]
        lost = [hedged(one) for one in run.attempts if one is not mine]
        run.attempts[:] = [*lost, mine]
        return replace(found, attempts=tuple(run.attempts))

    def _other(self, run: Run, first: Candidacy, asked: str) -> tuple[Candidacy, str] | None:
        """Where a second attempt may be made: the next replica at one of `beside_of`."""
        if self.loop_time() >= run.arrival.deadline:
            return None
        if run.arrival.snapshot.config.router.limits.attempts < 2:
            return None
        for candidacy in beside_of(run.plan, first, self._marked(run)):
            if self.vetoed(run, candidacy):
                continue
            for replica in self.in_turn(run.snapshot, candidacy.endpoint.name, None, 0):
                standing = self.health.standing(replica, self.loop_time())
                if replica != asked and standing is not Standing.MARKED:
                    return candidacy, replica
        return None

    def _larger(self, run: Run, first: Candidacy) -> list[Candidacy]:
        return larger_than(first, run.plan, lambda: run.out | self._marked(run))

    def _marked(self, run: Run) -> set[str]:
        """Endpoints none of whose replicas is well enough to be asked."""
        now, targets = self.loop_time(), run.snapshot.targets
        return {
            name
            for name, keys in targets.items()
            if all(self.health.standing(key, now) is Standing.MARKED for key in keys)
        }

    def may_go_on(self, run: Run) -> bool:
        """1, and 3's budget: whether one more attempt may be made at all."""
        if not self.may_begin(run):
            return False
        last = run.failures[-1] if run.failures else None
        if last is None or last.fate is Fate.NOT_SENT:
            return True
        if last.fate is Fate.UNKNOWN and not self._safe_again(run):
            return False
        return self.budget.spend(run.tenant)

    def may_begin(self, run: Run) -> bool:
        """1: whether there is time for an attempt, and one of those that a request may have."""
        if self.loop_time() >= run.arrival.deadline:
            run.failures.append(failed("deadline", Fate.NOT_SENT))
            return False
        return not run.attempts or run.left > 0

    def _safe_again(self, run: Run) -> bool:
        """Whether a request of unknown fate may be run a second time."""
        last = run.arrival.snapshot.policy.endpoints[run.attempts[-1].endpoint]
        return is_harmless(run.plan, last)

    def vetoed(self, run: Run, candidacy: Candidacy) -> bool:
        """2: whether a veto forbids an endpoint now; it ends no more than that.

        Raises:
            DecideAgain: the decision lapsed, which ends the plan.
        """
        plan = run.plan
        # Not the bare clock: one that was set back must not bring a lapsed decision to life.
        if plan.good_until is not None and self.stamp() >= plan.good_until:
            raise DecideAgain
        key = plan.admitted.authenticated.principal.key
        reason = self.vetoes.current.against(candidacy.endpoint.name, candidacy.footprint, key)
        if reason is None:
            return False
        said = f"{candidacy.endpoint.name}: {reason}"
        if said not in run.vetoed:
            run.vetoed.append(said)
        return True

    async def attempt(
        self,
        run: Run,
        candidacy: Candidacy,
        replica: str,
        held: Held | None = None,
        ask: Ask | None = None,
        paid: Paid | None = None,
    ) -> Dispatched | None:
        """Ask one replica, with the place `held` there, else the one that the lease keeps.

        Args:
            ask: what is asked; the request itself where it is not said.
            paid: what was taken of the endpoint's burst budget, if it has one.
        """
        if candidacy.endpoint.burst is not None and paid is None:
            again = partial(self.attempt, run, candidacy, replica, held, ask)
            return await self.bursts.paying(run, candidacy, again)
        if self.vetoed(run, candidacy):
            return None
        first = not (run.asked or run.attempts)
        number = 0 if first else max(len(run.asked), len(run.attempts))
        run.asked.add(replica)
        if number:
            await self.record(run.plan, candidacy, number)
            if self.vetoed(run, candidacy):  # a veto, or the decision's end, came meanwhile
                return None
        if ask is None:
            halved = candidacy.endpoint.prefill is not None
            ask = self.prefills.ask(run, candidacy, self) if halved else ask_of(run.committed)
        began = self.loop_time()
        held = held or self._held(run, replica)
        if paid is not None:
            held.paid, paid.sent = paid, True
        self.health.start(replica, began)
        try:
            prompt = run.plan.classified.prompt_tokens
            with Patience(self.silence, replica, ask.stream, began, prompt):
                opened, call_id = await answered(run, candidacy, replica, ask, self)
        except AttemptFailed as error:
            held.close(ran=error.fate is Fate.UNKNOWN)
            self._learn(run, candidacy, replica, began, error)
            return None
        except BaseException:
            held.close(ran=True)
            # The client left: nothing is known of the replica.
            self.health.observe(replica, Sign.CLIENT, self.loop_time())
            run.attempts.append(self._one(candidacy, replica, "given_up", began))
            raise
        now = self.loop_time()
        one = self._one(candidacy, replica, "ok", began, opened.status, call_id)
        run.attempts.append(one)
        self.health.observe(replica, Sign.OK, now)
        if isinstance(opened, OpenedStream):
            held.opened(now)
        attempts = tuple(run.attempts)
        return _dispatched(run.committed, candidacy, opened, attempts, held, replica, began)

    def _held(self, run: Run, replica: str) -> Held:
        lease = run.plan.admitted.lease
        tokens = lease.tokens or run.plan.classified.tokens
        return lease.taken(replica) or self.inflight.enter(replica, tokens)

    def _one(
        self, candidacy: Candidacy, replica: str, result: str, began: float,
        status: int | None = None, call_id: str | None = None,
    ) -> Attempt:  # fmt: skip
        name, judged = candidacy.endpoint.name, candidacy.verdict.candidate.endpoint
        millis = round((self.loop_time() - began) * 1000)
        return make_attempt(name, replica, result, status, millis, call_id=call_id, judged=judged)

    def _learn(
        self, run: Run, candidacy: Candidacy, replica: str, began: float, error: AttemptFailed
    ) -> None:
        """Book a failed attempt; a client's own mistake ends the request."""
        now = self.loop_time()
        provider = run.arrival.snapshot.provider(candidacy.endpoint)
        one = failed_attempt(provider, error, self.wall_time())
        one = self.prefills.judged(run, candidacy, one)
        quota = one.result == Kind.LOAD and one.status == 429
        tokens = run.plan.classified.prompt_tokens if quota else 0
        self.health.observe(replica, one.sign, now, one.retry_after, error.told, tokens)
        run.attempts.append(
            replace(
                self._one(candidacy, replica, one.result, began, one.status, error.call_id),
                provider_code=one.provider_code,
                retried_unknown=one.fate is Fate.UNKNOWN,
            )
        )
        # What was not sent another endpoint may take.
        if one.clients is None or one.fate is Fate.NOT_SENT or run.outgrew(candidacy, one):
            run.failures.append(one)
            return
        try:
            raise one.clients
        finally:
            del one  # it holds the error, which holds this frame


def give_up(found: Dispatched) -> None:
    """An answer that came at the same time as another one."""
    found.held.close()
    if isinstance(found.opened, OpenedStream):
        found.opened.response.abort()
