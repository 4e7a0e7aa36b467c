"""Why a decision is as it is, and why an endpoint is out: for people, and as data.

A refusal that silence caused names the attribute that was missing and how to send it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from policies.eligibility import Eligible, Excluded, Reason
from policies.engine import Allowed, Applied, Decision
from policies.model import Policy

Explained = Mapping[str, object]

# What each code means; `{}` is the detail.
MEANINGS: Final[Mapping[str, str]] = {
    "decision_lapsed": "the decision has ended; the request is decided again",
    "no_grant": "tenant `{}` has no grant; nothing is allowed",
    "obligations_conflict": "no endpoint can satisfy all `{}` obligations that apply",
    "footprint_lapsed": "a fact about the endpoint has aged; check it and date it again",
    "process_unknown": "it is not known where the call is processed; missing: {}",
    "process_outside": "the call may be processed in {}",
    "router_outside": "this router's own region {} is not allowed",
    "retain_unknown": "it is not known what is kept, or where; missing: {}",
    "retain_outside": "something may be kept in {}",
    "operate_unknown": "it is not known who operates it; missing: {}",
    "operate_outside": "it is operated under the law of {}",
    "assurance_missing": "assurance `{}` is not held",
    "assurance_lapsed": "assurance `{}` has lapsed",
    "zero_retention": "something is kept, and there is no assurance `zdr`",
    "tier_below_floor": "its tier is below {}",
    "tier_above_ceiling": "its tier is above {}",
    "max_price": "its price is not known or above the maximum",
    "in_region": "it does not process in exactly one region: {}",
    "no_global": "its places may be anywhere",
    "no_batch": "the request may not be part of a batch",
}


def say(reason: Reason) -> str:
    """One reason as a sentence."""
    return MEANINGS[reason.code].format(reason.detail or "not said")


def explain(
    policy: Policy, decision: Decision, verdicts: Sequence[Eligible | Excluded] = ()
) -> Explained:
    """A decision and the verdicts on endpoints under it, as JSON-able data."""
    return {
        "tenant": decision.ask.tenant,
        "app": decision.ask.app,
        "purpose": decision.ask.purpose,
        "policy": decision.policy_digest,
        "denied": decision.denied,
        "attributes": _attributes(decision),
        "allowed": allowed_form(decision.common),
        "applied": [_rule(policy, one) for one in decision.applied],
        "depends_on_candidate": [rule.name for rule in decision.pending],
        "dry_run": list(decision.dry_run),
        "unknown": [_silence(policy, name) for name in decision.unknowns],
        "good_until": decision.good_until,
        "eligible": [v.candidate.endpoint for v in verdicts if isinstance(v, Eligible)],
        "excluded": [_excluded(v) for v in verdicts if isinstance(v, Excluded)],
    }


def allowed_form(allowed: Allowed) -> Explained:
    """The allowed sets in closed words, sorted: equal sets have equal forms."""
    return {
        "process": list(allowed.process.places.ids),
        "retain": list(allowed.retain.places.ids),
        "operate": list(allowed.operate.codes),
        "require": sorted(allowed.require),
        "obligations": allowed.obligations.describe(),
        "prefer": sorted(
            [one.rule, *(" ".join(s.places.ids) for s in one.sets)] for one in allowed.prefer
        ),
    }


def lines(
    policy: Policy, decision: Decision, verdicts: Sequence[Eligible | Excluded] = ()
) -> Iterator[str]:
    """The same for people, one line each."""
    who = f"tenant {decision.ask.tenant}, app {decision.ask.app or 'none'}"
    yield f"{who}, {decision.ask.purpose}, policy {decision.policy_digest[:12]}"
    if decision.denied:
        yield f"denied: {say(Reason(decision.denied, decision.ask.tenant))}"
    common = decision.common
    yield f"processed in: {_places(common.process.places.ids)}"
    yield f"retained in: {_places(common.retain.places.ids)}"
    yield f"operated by: {_places(common.operate.codes)}"
    for one in decision.applied:
        yield _applied_line(policy, one)
    for rule in decision.pending:
        yield f"rule {rule.name} depends on the endpoint: {rule.condition.describe()}"
    for name in decision.dry_run:
        yield f"rule {name} is on trial and did not apply"
    for verdict in verdicts:
        yield from _verdict_lines(verdict)
    for name in decision.unknowns:
        declared = policy.declared.get(name)
        if declared is not None:
            yield f"`{name}` is not known, so every rule over it applies; {declared.how_to_send}"


def _applied_line(policy: Policy, one: Applied) -> str:
    form = _rule(policy, one)
    row = f" [{one.row}]" if one.row else ""
    because = f", because {one.because}" if one.because else ""
    silent = f", as {', '.join(one.unknown)} is not known" if one.unknown else ""
    at = f" ({form['at']})" if form["at"] else ""
    return f"rule {one.rule}{row} applies{silent}{because}{at}"


def _verdict_lines(verdict: Eligible | Excluded) -> Iterator[str]:
    if isinstance(verdict, Eligible):
        yield f"{verdict.candidate.endpoint}: eligible"
        return
    for reason in verdict.reasons:
        yield f"{verdict.candidate.endpoint}: out, {say(reason)} ({reason.code})"


def _rule(policy: Policy, one: Applied) -> Mapping[str, object]:
    found = next((r for r in policy.rules if (r.name, r.row) == (one.rule, one.row)), None)
    return {
        "rule": one.rule,
        "row": one.row,
        "because": one.because,
        "unknown": list(one.unknown),
        "when": found.condition.describe() if found is not None else "",
        "at": str(found.mark) if found is not None and found.mark is not None else "",
    }


def _excluded(verdict: Excluded) -> Mapping[str, object]:
    reasons = [{"code": r.code, "detail": r.detail, "text": say(r)} for r in verdict.reasons]
    return {"endpoint": verdict.candidate.endpoint, "reasons": reasons}


def _attributes(decision: Decision) -> Mapping[str, object]:
    attributes = decision.ask.attributes
    return {
        name: {"values": sorted(state.values), "closed": state.closed}
        for name, state in sorted(attributes.states.items())
    }


def _silence(policy: Policy, name: str) -> Mapping[str, str]:
    declared = policy.declared.get(name)
    return {"attribute": name, "how": declared.how_to_send if declared is not None else ""}


def _places(ids: Sequence[str], shown: int = 8) -> str:
    if len(ids) <= shown:
        return ", ".join(ids) or "nowhere"
    return f"{', '.join(ids[:shown])} and {len(ids) - shown} more"
