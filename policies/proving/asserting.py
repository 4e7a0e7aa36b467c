"""`assert`: no request, call, failure or fallback reaches an endpoint outside the sets given.

Preferences, grades, health and load order endpoints or remove them, and under some failure
each eligible one is what is left: so every eligible endpoint counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.model import Policy
from policies.proving.examples import (
    CounterExample,
    Disagreement,
    allowed_by_engine,
    in_force,
    smallest,
)
from policies.proving.logic import holds
from policies.proving.reach import Judging
from policies.proving.spots import Spot
from policies.statements import Statement
from regions.countries import Countries
from regions.places import PlaceSet

Outside = tuple[tuple[str, tuple[str, ...]], ...]


def outside(statement: Statement, spot: Spot, now: float) -> Outside:
    """Axis → ids of what of a spot lies outside a statement's sets at `now`."""
    return tuple(_outside(statement, spot, now))


def _outside(statement: Statement, spot: Spot, now: float) -> Iterator[tuple[str, tuple[str, ...]]]:
    atlas, found = spot.footprint.process.atlas, spot.footprint
    if statement.process is not None:
        left = spot.process & ~statement.process.at(now).sure
        if left:
            yield "processed", PlaceSet(atlas, left).ids
    if statement.retain is not None:
        left = found.retain.mask & ~statement.retain.at(now).sure
        if left:
            yield "retained", PlaceSet(atlas, left).ids
    if statement.operate is not None:
        left = found.operate.mask & ~statement.operate.at(now).mask
        if left:
            yield "operated", Countries(left).codes


class Asserting(Judging):
    """Judges statements about one policy at one time."""

    def broken(self, statement: Statement) -> CounterExample | None:
        """The smallest counter-example; `None`: there is none.

        Raises:
            Undecided: neither was found within the budget.
            Disagreement: the engine doesn't confirm what was found.
        """
        logic, now = self._requests.logic, self._reach.now
        ways = {
            spot: self._way(statement, spot)
            for spot in self._spots
            if outside(statement, spot, now)
        }
        some = logic.any_of(ways.values())
        example = smallest(logic, self._requests.choices, some)
        if example is None:
            return None
        taken = [spot for spot, way in ways.items() if holds(way, example)]
        return self._shown(statement, min(taken, key=_order), example)

    def is_vacuous(self, statement: Statement) -> bool:
        """Whether no request it speaks of reaches any endpoint: then it says nothing.

        Raises:
            Undecided: the budget ran out.
        """
        logic = self._requests.logic
        return logic.ask(logic.any_of(self._way(statement, s) for s in self._spots)) is None

    def _way(self, statement: Statement, spot: Spot) -> int:
        return self._requests.logic.all_of(
            (
                self._truths.maybe(statement.condition, spot.candidate),
                self._reach.may_ask(spot.models),
                self._reach.reaches(spot),
            )
        )

    def _shown(self, statement: Statement, spot: Spot, example: frozenset[int]) -> CounterExample:
        request, now = self._requests.read(example), self._reach.now
        judged: Policy = in_force(self._reach.policy, now, trials=False)
        allowed = allowed_by_engine(judged, request, spot, now)
        if allowed is None:
            raise Disagreement(f"{request}: `{spot.endpoint.name}` is not eligible by the engine")
        return CounterExample(
            request,
            now,
            spot.endpoint.name,
            tuple(sorted(spot.call.movers)),
            spot.router or "",
            outside(statement, spot, now),
            rules=allowed.rules,
        )


def _order(spot: Spot) -> tuple[int, str, str]:
    """Plain calls first, then by name: the simplest to look at."""
    return len(spot.call.movers), spot.endpoint.name, spot.router or ""
