"""Step 6, filter: which endpoints are inside the boundary and can serve the call. Pure.

Permanent reasons only; load, health and vetoes pass and are looked at later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.conditions import Candidate
from policies.eligibility import Excluded, judge
from regions.footprints.base import footprint
from regions.footprints.parameters import refusals
from regions.model import Call, Endpoint, Footprint, Tier
from router.drifted import joined
from router.errors import RequestError
from router.pipeline import Refused
from router.providers.base import Ask
from router.snapshot import Snapshot
from router.types import Admitted, Candidacy, Filtered, Graded, Left

CALLS = frozenset({"parameter_changes_place", "parameter_not_allowed", "invalid_request"})
NEEDS = frozenset(
    {"feature_missing", "context_too_short", "surface_missing", "capability_not_available"}
)
BELOW = "tier_below_grade"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}|[0-9]{1,9}")
_KIND = re.compile(r"\[[^\]]*\]?")


@dataclass(slots=True)
class Filter:
    """Judges a model's endpoints; remembers footprints, which depend on shapes only.

    `bound` is the most footprints remembered.
    """

    footprints: dict[tuple[str, str, Call], Footprint]
    bound: int = 8192

    def run(self, graded: Graded) -> Filtered:
        """Every endpoint of the model, judged.

        Raises:
            Refused: none is left; the code says whether the boundary, the tier, or what
                the call asks for was in the way.
        """
        decided = graded.decided
        admitted = decided.classified.admitted
        if not _may_use(admitted):
            message = f"this key may not use model `{admitted.asked.model}`; ask the operator"
            raise Refused(RequestError("model_not_allowed", message, param="model"), decided)
        filtered = self.judge_all(graded)
        if not filtered.eligible:
            raise Refused(none_left(filtered), filtered)
        return filtered

    def judge_all(self, graded: Graded) -> Filtered:
        """Every endpoint of the model, judged, even if none is left."""
        admitted = graded.decided.classified.admitted
        eligible: list[Candidacy] = []
        excluded: list[Left] = []
        for tier, endpoint in admitted.snapshot.policy.candidates(admitted.asked.model):
            found = self._judged(graded, tier, endpoint)
            if isinstance(found, Left):
                excluded.append(found)
            else:
                eligible.append(found)
        return Filtered(graded, tuple(eligible), tuple(excluded))

    def _judged(self, graded: Graded, tier: Tier, endpoint: Endpoint) -> Candidacy | Left:
        decided = graded.decided
        admitted = decided.classified.admitted
        snapshot, now = admitted.snapshot, decided.decision.now
        where = self._footprint(snapshot, endpoint, admitted.call, now)
        candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
        verdict = judge(decided.decision, candidate, endpoint, where, snapshot.region, now)
        needs = tuple(_needs(graded, tier, endpoint, snapshot))
        if isinstance(verdict, Excluded):
            left = Left.judged(verdict)
            return Left(left.endpoint, (*left.reasons, *needs))
        return Left(endpoint.name, needs) if needs else Candidacy(endpoint, verdict, where)

    def _footprint(
        self, snapshot: Snapshot, endpoint: Endpoint, call: Call, now: float
    ) -> Footprint:
        # Only what moves bytes: the rest of a call is the client's to vary without end.
        moved = Call(call.surface, movers=call.movers)
        key = (snapshot.digest, endpoint.name, moved)
        known = self.footprints.get(key)
        if known is not None and (known.good_until is None or now < known.good_until):
            return known
        if len(self.footprints) >= self.bound:
            self.footprints.clear()
        found = footprint(endpoint, moved, snapshot.catalog, now)
        drifted = snapshot.drifted.get(endpoint.name)
        if drifted is not None:
            found = joined(found, drifted)
        self.footprints[key] = found
        return found


def _may_use(admitted: Admitted) -> bool:
    tenant = admitted.snapshot.policy.tenants.get(admitted.authenticated.principal.tenant)
    return tenant is not None and (tenant.models is None or admitted.asked.model in tenant.models)


def _needs(
    graded: Graded, tier: Tier, endpoint: Endpoint, snapshot: Snapshot
) -> Iterator[tuple[str, str]]:
    """What the call needs and the endpoint doesn't offer."""
    classified = graded.decided.classified
    call = classified.admitted.call
    if tier < graded.floor:
        yield BELOW, graded.floor.label
    provider = snapshot.provider(endpoint)
    if call.surface not in provider.surfaces & endpoint.surfaces:
        yield "surface_missing", call.surface
        return
    for feature in sorted(call.features - endpoint.features - {"stream"}):
        yield "feature_missing", feature
    window = endpoint.context_tokens
    if window is not None and classified.prompt_tokens > window:
        yield "context_too_short", str(window)
    for refusal in refusals(endpoint, call):
        yield refusal.code, refusal.parameter
    untold = provider.refusal(ask_of(classified.admitted), endpoint)
    if untold is not None:
        yield untold.code, untold.param or ""


def ask_of(admitted: Admitted) -> Ask:
    """The request as a provider sees it, before anything is committed."""
    arrival = admitted.arrival
    asked = admitted.asked
    return Ask(
        arrival.surface.name, admitted.body, admitted.raw, asked.stream, asked.model, arrival.id
    )


def none_left(filtered: Filtered) -> RequestError:
    """The error when no endpoint is left, after what was in everybody's way."""
    reasons = [{"endpoint": one.endpoint, "excluded": _shown(one)} for one in filtered.excluded]
    inside = [one for one in filtered.excluded if set(one.codes) <= CALLS | NEEDS | {BELOW}]
    if not inside:
        return RequestError("no_endpoint_inside_boundary", _outside(filtered), reasons=reasons)
    for one in inside:
        for code, detail in one.reasons:
            if code in CALLS:
                named = parameter(detail)
                message = f"`{named}` can't be sent to any endpoint inside the boundary"
                return RequestError(code, message, param=named, reasons=reasons)
    if all(set(one.codes) == {BELOW} for one in inside):
        message = "the model's tier asked for has no endpoint inside the boundary"
        return RequestError("tier_outside_boundary", message, reasons=reasons)
    message = "no endpoint inside the boundary offers what this request asks for"
    return RequestError("capability_not_available", message, reasons=reasons)


def parameter(path: str) -> str:
    """A parameter's path as its sender may see it again: plain names, never a value."""
    found = _KIND.sub("", path)
    return found if all(_PLAIN.fullmatch(part) for part in found.split(".")) else "a parameter"


def _shown(left: Left) -> list[str]:
    found = []
    for code, detail in left.reasons:
        told = parameter(detail) if code in CALLS | NEEDS and detail else detail
        found.append(f"{code}: {told}" if told else code)
    return found


def _outside(filtered: Filtered) -> str:
    decision = filtered.graded.decided.decision
    rules = ", ".join(one.rule for one in decision.applied)
    message = "no endpoint of this model lies inside the boundary"
    if rules:
        message += f" of {rules}"
    declared = filtered.graded.decided.classified.admitted.snapshot.policy.declared
    # A refusal that silence caused says what to send.
    told = [declared[name].how_to_send for name in decision.unknowns if name in declared]
    return f"{message}; {'; '.join(told)}" if told else message
