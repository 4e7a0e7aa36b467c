"""The twelve steps as this router takes them: each a few lines over the module that owns it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace

from policies.engine import Allowed
from policies.obligations import NO_OBLIGATIONS, AnyObligation
from policies.timed import earliest, effective_now
from regions.footprints.parameters import examine
from router import deciding, obligations
from router.admission import ELSEWHERE, Concurrency, parse, refuse_coded
from router.answers.outcomes import relayed_sign
from router.attempts.asking import idle_of
from router.attempts.running import PREFILLED
from router.audit.entry import Entry
from router.audit.errors import AuditError
from router.audit.log import AuditLog, Committed
from router.auth import Home, authenticate
from router.capacity.priority import priority_of
from router.capacity.quotas import Quotas, dearest, estimate
from router.capacity.ranking import Ranking
from router.decisions.classifying import Suites
from router.decisions.remembered import Memory
from router.dispatch import Dispatched, Dispatcher
from router.eligible import Filter
from router.entries import receipts
from router.entries.alike import Alike
from router.entries.records import Scribe
from router.errors import RequestError
from router.inbound.deadlines import here, whole_body
from router.inbound.exchange import Exchange, Lines
from router.inbound.idempotency import HEADER, Idempotency
from router.inbound.misdirection import Direction, direct
from router.inbound.once import refuse_repeated
from router.inbound.passed import Digested
from router.metrics import Metrics, attempted
from router.opening import OpenedStream
from router.pipeline import Observed, Refused, make_observed
from router.relay import Pace, Relayed, deliver, relay
from router.settling import Ended, end
from router.snapshot import Snapshot
from router.surfaces.errors import end_mark, error_event, send_error
from router.tiers.grading import Graders
from router.tiers.shadow import ShadowLane
from router.types import (
    Admitted,
    Arrival,
    Attempt,
    Authenticated,
    Candidacy,
    Classified,
    Decided,
    Filtered,
    Graded,
    Plan,
    Purpose,
    Ranked,
    make_admitted,
    make_authenticated,
    make_plan,
)


@dataclass(frozen=True, slots=True)
class TwelveSteps:
    """What the pipeline calls; one per process, everything in it injected."""

    log: AuditLog
    scribe: Scribe
    dispatcher: Dispatcher
    filtering: Filter
    suites: Suites
    graders: Graders
    lane: ShadowLane
    concurrency: Concurrency
    quotas: Quotas
    metrics: Metrics
    ranking: Ranking
    wall_time: Callable[[], float]
    loop_time: Callable[[], float]
    idempotency: Idempotency
    memory: Memory = field(default_factory=Memory)
    bound: Alike[tuple[Candidacy, ...], tuple[Sequence[AnyObligation], float | None]] = field(
        default_factory=Alike
    )
    allowing: Alike[Allowed, Snapshot] = field(default_factory=Alike)

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced: each is as large as a catalog.

        What requests of it that still run put back goes with the next one.
        """
        self.bound.clear()
        self.allowing.clear()
        for keeper in (self.scribe, self.filtering, self.ranking, self.quotas, receipts):
            keeper.forget()

    async def authenticate(self, arrival: Arrival) -> Authenticated:
        """1. The key's holder; 421 for a key or a boundary that belongs elsewhere."""
        now = effective_now(self.wall_time(), self.log.newest_time())
        keys, stored = arrival.snapshot.keys, arrival.stored
        if stored is None:
            head = arrival.exchange.head
            if head.repeated:
                refuse_repeated(head.repeated)
            holder = authenticate(head.get, keys, now.time)
        else:
            holder = keys.held(stored.key, now.time, stored.tenant)
        if isinstance(holder, Home):
            raise await self._misdirected(arrival, holder.key, Direction(holder.region, holder.url))
        if holder.role == "auditor":
            raise RequestError("role_not_allowed", "an auditor's key reads records and sends none")
        if getattr(arrival.snapshot, "policy", None) is None:
            # Types rule it out. Should it happen all the same, nothing is allowed.
            raise RequestError("no_policy", "no policy is loaded here, so nothing is allowed")
        known = make_authenticated(arrival, holder, now)
        elsewhere = self.memory.elsewhere(known)
        if elsewhere is not None:
            raise await self._misdirected(arrival, holder.key, elsewhere)
        return known

    async def admit(self, authenticated: Authenticated) -> Admitted:
        """2. A place among the key's open requests, the limits of it, its app and its tenant, the
        body, one parse."""
        arrival, policy = authenticated.arrival, authenticated.arrival.snapshot.policy
        principal = authenticated.principal
        key, limits = principal.key, principal.limits
        # Limits are for what clients ask themselves, not for what we ask again, in their places.
        own = arrival.purpose is not Purpose.SHADOW
        wanted = self.quotas.of(policy, principal) if own else None
        seats = None if own and limits.concurrency is None else ELSEWHERE
        lease = self.concurrency.enter(key if own else f"{key}/again", seats)
        try:
            if wanted is not None:
                lease.reservation = await self.quotas.enter(wanted, arrival.id)
            if (coding := arrival.exchange.head.get(b"content-encoding")) is not None:
                refuse_coded(coding)
            most = arrival.snapshot.config.router.limits.body
            raw = here(arrival.exchange, most)
            if raw is None:
                raw = await whole_body(arrival.exchange, most, arrival.deadline)
            body = parse(raw)
            asked = arrival.surface.read(body)
            call = examine(arrival.surface.name, body, asked.texts is not None)
            priority = priority_of(authenticated, body)
            if wanted is not None and lease.reservation is not None and wanted.measured:
                usage = estimate(raw, body, asked.output_tokens)
                micro = dearest(policy, asked.model, usage) if wanted.priced else 0
                await lease.reservation.tokens(usage.input + usage.output, micro)
        except BaseException:
            lease.close()
            raise
        return make_admitted(authenticated, raw, body, asked, call, lease, priority)

    def outdated(self, admitted: Admitted) -> bool:
        """Whether a snapshot came into force meanwhile that may decide otherwise."""
        return self.ranking.outdated(admitted)

    async def again(self, admitted: Admitted) -> Admitted:
        """The request as of now: by the policy and the keys in force, and by a clock read anew."""
        current = self.ranking.placing.balance.snapshot()
        arrival = replace(admitted.arrival, snapshot=current)
        holder = await self.authenticate(arrival)
        priority = priority_of(holder, admitted.body)
        return replace(admitted, authenticated=holder, priority=priority)

    def classify(self, admitted: Admitted) -> Classified:
        """3. What everybody said about the request."""
        suite = self.suites.of(admitted.snapshot.policy)
        return self.memory.classified(admitted, suite)

    def decide(self, classified: Classified) -> Decided:
        """4. Which places, under which rules, until when."""
        decided = self.memory.decided(classified)
        decision, snapshot = decided.decision, classified.admitted.snapshot
        # Of the same object the same was found, as long as the snapshot is the same.
        if decision.denied or self.allowing.get(decision.common) is not snapshot:
            self._look_at(decided)
            self.allowing.put(decision.common, snapshot)
        return decided

    def _look_at(self, decided: Decided) -> None:
        """Whether what is allowed is anything at all, and this router inside. Raises Refused."""
        error = deciding.refusal(decided)
        if error is not None:
            raise Refused(error, decided)
        elsewhere = direct(decided.decision.common.process, decided.classified.admitted.snapshot)
        if elsewhere is not None:
            self.metrics.count("domicile_misdirected_total", ("late",))
            raise Refused(elsewhere.error(), decided)

    def grade(self, decided: Decided) -> Graded:
        """5. The lowest tier that is good enough, within what the policy says of tiers."""
        return deciding.graded(decided, self.graders.judge)

    def filter(self, graded: Graded) -> Filtered:
        """6. What is inside the boundary and can serve the call."""
        return self.filtering.run(graded)

    def rank(self, filtered: Filtered) -> Coroutine[object, object, Ranked]:
        """7. First choice first, once one has room."""
        return self.ranking.run(filtered)

    def fulfil(self, ranked: Ranked, turn: int) -> Plan:
        """8. Obligations applied; everything that leaves is fixed from here on."""
        admitted = ranked.filtered.graded.decided.classified.admitted
        asked, until = self._bound_by(ranked)
        try:
            body = obligations.apply(asked, admitted.body) if asked else admitted.body
            raw = admitted.raw if body is admitted.body else obligations.encode(body)
        except obligations.CannotRedact as error:
            message = f"the policy wants identifiers cut out of this request, but {error}"
            raise Refused(RequestError("redaction_impossible", message), ranked.filtered) from None
        except RequestError as error:
            raise Refused(error, ranked.filtered) from None
        return make_plan(record_id(admitted.arrival, turn), ranked, raw, body, until)

    def _bound_by(self, ranked: Ranked) -> tuple[Sequence[AnyObligation], float | None]:
        """What every endpoint of an order asks for, and the first end of its verdicts."""
        eligible, order = ranked.filtered.eligible, ranked.order
        # Another order of the same endpoints asks for the same.
        known = self.bound.get(eligible) if len(order) == len(eligible) else None
        if known is not None:
            return known
        asked: set[AnyObligation] = set()
        for candidacy in order:
            if (found := candidacy.verdict.allowed.obligations) is not NO_OBLIGATIONS:
                asked |= set(found)
        until = earliest(candidacy.verdict.good_until for candidacy in order)
        whole = sorted(asked, key=lambda one: one.kind), until
        return self.bound.put(eligible, whole) if len(order) == len(eligible) else whole

    async def commit(self, plan: Plan) -> Committed[Plan]:
        """9. The decision entry is durable when this returns."""
        if plan.arrival.exchange.head.get(HEADER) is not None:
            try:
                plan.admitted.lease.once = await self.idempotency.enter(plan)
            except RequestError as error:
                raise Refused(error, plan.ranked.filtered) from None
        try:
            return await self.log.commit(self.scribe.decision(plan), plan)
        except AuditError:
            self.metrics.count("domicile_log_failures_total")
            raise RequestError(
                "log_unavailable",
                "the region log can't be written, so nothing was sent; try again later",
                retry_after=5.0,
            ) from None

    async def dispatch(self, committed: Committed[Plan], tried: list[Attempt]) -> Dispatched:
        """10. See `router.dispatch`. An answer that is kept under the request's key ends it."""
        if committed.subject.admitted.lease.once is not None:
            await self.idempotency.give(committed.subject)
        if not tried:
            began = committed.subject.arrival.began
            self.metrics.time("domicile_own_seconds", self.loop_time() - began)
        try:
            return await self.dispatcher.run(committed, tried)
        except AuditError:
            self.metrics.count("domicile_log_failures_total")
            raise RequestError(
                "log_unavailable", "the region log can't be written; no further endpoint was asked"
            ) from None

    async def relay(self, dispatched: Dispatched) -> Relayed:
        """11. Receipt headers, then the bytes."""
        plan = dispatched.committed.subject
        arrival = plan.arrival
        exchange = arrival.exchange
        headers = receipts.receipt_headers(dispatched)
        once = plan.admitted.lease.once
        if once is not None:
            exchange = once.recorded(exchange)
        bound = None
        if arrival.snapshot.config.log.bind_answers:
            exchange = bound = Digested(exchange)
        if isinstance(dispatched.opened, OpenedStream):
            how = await self._streamed(dispatched, dispatched.opened, exchange, headers)
        else:
            how = await deliver(exchange, dispatched.opened, headers, arrival.deadline)
        return how if bound is None else replace(how, answer=bound.digest())

    async def _streamed(
        self, dispatched: Dispatched, opened: OpenedStream, exchange: Exchange, headers: Lines
    ) -> Relayed:
        arrival = dispatched.plan.arrival
        pace, name = Pace(idle_of(dispatched.plan), arrival.deadline), arrival.surface.name
        told, mark = error_event(name), end_mark(name)
        count = dispatched.plan.body.get("n")
        answers = count if type(count) is int else 1
        return await relay(exchange, opened, headers, pace, self.loop_time, told, answers, mark)

    def settle(
        self,
        committed: Committed[Plan],
        dispatched: Dispatched | None,
        how: Relayed | RequestError | str,
        tried: Sequence[Attempt],
    ) -> Observed:
        """12. The outcome entry, usage, price, health and the load that was held."""
        plan = committed.subject
        ended = end(plan, dispatched, how, tried, self.loop_time())
        now = max(self.wall_time(), self.log.newest_time())
        try:
            entry = self.scribe.outcome(ended, plan, now)
            self.log.note(entry)
        except AuditError:
            # Recovery closes what stays open; the client's answer is not held back for it.
            self.metrics.count("domicile_log_failures_total")
        attempted(self.metrics, tried, stream=plan.admitted.asked.stream)
        reservation = plan.admitted.lease.reservation
        if reservation is not None and (dispatched is not None or how != "decided_again"):
            used = 0 if ended.usage is None else ended.usage[0] + ended.usage[1]
            reservation.settle(used, ended.micro_dollars or 0)
        if dispatched is not None:
            self._learn(plan, dispatched, how, ended)
        if plan.admitted.lease.once is not None:
            self.idempotency.kept(plan, dispatched, how, tried)
        if plan.ranked.filtered.graded.verdict is not None:
            self.lane.offer(plan, ended)
        name = None if ended.candidacy is None else ended.candidacy.endpoint.name
        asked = len(tried) if len(tried) < 2 else len(tried) - self._beside(tried)
        return make_observed(plan.arrival, ended.status, asked, name)

    def _beside(self, tried: Sequence[Attempt]) -> int:
        """Count attempts that ran beside another; gives how many are no failover: those, and
        those that computed a prompt for another."""
        beside = [one.endpoint for one in tried if one.result == "hedged"]
        for endpoint in beside:
            self.metrics.count("domicile_hedges_total", (endpoint,))
        return len(beside) + sum(1 for one in tried if one.result == PREFILLED)

    def _learn(
        self, plan: Plan, dispatched: Dispatched, how: Relayed | RequestError | str, ended: Ended
    ) -> None:
        """Give back what was held, and tell the health book of a stream that broke off."""
        if dispatched.held.paid is not None:
            dispatched.held.paid.book(None if ended.estimated else ended.usage)
        dispatched.held.close()
        if (sign := relayed_sign(how)) is not None:
            self.dispatcher.health.observe(dispatched.replica, sign, self.loop_time())
        name, used = dispatched.candidacy.endpoint.name, ended.usage
        if used is not None:
            admitted = plan.admitted
            if ended.status == "ok":
                tenant = admitted.authenticated.principal.tenant
                self.ranking.placing.balance.lengths.learn(admitted.asked.model, tenant, used[1])
            self.metrics.count("domicile_tokens_total", (name, "input"), used[0])
            self.metrics.count("domicile_tokens_total", (name, "output"), used[1])
        if isinstance(how, Relayed) and how.malformed:
            self.metrics.count("domicile_malformed_events_total", (name,), how.malformed)

    async def refuse(self, refused: Refused) -> str | None:
        """Record a refusal. It is sent even when the log is down, then counted."""
        for left in refused.at.excluded if isinstance(refused.at, Filtered) else ():
            for code in left.codes:
                self.metrics.count("domicile_refused_outside_total", (code,))
        self._shed(refused)
        try:
            entry = self.scribe.refusal(refused.error, refused.at)
        except AuditError:
            self.metrics.count("domicile_log_failures_total")
            return None
        return await self._record(entry)

    def _shed(self, refused: Refused) -> None:
        """Count by class who found no room."""
        if refused.error.code == "overloaded" and isinstance(refused.at, Filtered):
            priority = refused.at.graded.decided.classified.admitted.priority
            if priority is not None:
                self.metrics.count("domicile_shed_total", (priority.label,))

    async def answer(self, arrival: Arrival, error: RequestError, record: str | None) -> None:
        """The error in the surface's own shape, or as an event when the stream has begun."""
        await send_error(arrival, error, record)

    async def _misdirected(self, arrival: Arrival, key: str, elsewhere: Direction) -> RequestError:
        """Record a 421 (or that no router lies inside) and give the error to raise."""
        self.metrics.count("domicile_misdirected_total", ("early",))
        now = max(self.wall_time(), self.log.newest_time())
        entry = self.scribe.misdirected(arrival, key, elsewhere.region, "early", now)
        await self._record(entry)
        return elsewhere.error()

    async def _record(self, entry: Entry) -> str | None:
        try:
            receipt = await self.log.record(entry)
        except AuditError:
            self.metrics.count("domicile_log_failures_total")
            return None
        return f"{receipt.log}/{receipt.index}/{receipt.leaf}"


def record_id(arrival: Arrival, turn: int) -> str:
    """The id of a request's entries; a decision made anew has one of its own."""
    return arrival.id if turn == 0 else f"{arrival.id}.{turn}"
