"""`ensure`: requests still find an endpoint after any one region, provider, … is lost.

It is judged for plain interactive calls, other purposes where the condition names them, and
with the tier that serves when nothing grades a request. Two kinds of requests count:

1. those that say at most one thing about each attribute: they must find enough endpoints,
   also when a classifier did not finish;
2. those that say more: what they find with everything up must not be lost with one unit.
   When what they say excludes everything by itself, that is the policy's word, not an outage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policies.conditions import Is
from policies.engine import decide
from policies.model import Model
from policies.proving.examples import (
    CounterExample,
    Disagreement,
    allowed_by_engine,
    in_force,
    smallest,
)
from policies.proving.reach import Judging
from policies.proving.requests import Request
from policies.proving.spots import Spot, losses
from policies.statements import Ensure


class Ensuring(Judging):
    """Judges availability statements about one policy at one time; plain calls only."""

    def broken(self, ensure: Ensure) -> CounterExample | None:
        """The smallest counter-example; `None`: there is none.

        Raises:
            Undecided: neither was found within the budget.
            Disagreement: the engine doesn't confirm what was found.
        """
        for model in self._models(ensure):
            serving = {spot: self._serves(spot, model) for spot in self._spots_of(model)}
            for lost, left in _worst(losses(ensure.unit, list(serving))):
                found = self._lacks(ensure, model, serving, left)
                if found is not None:
                    return self._shown(ensure, model, lost, left, found)
        return None

    def is_vacuous(self, ensure: Ensure) -> bool:
        """Whether no request that it speaks of may be made at all.

        Raises:
            Undecided: the budget ran out.
        """
        matching = (self._matching(ensure, model) for model in self._models(ensure))
        return all(self._requests.logic.ask(one) is None for one in matching)

    def _models(self, ensure: Ensure) -> Iterable[Model]:
        known = self._reach.policy.models
        return [known[name] for name in sorted(ensure.models or known)]

    def _spots_of(self, model: Model) -> Iterator[Spot]:
        for spot in self._spots:
            if spot.is_plain and spot.endpoint.name in model.tiers.get(spot.candidate.tier, ()):
                yield spot

    def _serves(self, spot: Spot, model: Model) -> int:
        below = self._reach.below_floor(spot.candidate.tier, model.highest)
        return self._requests.logic.all_of((self._reach.reaches(spot), -below))

    def _matching(self, ensure: Ensure, model: Model) -> int:
        logic = self._requests.logic
        maybe = self._truths.maybe(ensure.condition, None)
        asks = self._reach.may_ask(frozenset({model.name}))
        leaves = ensure.condition.leaves()
        named = any(isinstance(leaf, Is) and leaf.attribute == "purpose" for leaf in leaves)
        purpose = logic.true if named else self._requests.purposes["interactive"]
        return logic.all_of((maybe, asks, purpose))

    def _lacks(
        self, ensure: Ensure, model: Model, serving: dict[Spot, int], left: frozenset[Spot]
    ) -> frozenset[int] | None:
        """An example that matches and finds fewer endpoints than it should."""
        logic, requests = self._requests.logic, self._requests
        remaining: dict[str, list[int]] = {}
        for spot in sorted(left, key=lambda s: s.endpoint.name):
            remaining.setdefault(spot.endpoint.name, []).append(serving[spot])
        endpoints = [logic.any_of(literals) for literals in remaining.values()]
        assumed = [self._matching(ensure, model), *self._fewer(endpoints, ensure.least)]
        terse = smallest(logic, requests.choices, *assumed, requests.terse)
        if terse is not None:
            return terse
        return smallest(logic, requests.choices, *assumed, logic.any_of(serving.values()))

    def _fewer(self, endpoints: Sequence[int], least: int) -> list[int]:
        """What to assume so that fewer than `least` of these hold."""
        logic = self._requests.logic
        if least == 1:
            return [-one for one in endpoints]
        bound = logic.at_most(endpoints, least - 1)
        return [] if bound is None else [bound]

    def _shown(
        self,
        ensure: Ensure,
        model: Model,
        lost: str,
        left: frozenset[Spot],
        example: frozenset[int],
    ) -> CounterExample:
        request, now = self._requests.read(example), self._reach.now
        names = self._left_by_engine(model, left, request)
        if len(names) >= ensure.least:
            raise Disagreement(f"{request}: the engine finds {', '.join(names)}")
        judged = in_force(self._reach.policy, now, trials=True)
        rules = decide(judged, request.ask(judged), now).common.rules
        return CounterExample(request, now, model=model.name, lost=lost, left=names, rules=rules)

    def _left_by_engine(
        self, model: Model, left: frozenset[Spot], request: Request
    ) -> tuple[str, ...]:
        now = self._reach.now
        judged = in_force(self._reach.policy, now, trials=True)
        ceiling = decide(judged, request.ask(judged), now).common.obligations.tiers.ceiling
        floor = min(model.highest, ceiling)
        return tuple(
            sorted(
                {
                    spot.endpoint.name
                    for spot in left
                    if spot.candidate.tier >= floor
                    and allowed_by_engine(judged, request, spot, now) is not None
                }
            )
        )


def _worst(
    cases: Iterable[tuple[str, frozenset[Spot]]],
) -> Iterator[tuple[str, frozenset[Spot]]]:
    """The cases that leave fewest: who outlives these outlives the others."""
    found = sorted(cases, key=lambda case: (len(case[1]), case[0]))
    kept: list[frozenset[Spot]] = []
    for lost, left in found:
        if not any(fewer <= left for fewer in kept):
            kept.append(left)
            yield lost, left
