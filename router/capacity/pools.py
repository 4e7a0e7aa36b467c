"""Endpoints kept for one kind of work: `pool: interactive` or `pool: throughput`.

Batch requests stay out of an interactive pool as long as there is any other endpoint inside the
boundary, full or not. More urgent requests go to a throughput pool when nothing else inside has
room or is well. An endpoint without `pool` serves both. Pools order and leave out, they never let
anything in: what is here is inside already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final

from policies.model import Priority
from router.entries.alike import Alike
from router.selection import Condition
from router.types import Candidacy

Pooled = tuple[tuple[Candidacy, ...], frozenset[str]]
"""Who may be asked, and the names of those that are asked last."""
NONE: Final[frozenset[str]] = frozenset()


def pooled(eligible: tuple[Candidacy, ...], priority: Priority | None) -> Pooled:
    """Whom a request of this class may ask."""
    if priority is None:
        return eligible, NONE
    kinds = [one.endpoint.settings.get("pool") for one in eligible]
    if priority is Priority.BATCH:
        others = tuple(
            one for one, kind in zip(eligible, kinds, strict=True) if kind != "interactive"
        )
        return (others if 0 < len(others) < len(eligible) else eligible), NONE
    spare = frozenset(
        one.endpoint.name for one, kind in zip(eligible, kinds, strict=True) if kind == "throughput"
    )
    return eligible, spare if len(spare) < len(eligible) else NONE


def behind(condition: Condition) -> Condition:
    """How an endpoint counts that is asked after all that are as well and have as much room."""
    return condition._replace(late=True, soon=inf)


@dataclass(frozen=True, slots=True)
class Pools:
    """What `pooled` gives, worked out once for requests alike."""

    _known: dict[Priority, Alike[tuple[Candidacy, ...], Pooled]] = field(
        default_factory=lambda: {one: Alike() for one in Priority}
    )

    def forget(self) -> None:
        """Keep nothing of a snapshot that has been replaced."""
        for kept in self._known.values():
            kept.clear()

    def of(self, eligible: tuple[Candidacy, ...], priority: Priority | None) -> Pooled:
        """See `pooled`; the same object for the same one."""
        if priority is None:
            return eligible, NONE
        known = self._known[priority]
        return known.get(eligible) or known.put(eligible, pooled(eligible, priority))
