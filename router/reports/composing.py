"""What was gathered and verified, as a report: every figure here is in the log, or is a sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from router.reports import sections
from router.reports.document import Cell, Line, Report, Section, Table
from router.reports.suppression import safe
from router.reports.told import readable
from router.reports.view import Made, View, most
from router.reports.wholeness import alarm, whole
from router.reports.words import articles, cannot_show

_LAWS: Final = (
    "Fields of the records that these laws ask for, as far as the log has them. What it has not "
    "(names and contacts, periods of erasure) is for the controller to add."
)
_CHANGES: Final[Mapping[str, frozenset[str]]] = {
    "Policy and catalog, with signers": frozenset({"snapshot"}),
    "Drift and vetoes": frozenset({"drift", "veto"}),
    "Administration, keys, recoveries": frozenset({"administration", "key", "recovery"}),
}


def compose(made: Made) -> Report:
    """The report of what was gathered."""
    view = View(made)
    tenant = made.scope.tenant
    parts = [
        sections.where(view),
        sections.when(view),
        sections.unserved(view),
        sections.failovers(view),
        sections.rules(view),
        _changes(made),
        *made.extra,
        whole(made),
        _laws(),
        Section("cannot", "What this evidence cannot show", bullets=cannot_show()),
    ]
    about = "all tenants" if tenant is None else f"tenant {readable(tenant)}"
    facts = list(_facts(view))
    return Report(
        "Residency report", about, alarm(made.verdict), facts, parts, view.evidence, made.least
    )


def _facts(view: View) -> Iterator[tuple[str, Cell]]:
    made, beware = view.made, list[str]()
    yield "period", made.scope.period.label
    yield "made", datetime.fromtimestamp(made.made_at, UTC).isoformat(timespec="seconds")
    yield "logs", ", ".join(readable(log.log) for log in made.verdict.logs) or "none"
    if made.roster and made.gathered.newest:
        first, last = made.roster[0].time, max(made.gathered.newest.values())
        yield (
            "recorded from, to",
            f"{made.scope.period.shown(first)}, {made.scope.period.shown(last)}",
        )
        if last < made.scope.period.since or first >= made.scope.period.until:
            beware.append("nothing was recorded here in this period: other logs, or another period")
    if made.stranger:
        tenant = readable(made.scope.tenant or "")
        beware.append(f"no snapshot until then names a tenant `{tenant}`")
    if beware:
        yield "beware", "; ".join(beware)
    yield "verification", "; ".join(made.verdict.statuses)
    if made.verdict.absent:
        yield "lines not here, and in no figure", made.verdict.absent
    for family, words in sections.WORDS.items():
        yield f"requests {words}", view.total(family)
    small = [words for family, words in sections.WORDS.items()
             if any(row.count is None for row in view.of(family))]  # fmt: skip
    if small:
        yield "in none of these numbers", f"groups too small to tell: {', '.join(small)}"
    counted = view.full(*sections.WORDS)
    if any(log.anchored is not None for log in made.verdict.logs):
        above = _part(((one.count - one.covered, one.count) for one in counted), made.least)
        yield "of these above every anchor given", above
    if made.least > 1:
        yield "smallest group told", f"{made.least} requests"
    if made.gathered.hidden:
        hidden = _part(((one.hidden, one.count) for one in counted), made.least)
        yield "counted, but not to be named where the reader is", hidden or None


def _part(found: Iterable[tuple[int, int]], least: int) -> int | None:
    """What is told of a part of the groups told in full: (part, whole) of each, where it may be.

    `None` where there is some and none of it may be told.
    """
    some = [(part, whole) for part, whole in found if part]
    told = [part for part, whole in some if safe(part, whole, least)]
    return sum(told) if told or not some else None


def _changes(made: Made) -> Section:
    gathered, period = made.gathered, made.scope.period
    events = sorted(gathered.events, key=lambda one: (one.time, one.record))
    columns = ("time", "what", "who or signers", "detail", "record")
    tables = [
        Table(title, columns, [
            Line((period.shown(one.time), one.what, one.who, one.detail, one.record))
            for one in events if one.kind in kinds
        ]) for title, kinds in _CHANGES.items()
    ]  # fmt: skip
    if made.scope.tenant is None:
        read = [Line((key, count)) for key, count in most(gathered.readings)]
        tables.append(Table("Readings of the log by auditors", ("key", "readings"), read))
    left = gathered.events_left
    said = [f"{left:,} more are not listed: see `domicile audit show`."] if left else []
    return Section("changes", "What changed", said, (), tables)


def _laws() -> Section:
    lines = [Line(row) for row in articles()]
    tables = (Table("", ("article", "asks for", "here"), lines),)
    return Section("laws", "For records under GDPR Art. 30 and the EU AI Act", (_LAWS,), (), tables)
