"""What the log holds of requests of one kind: closed vocabularies (see `router.entries.records`).

Names from policy and catalog, codes, numbers. No text that a client could choose freely.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import ceil
from typing import Final

from policies.engine import Decision
from policies.obligations import Obligations, RecordRetention
from regions.footprints.parameters import tables
from router.audit.entry import Interned, Json
from router.audit.form import Quoted
from router.eligible import CALLS
from router.types import Admitted, Attempt, Decided, Filtered, Verdict

PLACE: Final = "parameter_changes_place"
"""Its details are names of our own lists, whatever the client sent."""


def written(digest: str) -> Quoted:
    """What `openings.text` wrote: URL-safe base64, in which nothing needs an escape."""
    return Quoted(b'"%b"' % digest.encode())


def user_of(admitted: Admitted) -> str | None:
    """Whom a request says it is for."""
    body = admitted.body
    user = body.get("user") or body.get("safety_identifier")
    return user if isinstance(user, str) and user else None


def graded_body(verdict: Verdict) -> dict[str, Json]:
    """What the classifier said, without the score, which each request has of its own."""
    shown: dict[str, Json] = {
        "by": verdict.by, "tier": verdict.tier.label, "reason": verdict.reason,
        "used": verdict.used,
    }  # fmt: skip
    if verdict.cut:
        shown["cut"] = True
    return shown


def candidates_body(filtered: Filtered) -> dict[str, Json]:
    """Every endpoint of the model: eligible, or why not."""
    # A parameter that no table lists has a name of the client's making: it stays out.
    surface = filtered.graded.decided.classified.admitted.call.surface
    listed = tables()[surface].request.keys
    shown: dict[str, Json] = {
        left.endpoint: [_reason(code, detail, listed) for code, detail in left.reasons]
        for left in filtered.excluded
    }
    return shown | {c.endpoint.name: "eligible" for c in filtered.eligible}


def attributes_body(decided: Decided) -> dict[str, Json]:
    """What is known of a request, and from whom."""
    attributes = decided.classified.attributes
    return {
        name: {
            "values": sorted(attributes[name].values),
            "closed": attributes[name].closed,
            "from": sorted(f"{v}: {s}" for v, s in attributes.origins.get(name, ())),
        }
        for name in sorted(attributes)
    }


def attempt_body(one: Attempt, called: Interned | None) -> dict[str, Json]:
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
