"""Which endpoints `prefer` opens. Pure; the router asks with what is available right now.

A later set opens when every endpoint of the earlier ones is out (excluded, vetoed, marked
bad, failed). A candidate is open when every applying `prefer` opens it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.engine import Preference
from regions.places import PlaceSet


@dataclass(frozen=True, slots=True)
class Choice:
    """An endpoint that may be called: where, and under which preferences."""

    endpoint: str
    process: PlaceSet
    prefer: frozenset[Preference]


def opened(choices: Sequence[Choice], full: Mapping[str, bool] | None = None) -> tuple[str, ...]:
    """The endpoints that are open, in the given order.

    Args:
        choices: what is available. None open among some is a `prefer_conflict`.
        full: endpoints that have no room; they count as out where `spill` is true.
    """
    crowded = full or {}
    return tuple(
        one.endpoint
        for one in choices
        if all(_opens(preference, one, choices, crowded) for preference in one.prefer)
    )


def stage(preference: Preference, process: PlaceSet) -> int | None:
    """The number of the first set that contains these places; `None` for none."""
    for number, one in enumerate(preference.sets):
        if one.contains(process):
            return number
    return None


def _opens(
    preference: Preference, one: Choice, choices: Sequence[Choice], full: Mapping[str, bool]
) -> bool:
    mine = stage(preference, one.process)
    if mine is None:
        return False
    for other in choices:
        theirs = stage(preference, other.process)
        blocks = not (preference.spill and full.get(other.endpoint, False))
        if theirs is not None and theirs < mine and blocks:
            return False
    return True
