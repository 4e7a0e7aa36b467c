"""Step 6, filter: which endpoints are inside the boundary and can serve the call. Pure.

Permanent reasons only; load, health and vetoes pass and are looked at later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regions.footprints.base import footprint
from regions.footprints.joining import joined
from regions.model import Call, Endpoint, Footprint
from router.decisions.field import BELOW, Field, ask_of
from router.errors import RequestError
from router.pipeline import Refused
from router.snapshot import Snapshot
from router.types import Admitted, Filtered, Graded, Left

CALLS = frozenset({"parameter_changes_place", "parameter_not_allowed", "invalid_request"})
NEEDS = frozenset(
    {"feature_missing", "context_too_short", "surface_missing", "capability_not_available"}
)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}|[0-9]{1,9}")
_KIND = re.compile(r"\[[^\]]*\]?")


@dataclass(slots=True)
class Filter:
    """Judges a model's endpoints; remembers footprints, which depend on shapes only.

    `bound` is the most footprints remembered, and the most verdicts.
    """

    footprints: dict[tuple[str, str, Call], Footprint]
    bound: int = 8192
    _field: Field | None = None

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
        field_ = self._field
        snapshot = graded.decided.classified.admitted.snapshot
        if field_ is None or field_.snapshot is not snapshot:
            field_ = self._field = Field(snapshot, self._footprint, self.bound)
        return field_.judged(graded)

    def forget(self) -> None:
        """Keep no footprint of a snapshot that has been replaced."""
        self.footprints.clear()

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
                if why := _why(filtered, one.endpoint, detail):
                    message = f"no endpoint inside the boundary takes this request: {why}"
                return RequestError(code, message, param=named, reasons=reasons)
    if all(set(one.codes) == {BELOW} for one in inside):
        message = "the model's tier asked for has no endpoint inside the boundary"
        return RequestError("tier_outside_boundary", message, reasons=reasons)
    message = "no endpoint inside the boundary offers what this request asks for"
    return RequestError("capability_not_available", message, reasons=reasons)


def _why(filtered: Filtered, name: str, path: str) -> str:
    """What an endpoint's provider says of a parameter, which tells what to change; empty where the
    table of parameters refuses it."""
    admitted = filtered.graded.decided.classified.admitted
    endpoint = admitted.snapshot.policy.endpoints[name]
    told = admitted.snapshot.provider(endpoint).refusal(ask_of(admitted), endpoint)
    return told.message if told is not None and told.param == path else ""


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
