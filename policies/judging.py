"""The fast filter: the same verdicts as `policies.eligibility.judge`, by a few masks.

An endpoint that lies inside, with nothing more demanded of it, needs six comparisons. One
that lies outside for reasons that only depend on masks gets the reasons found the first
time. Everything else is judged by the reference.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

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
Place = tuple[Candidate, Endpoint, Footprint]
_Row = tuple[Candidate, Excluded | None, float | None, Place | None]
SEATS: Final = 4096


class _Seats(NamedTuple):
    """What some bounds and places alone decide, until a footprint's facts lapse (epoch seconds).

    `places` are kept, so that no other tuple gets their id. A row: the candidate; out for reasons
    that don't change; when its footprint lapses; or the place, when it is judged each time.
    """

    places: tuple[Place, ...]
    until: float
    rows: tuple[_Row, ...]


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
        self._seats: dict[tuple[int, ...], _Seats] = {}

    def judge(
        self,
        decision: Decision,
        candidate: Candidate,
        endpoint: Endpoint,
        footprint: Footprint,
        now: float,
    ) -> Eligible | Excluded:
        """The verdict of `policies.eligibility.judge` for this router."""
        decision = decision.settled(candidate)
        allowed = decision.common
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
        self, decision: Decision, places: tuple[Place, ...], now: float
    ) -> list[Eligible | Excluded]:
        """The verdicts on several endpoints, in order. What the places alone decide is remembered
        for the tuple itself: give the same one again."""
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
        key = (inside.sure, allowed.retain.sure, allowed.operate.mask, id(places))
        seats = self._seats.get(key)
        if seats is None or now >= seats.until:
            seats = self._seated(key, decision, places, now)
        found: list[Eligible | Excluded] = []
        until = sooner(allowed.good_until, decision.good_until)
        for candidate, out, ends, special in seats.rows:
            if out is not None:
                found.append(out)
            elif special is not None:
                found.append(self.judge(decision, *special, now))
            else:
                good = until if ends is None else sooner(until, ends)
                # Half the cost of `Eligible(...)`.
                found.append(tuple.__new__(Eligible, (candidate, allowed, good)))
        return found

    def _seated(
        self, key: tuple[int, ...], decision: Decision, places: tuple[Place, ...], now: float
    ) -> _Seats:
        """Judge places where nothing but places is in the way."""
        rows = tuple(self._row(decision, place, now) for place in places)
        until = min((ends for _, _, ends, _ in rows if ends is not None), default=inf)
        if len(self._seats) >= SEATS:
            self._seats.clear()
        seats = self._seats[key] = _Seats(places, until, rows)
        return seats

    def _row(self, decision: Decision, place: Place, now: float) -> _Row:
        candidate, endpoint, footprint = place
        allowed, process, ends = decision.common, footprint.process, footprint.good_until
        lapsed = ends is not None and now >= ends
        if lapsed or process.atlas is not self._atlas:
            return candidate, None, None, place
        if (
            process.mask & (~allowed.process.sure | UNKNOWN_BIT)
            or footprint.retain.mask & ~allowed.retain.sure
            or footprint.operate.mask & ~allowed.operate.mask
        ):
            out = judge(decision, candidate, endpoint, footprint, self._region, now)
            reasons = out.reasons if isinstance(out, Excluded) else ()
            return candidate, Excluded(candidate, reasons), ends, None
        special = place if endpoint.assurances else None
        return candidate, None, ends, special

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
