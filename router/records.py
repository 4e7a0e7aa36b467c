"""What the region log holds of a request: closed vocabularies only.

Names from policy and catalog, codes, numbers, digests. No prompt, no completion, no IP
address, no text that a client could choose freely: of what it sent a keyed digest, of its `user` a
pseudonym, of an unknown model's name a commitment (`router/audit/openings.py`). What many requests
share (allowed sets, rules, candidates, footprints) is interned, so that it is written once per
segment.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from math import ceil, isfinite
from operator import is_
from typing import Final

import orjson

from policies.engine import Decision
from policies.obligations import Obligations, RecordRetention
from regions.footprints.parameters import tables
from router.audit.entry import Entry, Interned, Joined, Json
from router.audit.openings import Openings, TenantKey
from router.eligible import CALLS
from router.errors import RequestError
from router.formed import Formed
from router.recipients import recipients
from router.settling import Ended
from router.types import Admitted, Arrival, Attempt, Candidacy, Decided, Filtered, Plan, Verdict

PLACE: Final = "parameter_changes_place"
"""Its details are names of our own lists, whatever the client sent."""


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

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced; what it wrote is in the log."""
        for kept in (self._shared, self._seen, self._formed):
            kept.clear()

    def decision(self, plan: Plan) -> Entry:
        """The entry that must be durable before a byte leaves.

        Raises:
            LogUnavailable: what would open it can't be kept.
        """
        filtered = plan.ranked.filtered
        at = _decided_at(filtered.graded.decided)
        key = self._key(plan.admitted, at)
        body = self._bound_to(plan.admitted, plan.id, at, key)
        order = tuple([c.endpoint.name for c in plan.ranked.order])
        body["plan"] = self._once(("plan", order), order)
        if plan.good_until is not None:
            body["good_until"] = int(plan.good_until)
        if filtered.graded.verdict is not None:
            body["graded"] = _graded(filtered.graded.verdict)
        shared = self._common(filtered, key.id)
        filled = self._formed.decision(body, shared)
        return (
            Entry("decision", plan.id, at, body, shared)
            if filled is None
            else Entry("decision", plan.id, at, filled)
        )

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
        answered = ended.candidacy
        body: dict[str, Json] = {
            "attempts": [self._tried(one, plan, answered) for one in ended.attempts],
            "millis": ended.millis,
        }
        if ended.usage is not None:
            body["tokens"] = list(ended.usage)
        once = plan.admitted.lease.once
        if once is not None and once.answer is not None:
            body["replays"] = once.answer.id
        if ended.broke:
            body["broke"] = ended.broke
        if ended.provider_code:
            body["provider_code"] = ended.provider_code
        if ended.estimated:
            body["estimated"] = True
        if ended.micro_dollars is not None:
            body["cost"] = ended.micro_dollars
        if answered is None:
            body["status"] = ended.status
        ran = None if answered is None else self._answered(plan, answered, ended)
        filled = None if ran is None else self._formed.outcome(body, ran)
        if filled is not None:
            return Entry("outcome", plan.id, now, filled)
        return Entry("outcome", plan.id, now, body, ran)

    def refusal(self, error: RequestError, at: Decided | Filtered) -> Entry:
        """A request that ended before anything was sent.

        Raises:
            LogUnavailable: what would open it can't be kept.
        """
        decided = at.graded.decided if isinstance(at, Filtered) else at
        admitted, now = decided.classified.admitted, _decided_at(decided)
        key = self._key(admitted, now)
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

    def _key(self, admitted: Admitted, now: float) -> TenantKey:
        return self._openings.key(admitted.authenticated.principal.tenant, now)

    def _bound_to(
        self, admitted: Admitted, id_: str, now: float, key: TenantKey
    ) -> dict[str, Json]:
        """Which text and which user it was for, as nobody can tell who doesn't know them."""
        bound: dict[str, Json] = {"content": key.content(id_, admitted.raw)}
        user = admitted.body.get("user") or admitted.body.get("safety_identifier")
        if isinstance(user, str) and user:
            bound["user"] = key.pseudonym(user)
        model = admitted.asked.model
        if model not in admitted.snapshot.policy.models:
            made = self._openings.commit(key.tenant, id_, "model", model, now)
            if made is not None:
                bound["committed"] = {"model": made}
        return bound

    def _common(self, at: Decided | Filtered, bound: str) -> Interned:
        """What requests of one kind have in common: who asks, what is known and allowed, who is in,
        and the name of the key that binds them."""
        if not isinstance(at, Filtered):
            return self._written(at, bound)
        decided = at.graded.decided
        admitted = decided.classified.admitted
        known = admitted.authenticated
        key = ("common", id(at.eligible), id(at.excluded), known.principal.key,
               known.now.clock_behind, admitted.asked.model, admitted.call.movers,
               known.arrival.purpose, admitted.priority, at.graded.floor, at.graded.grader,
               bound)  # fmt: skip
        # These are the filter's own objects for requests alike, kept so that an id stays theirs.
        decision = decided.decision
        alike = (at.eligible, at.excluded, decided.classified.attributes, admitted.snapshot,
                 decision.common)  # fmt: skip
        return self._alike(key, alike, lambda: self._written(at, bound))

    def _alike(
        self, key: object, alike: tuple[object, ...], write: Callable[[], Interned]
    ) -> Interned:
        found = self._seen.get(key)
        if found is not None and all(map(is_, found[0], alike)):
            return found[1]
        if len(self._seen) >= self._bound:
            self._seen.clear()
        written = write()
        self._seen[key] = (alike, written)
        return written

    def _written(self, at: Decided | Filtered, bound: str) -> Interned:
        decided = at.graded.decided if isinstance(at, Filtered) else at
        admitted = decided.classified.admitted
        shown: dict[str, Json] = {
            "who": self._who(admitted),
            "snapshot": admitted.arrival.snapshot.digest,
            "attributes": _attributes(decided),
            "allowed": allowed_body(decided.decision),
            "bound": bound,
        }
        if admitted.call.movers:
            shown["moves"] = sorted(admitted.call.movers)
        if isinstance(at, Filtered):
            shown |= {
                "tier": at.graded.floor.label,
                "grader": at.graded.grader,
                "candidates": _candidates(at),
            }
        return self._once(orjson.dumps(shown), shown)

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

    def _ran(self, plan: Plan, candidacy: Candidacy) -> Interned:
        """What an endpoint is called under: its footprint, who receives the data, by what right."""
        footprint, endpoint = candidacy.footprint, candidacy.endpoint
        catalog = plan.admitted.snapshot.catalog
        now = plan.ranked.filtered.graded.decided.decision.now
        held = tuple(one.name for one in endpoint.assurances if one.held(now))
        key = ("ran", endpoint.name, footprint.process.mask, footprint.retain.mask,
               footprint.operate.mask, endpoint.model, held, catalog.digest)  # fmt: skip
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
            of = next(c for c in plan.ranked.order if c.endpoint.name == one.endpoint)
            called = self._ran(plan, of)
        digest = None if called is None else called.digest
        key = ("tried", one.endpoint, one.result, one.status, one.provider_code, digest)
        shared = self._shared.get(key) or self._once(key, _attempt(one, called))
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


