"""What a pair says: whether the call was the attempt's, and ran where it might.

1. The time, region and model of the call are the attempt's.
2. Where it ran is what the provider told; where nothing is told, the one place of a footprint with
   only one, if it was called there; else it is not observable. A refused call ran nowhere.
3. That place is one that the decision allowed, one that the footprint named, and the one that the
   log says, where it says one. `outside` counts before `drifted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from router.reconcile import names
from router.reconcile.model import UNKNOWN_TIME, Finding, Kind
from router.reconcile.store import BY_TIME, Pair


class Basis(StrEnum):
    """How the place of a call is known."""

    TOLD = "told"
    ONLY = "only"
    NONE = "none"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair's place, how it is known, and what is wrong."""

    basis: Basis
    place: str
    findings: tuple[Finding, ...]


def judge(pair: Pair, skew: int) -> Judged:
    """Judge one pair; clocks may be `skew` microseconds apart."""
    basis, place = _place(pair)
    wrong = [*_not_alike(pair, skew)]
    strayed = any(one.kind is Kind.WRONG_REGION for one in wrong)
    # Called somewhere else, and nothing told: then it ran there, as far as anyone knows.
    ran = place or (pair.call.region if strayed and pair.call.ran else "")
    return Judged(basis, ran, (*wrong, *_placed(pair, ran)))


def _place(pair: Pair) -> tuple[Basis, str]:
    if not pair.call.ran:
        return Basis.NOWHERE, ""
    if pair.call.place:
        return Basis.TOLD, pair.call.place
    footprint = pair.sent.footprint or frozenset({pair.sent.told} - {""})
    if len(footprint) == 1:
        (only,) = footprint
        fleet = pair.call.endpoint in ("", pair.sent.endpoint)
        if (
            fleet
            and pair.call.region in ("", only)
            and not only.startswith(("area:", "elsewhere:"))
        ):
            return Basis.ONLY, only
    return Basis.NONE, ""


def _not_alike(pair: Pair, skew: int) -> Iterator[Finding]:
    """1."""
    sent, facts, call = pair.sent, pair.facts, pair.call
    if facts.source and call.region and call.region != facts.source:
        detail = (
            f"it was called in {call.region}, and `{sent.endpoint}` is called in {facts.source}"
        )
        yield _finding(Kind.WRONG_REGION, pair, detail, call.region)
    asked, found = names.model(facts.model), names.model(call.model)
    if asked and found and asked != found:
        detail = f"it ran `{found}`, and `{sent.endpoint}` is `{asked}`"
        yield _finding(Kind.WRONG_MODEL, pair, detail, call.place)
    known = pair.how != BY_TIME and call.time != UNKNOWN_TIME
    if known and not sent.began - skew <= call.time <= sent.ended + skew:
        off = (call.time - sent.began) / 1e6
        detail = f"it is {abs(off):.0f} s {'after' if off > 0 else 'before'} the attempt began"
        yield _finding(Kind.WRONG_TIME, pair, detail, call.place)


def _placed(pair: Pair, place: str) -> Iterator[Finding]:
    """3."""
    sent = pair.sent
    if not place:
        return
    if not names.covers(sent.allowed, place):
        yield _finding(Kind.OUTSIDE, pair, f"it ran in {place}, which was not allowed", place)
    elif sent.footprint and not names.covers(sent.footprint, place):
        listed = ", ".join(sorted(sent.footprint))
        yield _finding(Kind.DRIFTED, pair, f"it ran in {place}, not in one of {listed}", place)
    if sent.told and sent.told != place:
        detail = f"the log says {sent.told}, the provider {place}"
        yield _finding(Kind.CONTRADICTED, pair, detail, place)


def _finding(kind: Kind, pair: Pair, detail: str, place: str) -> Finding:
    sent, call = pair.sent, pair.call
    return Finding(kind, call.source, detail, sent.record, sent.endpoint, place, call.where)
