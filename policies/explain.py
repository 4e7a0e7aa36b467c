"""Why an endpoint is out, in a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.eligibility import Reason

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