def _graded(verdict: Verdict) -> dict[str, Json]:
    """What the classifier said; in the log a score is a whole number of thousandths."""
    shown: dict[str, Json] = {
        "by": verdict.by, "tier": verdict.tier.label, "reason": verdict.reason,
        "used": verdict.used,
    }  # fmt: skip
    if verdict.score is not None:
        shown["score"] = verdict.score
    if verdict.cut:
        shown["cut"] = True
    return shown


def _candidates(filtered: Filtered) -> dict[str, Json]:
    # A parameter that no table lists has a name of the client's making: it stays out.
    surface = filtered.graded.decided.classified.admitted.call.surface
    listed = tables()[surface].request.keys
    shown: dict[str, Json] = {
        left.endpoint: [_reason(code, detail, listed) for code, detail in left.reasons]
        for left in filtered.excluded
    }
    return shown | {c.endpoint.name: "eligible" for c in filtered.eligible}


def _attributes(decided: Decided) -> dict[str, Json]:
    attributes = decided.classified.attributes
    return {
        name: {
            "values": sorted(attributes[name].values),
            "closed": attributes[name].closed,
            "from": sorted(f"{v}: {s}" for v, s in attributes.origins.get(name, ())),
        }
        for name in sorted(attributes)
    }


def _attempt(one: Attempt, called: Interned | None) -> dict[str, Json]:
    """What attempts that went alike have in common."""
    shown: dict[str, Json] = {"endpoint": one.endpoint, "result": one.result}
    if one.status is not None and one.result != "ok":
        shown["status"] = one.status
    if one.provider_code:
        shown["provider_code"] = one.provider_code
    if called is not None:
        shown["ran"] = called.value
    return shown


def _reason(code: str, detail: str, listed: Container[str]) -> str:
    """A reason with its detail, unless the detail may be a client's own word."""
    if not detail or (code in CALLS and code != PLACE and detail not in listed):
        return code
    return f"{code}: {detail}"


def _decided_at(decided: Decided) -> float:
    """When it was decided, as `audit replay` takes it; with a wrong clock, when it came."""
    arrival = decided.classified.admitted.arrival
    return max(arrival.at, decided.decision.now) if isfinite(decided.decision.now) else arrival.at


def allowed_body(decision: Decision) -> dict[str, Json]:
    """What a decision allows every candidate, and why."""
    common = decision.common
    rules: Sequence[Json] = [
        {"rule": one.rule, "row": one.row, "because": one.because, "unknown": list(one.unknown)}
        for one in decision.applied
    ]
    return {
        "process": list(common.process.places.ids),
        "retain": list(common.retain.places.ids),
        "operate": list(common.operate.codes),
        "require": sorted(common.require),
        "obligations": sorted(one.kind for one in common.obligations),
        "rules": rules,
        "pending": sorted(rule.name for rule in decision.pending),
        "dry_run": list(decision.dry_run),
        "denied": decision.denied,
        "unknowns": list(decision.unknowns),
        **_kept(common.obligations),
    }


def _kept(obligations: Obligations) -> dict[str, Json]:
    """How long a record must and may be kept, in whole seconds, where a rule says it."""
    if RecordRetention.kind not in obligations:
        return {}
    kept = obligations.record_retention
    most = None if kept.most is None else int(kept.most)
    return {"kept": {"least": ceil(kept.least), "most": most}}
