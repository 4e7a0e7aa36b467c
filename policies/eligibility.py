"""Whether an endpoint may serve a call under a decision: law 6, as permanent reasons only.

Checked in this order, all of them, so that a refusal names everything that was in the way:

1. the decision: still good, something granted, obligations without conflict;
2. process: known, inside, and this router's own region inside as well;
3. retain: inside, where an unknown lies only inside plain `worldwide`;
4. operate: inside, where an unknown lies only inside `any`;
5. assurances required: held now;
6. obligations that remove endpoints.

Load, health and vetoes are not here: they pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from policies.conditions import Candidate
from policies.engine import Allowed, Decision
from policies.obligations import (
    AnyObligation,
    InRegion,
    MaxPrice,
    NoBatch,
    NoGlobal,
    TierRange,
    ZeroRetention,
)
from policies.timed import earliest
from regions.countries import Countries
from regions.model import Endpoint, Footprint
from regions.places import Elsewhere, PlaceSet, Region, Unknown

CODES: Final = frozenset(
    {
        "decision_lapsed",
        "no_grant",
        "obligations_conflict",
        "footprint_lapsed",
        "process_unknown",
        "process_outside",
        "router_outside",
        "retain_unknown",
        "retain_outside",
        "operate_unknown",
        "operate_outside",
        "assurance_missing",
        "assurance_lapsed",
        "zero_retention",
        "tier_below_floor",
        "tier_above_ceiling",
        "max_price",
        "in_region",
        "no_global",
        "no_batch",
    }
)


class Reason(NamedTuple):
    """Why an endpoint is out: a code from `CODES` and what exactly, in closed words."""

    code: str
    detail: str = ""


class Eligible(NamedTuple):
    """The endpoint may be called until `good_until` (decision, assurances and footprint)."""

    candidate: Candidate
    allowed: Allowed
    good_until: float | None


class Excluded(NamedTuple):
    """The endpoint may not be called, for every one of these reasons."""

    candidate: Candidate
    reasons: tuple[Reason, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The reason codes, in the order checked, each once."""
        return tuple(dict.fromkeys(reason.code for reason in self.reasons))


def judge(
    decision: Decision,
    candidate: Candidate,
    endpoint: Endpoint,
    footprint: Footprint,
    router_region: str,
    now: float,
) -> Eligible | Excluded:
    """Judge one endpoint for one call.

    Args:
        decision: of this request.
        candidate: the endpoint as rules see it; `endpoint` and its `footprint` for this call.
        router_region: the id of the region this router runs in; it processes every call.
        now: seconds since the epoch; assurances and facts must hold then.

    Raises:
        PlaceError: the router's region is not in the catalog, or catalogs are mixed.
    """
    allowed = decision.allowed(candidate)
    router = allowed.process.atlas.place(router_region)
    reasons = (
        *_decision(decision, allowed, now),
        *_process(allowed, footprint, router, now),
        *_retain(allowed, footprint),
        *_operate(allowed, footprint),
        *_assurances(allowed, endpoint, now),
        *_obligations(decision, allowed, candidate, endpoint, footprint, now),
    )
    if reasons:
        return Excluded(candidate, reasons)
    ends = [a.until for a in endpoint.assurances if a.name in allowed.require | {"zdr"}]
    ends = [end for end in ends if end is None or now < end]
    ends += [decision.good_until, allowed.good_until, footprint.good_until]
    return Eligible(candidate, allowed, earliest(ends))


def _decision(decision: Decision, allowed: Allowed, now: float) -> Iterator[Reason]:
    if not decision.is_good(now):
        yield Reason("decision_lapsed")
    if decision.denied:
        yield Reason(decision.denied, decision.ask.tenant)
    for kind in sorted(allowed.conflict):
        yield Reason("obligations_conflict", kind)


def _process(
    allowed: Allowed, footprint: Footprint, router: PlaceSet, now: float
) -> Iterator[Reason]:
    if footprint.good_until is not None and now >= footprint.good_until:
        yield Reason("footprint_lapsed")
    if not footprint.process.is_known:
        yield Reason("process_unknown", ", ".join(footprint.missing))
    outside = allowed.process.outside(footprint.process)
    if outside:
        yield Reason("process_outside", ", ".join(outside.ids))
    if not allowed.process.contains(router):
        yield Reason("router_outside", ", ".join(router.ids))


def _retain(allowed: Allowed, footprint: Footprint) -> Iterator[Reason]:
    kept = PlaceSet(allowed.retain.atlas, footprint.retain.mask)
    outside = allowed.retain.outside(kept)
    if not outside.is_known:
        yield Reason("retain_unknown", ", ".join(footprint.missing))
    elif outside:
        yield Reason("retain_outside", ", ".join(outside.ids))


def _operate(allowed: Allowed, footprint: Footprint) -> Iterator[Reason]:
    if allowed.operate.contains(footprint.operate):
        return
    # Not `Countries.__sub__`: that also takes away what only may be inside.
    outside = Countries(footprint.operate.mask & ~allowed.operate.mask)
    if not outside.is_known:
        yield Reason("operate_unknown", ", ".join(footprint.missing))
    else:
        yield Reason("operate_outside", ", ".join(outside.codes))


def _assurances(allowed: Allowed, endpoint: Endpoint, now: float) -> Iterator[Reason]:
    for name in sorted(allowed.require):
        if not _holds(endpoint, name, now):
            known = any(one.name == name for one in endpoint.assurances)
            yield Reason("assurance_lapsed" if known else "assurance_missing", name)


def _holds(endpoint: Endpoint, name: str, now: float) -> bool:
    return any(one.name == name and one.held(now) for one in endpoint.assurances)


def _obligations(
    decision: Decision,
    allowed: Allowed,
    candidate: Candidate,
    endpoint: Endpoint,
    footprint: Footprint,
    now: float,
) -> Iterator[Reason]:
    for one in allowed.obligations:
        if isinstance(one, NoBatch):
            if decision.ask.purpose == "batch":
                yield Reason("no_batch")
        elif isinstance(one, ZeroRetention):
            if not (footprint.retain.is_nothing or _holds(endpoint, "zdr", now)):
                yield Reason("zero_retention")
        else:
            yield from _of_endpoint(one, candidate, endpoint, footprint)


def _of_endpoint(
    one: AnyObligation, candidate: Candidate, endpoint: Endpoint, footprint: Footprint
) -> Iterator[Reason]:
    if isinstance(one, TierRange):
        if candidate.tier < one.floor:
            yield Reason("tier_below_floor", one.floor.label)
        if candidate.tier > one.ceiling:
            yield Reason("tier_above_ceiling", one.ceiling.label)
    elif isinstance(one, MaxPrice) and not one.admits(endpoint.price):
        yield Reason("max_price")
    elif isinstance(one, InRegion) and not _one_region(footprint.process):
        yield Reason("in_region", ", ".join(footprint.process.ids))
    elif isinstance(one, NoGlobal) and _is_global(endpoint, footprint.process):
        yield Reason("no_global")


def _one_region(places: PlaceSet) -> bool:
    return len(places) == 1 and all(isinstance(atom, Region) for atom in places)


def _is_global(endpoint: Endpoint, places: PlaceSet) -> bool:
    named = endpoint.model.rpartition("/")[2].startswith("global.")
    return named or any(isinstance(atom, Elsewhere | Unknown) for atom in places)
