"""Step 7, rank: the order in which eligible endpoints are tried. Pure.

Lowest tier with an available endpoint first: one that is well and has room. Within a tier the
operator's `prefer` sets, then standing (health), then whether the first token comes in the time
aimed at. Of those where it does: what one more request costs, how near it is, load. So requests
stay at home, where their caches are, until its queue grows too long; the next nearest takes what
is too much, and they return. Where it does nowhere, the soonest goes first. Residency is no
part of it: whoever is here is inside.

A `prefer` is an ordered list of sets. A later set opens when every endpoint of the earlier
ones is out: excluded, vetoed, marked bad, or failed in this request. A candidate is open
when every applying `prefer` opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from policies.engine import Preference
from regions.health import Standing
from router.types import Candidacy, Plan


class Condition(NamedTuple):
    """How an endpoint stands right now: its best replica's standing, and its load.

    `load` is in-flight tokens per unit of share; `retry_in` seconds until it may be tried;
    `full`: every replica that is well has as much as it can take. `late`: the first token would
    come later than the operator aims at; `cost`: of one more request, as price a million tokens;
    `near`: how far it is, in steps; `soon`: seconds to the first token, as foretold.
    """

    standing: Standing
    load: float
    retry_in: float = 0.0
    full: bool = False
    late: bool = False
    cost: float = 0.0
    near: int = 0
    soon: float = 0.0


class PreferConflict(Exception):
    """Endpoints are available, but no candidate is open under every applying `prefer`."""


Turn = tuple[bool, bool, int, int, bool, float, float, float]


def order(
    eligible: Sequence[Candidacy], conditions: Callable[[str], Condition]
) -> tuple[Candidacy, ...]:
    """The eligible endpoints, first choice first.

    Args:
        eligible: everything that may be called, in the written order.
        conditions: an endpoint's state by name; asked once per endpoint.

    Raises:
        PreferConflict: there are endpoints, and preferences shut each of them out.
    """
    state = {c.endpoint.name: conditions(c.endpoint.name) for c in eligible}
    if not any([c.verdict.allowed.prefer for c in eligible]):
        turns = sorted([(*_key(c, state), number) for number, c in enumerate(eligible)])
        return tuple([eligible[turn[-1]] for turn in turns])
    return _by_preference(eligible, state)


def _key(candidacy: Candidacy, state: dict[str, Condition]) -> Turn:
    condition = state[candidacy.endpoint.name]
    # A marked endpoint goes behind every tier: it is tried when nothing else is left.
    standing = condition.standing
    marked = standing is Standing.MARKED
    full = condition.full and not marked
    tier = candidacy.verdict.candidate.tier
    if condition.late:
        return marked, full, tier, standing.turn, True, 0.0, condition.soon, condition.load
    cost, near = condition.cost, condition.near
    return marked, full, tier, standing.turn, False, cost, near, condition.load


def _by_preference(
    eligible: Sequence[Candidacy], state: dict[str, Condition]
) -> tuple[Candidacy, ...]:
    """Pick one, count it as failed, pick the next: what dispatch would meet."""
    chosen: list[Candidacy] = []
    out = {name for name, c in state.items() if c.standing is Standing.MARKED}
    if len(out) == len(state):
        # All marked bad: trying is better than refusing, and stays inside the boundary.
        out = set()
    full = {name for name, c in state.items() if c.full}
    left = list(eligible)
    while left:
        gone = out | {c.endpoint.name for c in chosen}
        opened = [c for c in left if is_open(c, eligible, gone, full)]
        if not opened:
            break
        best = min(opened, key=lambda c: _key(c, state))
        chosen.append(best)
        left.remove(best)
    if not chosen and eligible:
        raise PreferConflict
    return tuple(chosen)


def is_open(
    candidacy: Candidacy,
    eligible: Sequence[Candidacy],
    out: AbstractSet[str],
    full: AbstractSet[str] = frozenset(),
) -> bool:
    """Whether every `prefer` that applies to the candidate opens it now.

    Args:
        out: names that can't be had: marked bad, vetoed, or failed in this request.
        full: names without room, which opens a later set only with `spill`.
    """
    return all(
        _opens(preference, candidacy, eligible, out | full if preference.spill else out)
        for preference in candidacy.verdict.allowed.prefer
    )


def larger_than(
    first: Candidacy, plan: Plan, out: Callable[[], AbstractSet[str]]
) -> list[Candidacy]:
    """Whom a plan may ask though `first` answered: of a larger tier, where every `prefer` is open.

    Args:
        out: as of `is_open`; asked for only where there is a `prefer`.
    """
    found = [one for one in plan.ranked.order if one.tier > first.tier]
    if not found or not any(one.verdict.allowed.prefer for one in found):
        return found
    names = out()
    return [one for one in found if is_open(one, plan.ranked.filtered.eligible, names)]


def _opens(
    preference: Preference,
    candidacy: Candidacy,
    eligible: Sequence[Candidacy],
    out: AbstractSet[str],
) -> bool:
    for within in preference.sets:
        if within.contains(candidacy.footprint.process):
            return True
        members = [c for c in eligible if within.contains(c.footprint.process)]
        if any(c.endpoint.name not in out for c in members):
            return False
    return False


def wait_for(eligible: Sequence[Candidacy], conditions: Callable[[str], Condition]) -> float:
    """Seconds until the first of these endpoints may be tried again, at least one."""
    waits = [conditions(c.endpoint.name).retry_in for c in eligible]
    return max(1.0, min(waits, default=1.0))
