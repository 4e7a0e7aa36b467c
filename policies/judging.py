"""The fast filter: the same verdicts as `policies.eligibility.judge`, by a few masks.

An endpoint that lies inside, with nothing more demanded of it, needs six comparisons. One
that lies outside for reasons that only depend on masks gets the reasons found the first
time. Everything else is judged by the reference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policies.conditions import Candidate
from policies.eligibility import Eligible, Excluded, Reason, judge
from policies.engine import Allowed, Decision
from policies.timed import earliest, sooner
from regions.atlas import Atlas
from regions.model import Endpoint, Footprint
from regions.places import UNKNOWN_BIT

REMEMBERED: Final = 8192
_Key = tuple[object, ...]
_Reasons = tuple[Reason, ...]


class Judge:
    """Judges endpoints for one router. Not thread-safe: one per event loop.

    Args:
        atlas: of the policy.
        router_region: the id of the region this router runs in.

    Raises:
        PlaceError: the router's region is not in the catalog.
    """

    def __init__(self, atlas: Atlas, router_region: str, remembered: int = REMEMBERED) -> None:
        self._atlas = atlas
        self._region = router_region
        self._router = atlas.place(router_region).mask
        self._remembered = remembered
        self._reasons: dict[_Key, _Reasons] = {}
        self._tables: dict[tuple[int, int, int], dict[int, tuple[Footprint, _Reasons]]] = {}

    def judge(
        self,
        decision: Decision,
        candidate: Candidate,
        endpoint: Endpoint,
        footprint: Footprint,
        now: float,
    ) -> Eligible | Excluded:
        """The verdict of `policies.eligibility.judge` for this router."""
        allowed = decision.allowed(candidate) if decision.pending else decision.common
        process, ends = footprint.process, footprint.good_until
        bound, obligations = allowed.process, allowed.obligations
        if (
            allowed.require
            or obligations.held
            or obligations.conflicts
            or not (ends is None or now < ends)
            or not decision.is_good(now)
            or process.atlas is not self._atlas
            or bound.atlas is not self._atlas
        ):
            return judge(decision, candidate, endpoint, footprint, self._region, now)
        if (
            (process.mask | self._router) & ~bound.sure
            or process.mask & UNKNOWN_BIT
            or footprint.retain.mask & ~allowed.retain.sure
            or footprint.operate.mask & ~allowed.operate.mask
            or decision.denied
        ):
            return self._excluded(decision, candidate, endpoint, footprint, allowed, now)
        if ends is None and decision.good_until is None and not endpoint.assurances:
            return Eligible(candidate, allowed, allowed.good_until)
        until = self._good_until(decision, allowed, endpoint, ends, now)
        return Eligible(candidate, allowed, until)

    def judge_all(
        self,
        decision: Decision,
        places: Iterable[tuple[Candidate, Endpoint, Footprint]],
        now: float,
    ) -> list[Eligible | Excluded]:
        """The verdicts on several endpoints, in order: what they share is looked at once."""
        allowed = decision.common
        inside = allowed.process
        if (
            decision.pending
            or decision.denied
            or allowed.require
            or allowed.obligations.held
            or allowed.obligations.conflicts
            or not decision.is_good(now)
            or inside.atlas is not self._atlas
            or self._router & ~inside.sure
        ):
            return [self.judge(decision, *place, now) for place in places]
        found: list[Eligible | Excluded] = []
        elsewhere, retain = ~inside.sure | UNKNOWN_BIT, ~allowed.retain.sure
        operate, until = ~allowed.operate.mask, sooner(allowed.good_until, decision.good_until)
        table = self._table((inside.sure, allowed.retain.sure, allowed.operate.mask))
        for candidate, endpoint, footprint in places:
            process, ends = footprint.process, footprint.good_until
            if process.atlas is not self._atlas or (ends is not None and now >= ends):
                found.append(self.judge(decision, candidate, endpoint, footprint, now))
            elif (
                process.mask & elsewhere
                or footprint.retain.mask & retain
                or footprint.operate.mask & operate
            ):
                # Nothing but the places is in the way, so equal places have equal reasons.
                known = table.get(id(footprint))
                if known is None or known[0] is not footprint:
                    out = judge(decision, candidate, endpoint, footprint, self._region, now)
                    reasons = out.reasons if isinstance(out, Excluded) else ()
                    known = table[id(footprint)] = (footprint, reasons)
                found.append(Excluded(candidate, known[1]))
            elif endpoint.assurances:
                found.append(self.judge(decision, candidate, endpoint, footprint, now))
            else:
                found.append(Eligible(candidate, allowed, sooner(until, ends)))
        return found

    def _table(self, bounds: tuple[int, int, int]) -> dict[int, tuple[Footprint, _Reasons]]:
        """Footprints outside these bounds, by identity, with why."""
        table = self._tables.get(bounds)
        if table is None or len(table) >= self._remembered:
            if len(self._tables) >= 256:
                self._tables.clear()
            table = self._tables[bounds] = {}
        return table

    def _good_until(
        self,
        decision: Decision,
        allowed: Allowed,
        endpoint: Endpoint,
        ends: float | None,
        now: float,
    ) -> float | None:
        held = [a.until for a in endpoint.assurances if a.name == "zdr" and a.held(now)]
        return earliest([*held, decision.good_until, allowed.good_until, ends])

    def _excluded(
        self,
        decision: Decision,
        candidate: Candidate,
        endpoint: Endpoint,
        footprint: Footprint,
        allowed: Allowed,
        now: float,
    ) -> Eligible | Excluded:
        key = (
            decision.denied,
            decision.denied and decision.ask.tenant,
            footprint.process.mask,
            footprint.retain.mask,
            footprint.operate.mask,
            footprint.missing,
            allowed.process.sure,
            allowed.retain.sure,
            allowed.operate.mask,
        )
        known = self._reasons.get(key)
        if known is not None:
            return Excluded(candidate, known)
        found = judge(decision, candidate, endpoint, footprint, self._region, now)
        if isinstance(found, Excluded):
            if len(self._reasons) >= self._remembered:
                self._reasons.clear()
            self._reasons[key] = found.reasons
        return found
