"""What the region log holds of a request: closed vocabularies only.

Names from policy and catalog, codes, numbers, digests. No prompt, no completion, no IP
address, no text that a client could choose freely: of what it sent a keyed digest, of its `user` a
pseudonym, of an unknown model's name a commitment (`router/audit/openings.py`). What many requests
share (allowed sets, rules, candidates, footprints) is interned, so that it is written once per
segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import inf
from typing import Final

import orjson

from router.answers.outcomes import SPENT
from router.attempts.prefilling import half_of
from router.audit.entry import Entry, Interned, Joined, Json, make_entry
from router.audit.form import Filled
from router.audit.openings import Openings, TenantKey
from router.entries.alike import Alike
from router.entries.entry_bodies import (
    allowed_body,
    attempt_body,
    attributes_body,
    candidates_body,
    graded_body,
    user_of,
    written,
)
from router.entries.formed import Formed
from router.entries.recipients import recipients
from router.errors import RequestError
from router.settling import Ended
from router.types import Admitted, Arrival, Attempt, Candidacy, Decided, Filtered, Plan, Verdict

_OPEN: Final = 1 << 16
Ordered = tuple[Interned, Mapping[str, Json]]
"""The names of an order, and who computes the prompts of whom, where that is another endpoint."""


class Scribe:
    """Writes entries' bodies; keeps what is interned, so that it is encoded once.

    Args:
        router: this router's id.
        region: the region it runs in.
        openings: what binds contents and users, and keeps what opens it.
        bound: interned values kept at most.
    """

    def __init__(self, router: str, region: str, openings: Openings, bound: int = 4096) -> None:
        self._shared: dict[object, Interned] = {}
        self._seen: dict[object, tuple[tuple[object, ...], Interned]] = {}
        self._bound = bound
        self._router = {"id": router, "region": region}
        self._openings = openings
        self._formed = Formed(bound)
        self._orders: Alike[tuple[Candidacy, ...], Ordered] = Alike(bound)
        self._answers: dict[object, tuple[Candidacy, Interned]] = {}
        self._binding: dict[str, TenantKey] = {}

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced; what it wrote is in the log."""
        for kept in (self._shared, self._seen, self._formed, self._orders, self._answers):
            kept.clear()

    def decision(self, plan: Plan) -> Entry:
        """The entry that must be durable before a byte leaves.

        Raises:
            LogUnavailable: what would open it can't be kept.
        """
        admitted, ranked = plan.admitted, plan.ranked
        filtered = ranked.filtered
        graded = filtered.graded
        at = _decided_at(graded.decided)
        key = self._openings.key(admitted.authenticated.principal.tenant, at)
        until = None if plan.good_until is None else int(plan.good_until)
        shared = self._common(filtered, key.id, until)
        order, halves = self._order(ranked.order)
        if admitted.snapshot.config.log.bind_answers:
            if len(self._binding) >= _OPEN:  # entries of requests that were never committed
                del self._binding[next(iter(self._binding))]
            self._binding[plan.id] = key
        known = admitted.asked.model in admitted.snapshot.policy.models
        verdict = graded.verdict
        said = None if verdict is None else self._graded(verdict)
        score = None if verdict is None else verdict.score
        if known and not halves and not ranked.passed:
            user = user_of(admitted)
            filled = self._formed.decision(
                shared,
                written(key.content(plan.id, admitted.raw)),
                order,
                None if user is None else written(key.pseudonym(user)),
                said,
                score,
            )
            return make_entry("decision", plan.id, at, filled)
        body = self._bound_to(admitted, plan.id, at, key)
        passed: dict[str, Json] = dict.fromkeys(ranked.passed, SPENT)
        rest: dict[str, Json] = {"prefill": {**halves}, "passed": passed}
        body |= {"plan": order, **{name: one for name, one in rest.items() if one}}
        if said is not None:
            body["graded"] = said if score is None else Joined(said, {"score": score})
        return Entry("decision", plan.id, at, body, shared)

    def attempt(self, plan: Plan, candidacy: Candidacy, number: int, now: float) -> Entry:
        """The entry of a second or later attempt, durable before it is sent."""
        body: dict[str, Json] = {
            "endpoint": candidacy.endpoint.name,
            "number": number,
            "ran": self._ran(plan, candidacy),
        }
        return Entry("attempt", plan.id, now, body)

    def outcome(self, ended: Ended, plan: Plan, now: float) -> Entry:
        """How it went, from what was called; `replays` is the request whose answer was given."""
        answered, key = ended.candidacy, self._binding.pop(plan.id, None)
        bound = None if key is None or not ended.answer else key.answer(plan.id, ended.answer)
        usual = None if answered is None else self._usual(ended, answered, plan, bound)
        if usual is not None:
            return make_entry("outcome", plan.id, now, usual)
        body: dict[str, Json] = {"millis": ended.millis}
        tried = [self._tried(one, plan, answered) for one in ended.attempts]
        ran = None if answered is None else self._answered(plan, answered, ended)
        if ran is not None and len(tried) == 1:
            ran = self._together(ran, tried[0].shared)
            body |= tried[0].rest
        else:
            body["attempts"] = tried
        if ended.usage is not None:
            body["tokens"] = list(ended.usage)
        once = plan.admitted.lease.once
        if once is not None and once.answer is not None:
            body["replays"] = once.answer.id
        optional: dict[str, Json] = {
            "broke": ended.broke, "provider_code": ended.provider_code,
            "estimated": ended.estimated, "answer": bound,
        }  # fmt: skip
        body |= {name: value for name, value in optional.items() if value}
        if ended.micro_dollars is not None:
            body["cost"] = ended.micro_dollars
        if answered is None:
            body["status"] = ended.status
        return Entry("outcome", plan.id, now, body, ran)

    def refusal(self, error: RequestError, at: Decided | Filtered) -> Entry:
        """A request that ended before anything was sent.

        Raises:
            LogUnavailable: what would open it can't be kept.
        """
        decided = at.graded.decided if isinstance(at, Filtered) else at
        admitted, now = decided.classified.admitted, _decided_at(decided)
        key = self._openings.key(admitted.authenticated.principal.tenant, now)
        body = self._bound_to(admitted, admitted.arrival.id, now, key)
        body["code"] = error.code
        return Entry("refusal", admitted.arrival.id, now, body, self._common(at, key.id))

    def misdirected(
        self, arrival: Arrival, key: str, target: str | None, when: str, now: float
    ) -> Entry:
        """A 421: time, key, target and the reason, nothing else."""
        body: dict[str, Json] = {"key": key, "target": target or "none", "when": when}
        return Entry("misdirected", arrival.id, now, body)

    # ----------------------------------------------------------------------------------

    def _bound_to(
        self, admitted: Admitted, id_: str, now: float, key: TenantKey
    ) -> dict[str, Json]:
        """Which text and which user it was for, as nobody can tell who doesn't know them."""
        bound: dict[str, Json] = {"content": key.content(id_, admitted.raw)}
        user = user_of(admitted)
        if user is not None:
            bound["user"] = key.pseudonym(user)
        model = admitted.asked.model
        if model not in admitted.snapshot.policy.models:
            made = self._openings.commit(key.tenant, id_, "model", model, now)
            if made is not None:
                bound["committed"] = {"model": made}
        return bound

    def _common(self, at: Decided | Filtered, bound: str, until: int | None = None) -> Interned:
        """What requests of one kind have in common: who asks, what is known and allowed, who is in,
        until when that is good, and the name of the key that binds them."""
        if not isinstance(at, Filtered):
            return self._written(at, bound)
        decided = at.graded.decided
        admitted = decided.classified.admitted
        known = admitted.authenticated
        attributes, common = decided.classified.attributes, decided.decision.common
        key = (id(at.eligible), id(at.excluded), id(attributes), id(admitted.snapshot), id(common),
               known.principal.key, known.now.clock_behind, admitted.asked.model,
               admitted.call.movers, known.arrival.purpose, admitted.priority, at.graded.floor,
               at.graded.grader, bound, until)  # fmt: skip
        found = self._seen.get(key)
        if found is not None:
            return found[1]
        if len(self._seen) >= self._bound:
            self._seen.clear()
        written = self._written(at, bound, until)
        # The very objects are kept with it: an id is no other's as long as they live.
        alike = (at.eligible, at.excluded, attributes, admitted.snapshot, common)
        self._seen[key] = (alike, written)
        return written

    def _written(self, at: Decided | Filtered, bound: str, until: int | None = None) -> Interned:
        decided = at.graded.decided if isinstance(at, Filtered) else at
        admitted = decided.classified.admitted
        shown: dict[str, Json] = {
            "who": self._who(admitted),
            "snapshot": admitted.arrival.snapshot.digest,
            "attributes": attributes_body(decided),
            "allowed": allowed_body(decided.decision),
            "bound": bound,
        }
        if until is not None:
            shown["good_until"] = until
        if admitted.call.movers:
            shown["moves"] = sorted(admitted.call.movers)
        if isinstance(at, Filtered):
            shown |= {
                "tier": at.graded.floor.label,
                "grader": at.graded.grader,
                "candidates": candidates_body(at),
            }
        return self._once(sha256(orjson.dumps(shown)).digest(), shown)

    def _who(self, admitted: Admitted) -> dict[str, Json]:
        principal = admitted.authenticated.principal
        arrival = admitted.arrival
        model = admitted.asked.model
        known = model in arrival.snapshot.policy.models
        who: dict[str, Json] = {
            "router": self._router,
            "key": principal.key,
            "tenant": principal.tenant,
            "app": principal.app or "",
            "model": model if known else "unknown",
            "surface": arrival.surface.name,
            "purpose": arrival.purpose.value,
            "policy": arrival.snapshot.policy.digest,
            "clock": "behind" if admitted.authenticated.now.clock_behind else "ok",
        }
        if admitted.priority is not None:
            who["priority"] = admitted.priority.label
        return who

    def _graded(self, verdict: Verdict) -> Interned:
        """What the classifier said but for the score: one of few values."""
        key = ("graded", verdict.by, verdict.tier, verdict.reason, verdict.used, verdict.cut)
        return self._shared.get(key) or self._once(key, graded_body(verdict))

    def _order(self, order: tuple[Candidacy, ...]) -> Ordered:
        """What is said of an order; the same order is mostly the same object."""
        known = self._orders.get(order)
        if known is None:
            names = tuple([c.endpoint.name for c in order])
            plan = self._once(("plan", names), names)
            known = self._orders.put(order, (plan, _halves(order)))
        return known

    def _usual(
        self, ended: Ended, answered: Candidacy, plan: Plan, bound: str | None
    ) -> Filled | None:
        """The outcome of one attempt that was answered, if that and its figures are all of it."""
        attempts, tokens = ended.attempts, ended.usage
        once = plan.admitted.lease.once
        if len(attempts) != 1 or tokens is None or ended.broke or ended.provider_code:
            return None
        one = attempts[0]
        if (one.call_id and one.call_id != plan.id) or once is not None:
            return None
        key = (id(answered), ended.status, ended.place, one.endpoint, one.result, one.status,
               one.provider_code)  # fmt: skip
        known = self._answers.get(key)
        # An assurance may lapse meanwhile: then what it was called under is looked at each time.
        if known is None or known[0] is not answered or answered.endpoint.assurances:
            ran = self._answered(plan, answered, ended)
            tried = self._tried(one, plan, answered).shared
            known = (answered, self._together(ran, tried))
            if len(self._answers) >= self._bound:
                self._answers.clear()
            self._answers[key] = known
        return self._formed.outcome(
            known[1],
            (ended.millis, one.millis),
            tokens,
            ended.micro_dollars,
            ended.estimated,
            None if bound is None else written(bound),
        )

    def _answered(self, plan: Plan, candidacy: Candidacy, ended: Ended) -> Interned:
        """The endpoint that answered, what it was called under, where it says it ran, and how it
        ended."""
        ran = self._ran(plan, candidacy)
        told = "not observable" if ended.place is None else ended.place
        key = ("answered", candidacy.endpoint.name, ran.digest, told, ended.status)
        known = self._shared.get(key)
        if known is not None:
            return known
        return self._once(
            key,
            {
                "endpoint": candidacy.endpoint.name,
                "ran": ran.value,
                "place": told,
                "status": ended.status,
            },
        )

    def _together(self, ran: Interned, tried: Interned) -> Interned:
        """An answer and the one attempt that it took."""
        both = {**(ran.fields or {}), "attempts": [tried.value]}
        return self._once(("together", ran.digest, tried.digest), both)

    def _ran(self, plan: Plan, candidacy: Candidacy) -> Interned:
        """What an endpoint is called under: its footprint, who receives the data, by what right."""
        footprint, endpoint = candidacy.footprint, candidacy.endpoint
        catalog = plan.admitted.snapshot.catalog
        now = plan.ranked.filtered.graded.decided.decision.now
        held = tuple(one.name for one in endpoint.assurances if one.held(now))
        key = ("ran", endpoint.name, endpoint.provider, endpoint.source, endpoint.model,
               footprint.process.mask, footprint.retain.mask, footprint.operate.mask, held,
               catalog.digest)  # fmt: skip
        known = self._shared.get(key)
        if known is not None:
            return known
        kept = footprint.process.atlas.atoms_of(footprint.retain.mask)
        ran: dict[str, Json] = {
            "provider": endpoint.provider,
            "model": endpoint.model,
            "source": endpoint.source or "",
            "process": list(footprint.process.ids),
            "retain": sorted(atom.id for atom in kept) or "nothing",
            "operate": list(footprint.operate.codes),
            "recipients": list(recipients(catalog, footprint.process)),
            "mechanisms": sorted(held),
        }
        return self._once(key, ran)

    def _tried(self, one: Attempt, plan: Plan, answered: Candidacy | None) -> Joined:
        """One attempt, with what it was called under unless it is the one that answered."""
        called = None
        if answered is None or one.endpoint != answered.endpoint.name:
            called = self._ran(plan, _called(plan.ranked.order, one))
        digest = None if called is None else called.digest
        key = ("tried", one.endpoint, one.result, one.status, one.provider_code, digest)
        shared = self._shared.get(key) or self._once(key, attempt_body(one, called))
        rest: dict[str, Json] = {"ms": one.millis}
        # Engines that answer with our own request id tell nothing by it.
        if one.call_id and one.call_id != plan.id:
            rest["call"] = one.call_id
        return Joined(shared, rest)

    def _once(self, key: object, value: Json) -> Interned:
        known = self._shared.get(key)
        if known is None:
            if len(self._shared) >= self._bound:
                self._shared.clear()
            known = self._shared[key] = Interned(value)
        return known


def _halves(order: Sequence[Candidacy]) -> Mapping[str, Json]:
    """Who computes the prompts of whom, where that is another endpoint."""
    return {
        one.endpoint.name: one.endpoint.prefill.name
        for one in order
        if one.endpoint.prefill is not None
    }


def _called(order: Sequence[Candidacy], one: Attempt) -> Candidacy:
    """The endpoint of a plan that was asked, or the other half of the one that it was asked for."""
    named = {c.endpoint.name: c for c in order}
    found = named[one.judged or one.endpoint]
    half = found.endpoint.prefill
    return found if half is None or half.name != one.endpoint else half_of(found, half)


def _decided_at(decided: Decided) -> float:
    """When it was decided, as `audit replay` takes it; with a wrong clock, when it came."""
    came, now = decided.classified.admitted.arrival.at, decided.decision.now
    return now if came < now < inf else came
