"""The endpoints of a snapshot's models, judged for calls alike: what step 6 remembers.

A verdict depends on the decision, the footprint, what the call needs, and the time. It is kept
under all of them: under what was decided about and the call's shape, until the first of decision,
footprint and assurances ends. What a body says beyond its shape is asked every time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import inf
from typing import Final, NamedTuple

from policies.conditions import Candidate
from policies.eligibility import Excluded
from policies.engine import Ask as DecisionAsk
from policies.judging import Judge, Place
from regions.footprints.parameters import refusals
from regions.model import Call, Endpoint, Footprint, Tier
from router.providers.base import Ask, Provider
from router.snapshot import Snapshot
from router.types import (
    Admitted,
    Candidacy,
    Classified,
    Filtered,
    Graded,
    Left,
    make_filtered,
)

BELOW: Final = "tier_below_grade"
Need = tuple[str, str]


class _Model(NamedTuple):
    """The endpoints of one model; `windows` are their context sizes in tokens, ascending.

    `names` are parameters that some provider refuses by name; `deep` are the endpoints whose
    provider looks deeper into a body.
    """

    candidates: tuple[tuple[Candidate, Endpoint], ...]
    windows: tuple[int, ...]
    names: frozenset[str]
    deep: tuple[tuple[Provider, Endpoint], ...]


class _Verdicts(NamedTuple):
    """Verdicts of one kind of request, good from `since` until `until`, epoch seconds.

    `ask` is the decision's own object: kept, so that its id is no other's.
    """

    ask: DecisionAsk
    since: float
    until: float
    eligible: tuple[Candidacy, ...]
    excluded: tuple[Left, ...]


class Field:
    """What one snapshot's endpoints are worth to calls. Belongs to one event loop.

    Args:
        footprint: of an endpoint for a call, at a time; remembers by itself.
        bound: entries of each kind.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        footprint: Callable[[Snapshot, Endpoint, Call, float], Footprint],
        bound: int,
    ) -> None:
        self.snapshot = snapshot
        self._footprint = footprint
        self._bound = bound
        self._judge = Judge(snapshot.policy.atlas, snapshot.region)
        self._models: dict[str, _Model] = {}
        self._needs: dict[object, tuple[tuple[Need, ...], ...]] = {}
        self._verdicts: dict[object, _Verdicts] = {}

    def judged(self, graded: Graded) -> Filtered:
        """Every endpoint of the model, judged, even if none is left."""
        decided = graded.decided
        classified = decided.classified
        admitted = classified.admitted
        call, now, asked = admitted.call, decided.decision.now, decided.decision.ask
        model = self._model(admitted.asked.model)
        if call.unknown or call.places or self._looked_at(model, admitted):
            return self._afresh(graded, model, None)
        room = bisect_left(model.windows, classified.prompt_tokens)
        shape = (admitted.asked.model, call.surface, call.movers, call.features, room, graded.floor)
        key = (id(asked), shape)
        known = self._verdicts.get(key)
        if known is not None and known.ask is asked and known.since <= now < known.until:
            return make_filtered(graded, known.eligible, known.excluded)
        found = self._afresh(graded, model, shape)
        if len(self._verdicts) >= self._bound:
            self._verdicts.clear()
        until = self._until(graded, model)
        self._verdicts[key] = _Verdicts(asked, now, until, found.eligible, found.excluded)
        return found

    def _model(self, name: str) -> _Model:
        known = self._models.get(name)
        if known is None:
            policy = self.snapshot.policy
            pairs = policy.candidates(name)
            candidates = tuple((Candidate(e.name, e.model, e.provider, t), e) for t, e in pairs)
            asked = [(self.snapshot.provider(e), e) for _, e in pairs]
            known = self._models[name] = _Model(
                candidates,
                tuple(sorted(e.context_tokens for _, e in pairs if e.context_tokens is not None)),
                frozenset().union(*(p.place_parameters for p, _ in asked if p.refuses_names_only)),
                tuple((p, e) for p, e in asked if not p.refuses_names_only),
            )
        return known

    def _looked_at(self, model: _Model, admitted: Admitted) -> bool:
        """Whether a provider may refuse something in this very body."""
        if not model.names.isdisjoint(admitted.body):
            return True
        if not model.deep:
            return False
        ask = ask_of(admitted)
        return any(provider.refusal(ask, endpoint) for provider, endpoint in model.deep)

    def _until(self, graded: Graded, model: _Model) -> float:
        """The first moment at which any verdict may be another one."""
        decision, call = graded.decided.decision, graded.decided.classified.admitted.call
        now = decision.now
        ends = [decision.good_until]
        for _, endpoint in model.candidates:
            ends.append(self._footprint(self.snapshot, endpoint, call, now).good_until)
            ends += [one.until for one in endpoint.assurances if one.held(now)]
        return min((end for end in ends if end is not None), default=inf)

    def _afresh(self, graded: Graded, model: _Model, shape: object) -> Filtered:
        """Judge; what a call needs is remembered by its shape, unless a body is in the way."""
        decided = graded.decided
        call, now = decided.classified.admitted.call, decided.decision.now
        places: tuple[Place, ...] = tuple(
            (candidate, endpoint, self._footprint(self.snapshot, endpoint, call, now))
            for candidate, endpoint in model.candidates
        )
        verdicts = self._judge.judge_all(decided.decision, places, now)
        eligible: list[Candidacy] = []
        excluded: list[Left] = []
        needed = self._needed(graded, model, shape)
        for verdict, place, needs in zip(verdicts, places, needed, strict=True):
            if isinstance(verdict, Excluded):
                left = Left.judged(verdict)
                excluded.append(Left(left.endpoint, (*left.reasons, *needs)) if needs else left)
            elif needs:
                excluded.append(Left(place[1].name, needs))
            else:
                eligible.append(Candidacy(place[1], verdict, place[2]))
        return Filtered(graded, tuple(eligible), tuple(excluded))

    def _needed(self, graded: Graded, model: _Model, shape: object) -> tuple[tuple[Need, ...], ...]:
        known = None if shape is None else self._needs.get(shape)
        if known is None:
            found = graded.decided.classified
            known = tuple(
                tuple(_needs(found, graded.floor, candidate.tier, endpoint, self.snapshot))
                for candidate, endpoint in model.candidates
            )
            if shape is not None:
                if len(self._needs) >= self._bound:
                    self._needs.clear()
                self._needs[shape] = known
        return known


def _needs(
    classified: Classified, floor: Tier, tier: Tier, endpoint: Endpoint, snapshot: Snapshot
) -> Iterator[Need]:
    """What the call needs and the endpoint doesn't offer."""
    call = classified.admitted.call
    if tier < floor:
        yield BELOW, floor.label
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
