"""What was gathered, ready to be told: rows after suppression, sums, what stands behind each."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from router.audit.roster import RosterLine
from router.audit.verdict import Verdict
from router.reports.document import Evidence, Section
from router.reports.facts import Facts
from router.reports.figures import Family, Tally
from router.reports.gathering import Gathered, Scope
from router.reports.suppression import Row, parts, told

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """What a report is made from.

    `least` is the smallest group told; `made_at` epoch seconds; `extra` sections of other origin;
    `stranger` says that no snapshot knows the tenant, so that a misspelt name is no evidence.
    """

    folder: str
    scope: Scope
    gathered: Gathered
    facts: Facts
    verdict: Verdict
    roster: Sequence[RosterLine]
    least: int
    made_at: float
    extra: Sequence[Section] = ()
    anchors: Sequence[str] = ()
    stranger: bool = False


@dataclass(slots=True)
class View:
    """Rows and sums; `evidence` grows with every row that is told."""

    made: Made
    rows: list[Row] = field(init=False)
    evidence: list[Evidence] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = told(self.made.gathered.groups, self.made.least)

    def of(self, *families: Family) -> list[Row]:
        """The rows of some families."""
        return [row for row in self.rows if row.group.family in families]

    def full(self, *families: Family) -> list[Tally]:
        """What was counted of the groups that are told in full: all that other figures may use."""
        return [row.tally for row in self.of(*families) if row.full]

    def total(self, *families: Family) -> int:
        """Requests in rows with a number."""
        return sum(row.count or 0 for row in self.of(*families))

    def parts(
        self, of: Callable[[Tally], Counter[T]], *families: Family
    ) -> list[tuple[T, int | None]]:
        """A counter of those groups, the largest first, then what is too small to tell."""
        found = [(of(tally), tally.count) for tally in self.full(*families)]
        sums, hidden = parts(found, self.made.least)
        return [*most(sums), *((one, None) for one in sorted(hidden, key=str))]

    def proof(self, row: Row, what: str) -> str:
        """The id of what stands behind a row; empty when none of its records may be named."""
        if not row.full or not row.tally.records:
            return ""
        id_ = f"E{len(self.evidence) + 1}"
        # A request's id tells its time to the millisecond: that is for the tenant itself.
        own = self.made.least <= 1
        records = [(ref.record, ref.request if own else "") for ref in row.tally.records]
        self.evidence.append(Evidence(id_, what, records, self._query(row)))
        return id_

    def _query(self, row: Row) -> str:
        period, group = self.made.scope.period, row.group
        words = ["domicile", "audit", "query", self.made.folder]
        words += ["--since", utc(period.since), "--until", utc(period.until)]
        if group.tenant:
            words += ["--tenant", group.tenant]
        if group.family == "refused":
            words += ["--outcome", group.kept.code]
        elif group.family in ("misdirected", "open"):
            words += ["--outcome", group.family]
        elif group.kept.places:
            words += ["--place", group.kept.places[0]]
        return shlex.join(words)


def most(found: Mapping[T, int]) -> list[tuple[T, int]]:
    """The largest first."""
    return sorted(found.items(), key=lambda one: (-one[1], str(one[0])))


def utc(micros: int) -> str:
    """A time as commands take it."""
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat()
