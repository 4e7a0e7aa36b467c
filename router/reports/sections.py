"""The sections about requests: where, when, what was refused, what failed, under which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from router.entries.recipients import NOT_KNOWN
from router.reports.document import Line, Picture, Section, Table
from router.reports.facts import Spot
from router.reports.figures import Family, summed
from router.reports.suppression import TOGETHER, Row, shares, steps
from router.reports.timeline import Strip, timeline
from router.reports.told import readable
from router.reports.view import View, most, utc
from router.reports.world_map import Point, world_map

WORDS: Final[Mapping[Family, str]] = {
    "processed": "answered",
    "refused": "refused",
    "misdirected": "sent home (421)",
    "unanswered": "not answered",
    "open": "open at the log's end",
}
_STRIPS: Final[Mapping[str, tuple[Family, ...]]] = {
    "processed": ("processed",),
    "refused": ("refused", "misdirected"),
    "not answered": ("unanswered", "open"),
}
_READ: Final[tuple[Family, ...]] = ("processed", "unanswered", "refused", "open")
_PLACES: Final = (
    "The place is “told” when the provider itself named it, “sure” when the endpoint is of one "
    "place, and “one of” when the provider may have used any of them."
)
_SMALL: Final = (
    "Groups of fewer than {least} requests are put together over tenants, then data classes "
    "{together}. Where even that is not enough, the place is named without a number, and no total "
    "counts it. Every other figure of this report leaves out what stands in such rows."
)
_UNSENT: Final = (
    "Nothing of a refused or misdirected request was sent to an endpoint. A misdirected one was "
    "not read either: whose it was is not recorded."
)
_TRIED: Final = (
    "An endpoint that was tried and did not answer may have been sent the prompt. Where that may "
    "have been processed is by the catalog of then."
)
_MAP: Final = (
    "Filled: processed there for certain. Ring: possibly there, or too few to tell. The area of a "
    "point is its share. Outline: Natural Earth."
)


def where(view: View) -> Section:
    """Tenant × data class × country × region × recipient × mechanism, on a map too."""
    rows, lines = view.of("processed"), []
    for row in rows:
        kept, group = row.group.kept, row.group
        region = ", ".join(kept.places) or NOT_KNOWN
        cells = (
            group.tenant, group.data_class, ", ".join(kept.countries), region, _told(row),
            kept.recipient, kept.mechanism, kept.retained, row.count,
        )  # fmt: skip
        what = f"{group.tenant}, {group.data_class}, {region}"
        lines.append(Line(cells, view.proof(row, what)))
    columns = (
        "tenant", "data class", "country", "region", "place", "recipient", "mechanism", "kept in",
        "requests",
    )  # fmt: skip
    routers = view.parts(lambda one: one.routers, *_READ)
    read = [Line((*map(readable, router), count)) for router, count in routers]
    tables = (
        Table("Requests that an endpoint answered, at least in part", columns, lines),
        Table("Routers that read requests", ("router", "region", "country", "requests"), read),
        _assurances(view),
    )
    drawn = Picture("map", world_map(points(view, rows)), _MAP, 0.58)
    return Section("where", "Where it was processed", _explained(view), (drawn,), tables)


def _explained(view: View) -> list[str]:
    said = [_PLACES]
    least = view.made.least
    if least > 1:
        said.append(_SMALL.format(least=least, together=TOGETHER))
    return said


def points(view: View, rows: Sequence[Row]) -> list[Point]:
    """The places of some rows; a row of several places counts as possible at each."""
    sums: dict[str, list[int]] = {}
    hidden: set[str] = set()
    for row in rows:
        places = row.group.kept.places
        hidden.update(places if row.count is None else ())
        for place in places:
            found = sums.setdefault(place, [0, 0])
            found[min(len(places), 2) - 1] += row.count or 0
    spots = view.made.facts.spots
    made = [
        Point(spots.get(place) or Spot(place, NOT_KNOWN, "", None, None), sure, possible,
              place in hidden)
        for place, (sure, possible) in sums.items()
    ]  # fmt: skip
    return sorted(made, key=lambda one: (-one.sure - one.possible, one.spot.id))


def _assurances(view: View) -> Table:
    held = sorted(view.made.facts.assurances, key=lambda one: (one[0], one[1].name))
    lines = []
    for endpoint, one in held:
        until = "open" if one.until is None else utc(int(one.until * 1e6))
        texts = (endpoint, one.name, one.evidence, one.approved_by, until)
        lines.append(Line(tuple(map(readable, texts))))
    columns = ("endpoint", "assurance", "evidence", "approved by", "until")
    return Table("Assurances relied on", columns, lines, "None was recorded.")


def _told(row: Row) -> str:
    kept = row.group.kept
    return "told" if kept.told else "sure" if len(kept.places) == 1 else "one of"


def when(view: View) -> Section:
    """The timeline."""
    gathered, period = view.made.gathered, view.made.scope.period
    strips = []
    for name, families in _STRIPS.items():
        counted = summed(view.full(*families)).steps
        if counted or name == "processed":
            found = steps(counted, len(period.starts), view.made.least)
            strips.append(Strip(name, found))
    events = sorted(gathered.events, key=lambda one: (one.time, one.record))
    drawn = timeline(period, strips, events, gathered.silences)
    caption = f"Each step is one {period.step}; a stretch of several shows their mean."
    return Section("when", "When", (), (Picture("timeline", drawn, caption),))


def unserved(view: View) -> Section:
    """Refused, sent home, not answered, open; and how the answered ones ended."""
    lines = []
    for row in view.of("refused", "misdirected", "unanswered", "open"):
        group = row.group
        tenant = group.tenant or "not recorded"
        cells = (WORDS[group.family], tenant, group.data_class, group.kept.code, row.count)
        what = f"{WORDS[group.family]}: {tenant}, {group.kept.code}"
        lines.append(Line(cells, view.proof(row, what)))
    ended = shares([one.statuses for one in view.full("processed")], view.made.least)
    tables = (
        Table("Requests without an answer",
              ("what", "tenant", "data class", "reason", "requests"), lines),
        Table("How answered requests ended", ("outcome", "requests"),
              [Line((readable(name), count)) for name, count in most(ended)]),
    )  # fmt: skip
    return Section("unserved", "What was refused or not answered", (_UNSENT,), (), tables)


def failovers(view: View) -> Section:
    """Attempts that did not answer, and where they may have been."""
    lines = []
    for one, count in view.parts(lambda tally: tally.failed, "processed", "unanswered"):
        texts = (one.endpoint, one.result, ", ".join(one.countries), ", ".join(one.places),
                 one.recipient)  # fmt: skip
        lines.append(Line((*map(readable, texts), count)))
    columns = ("endpoint", "result", "country", "region", "recipient", "attempts")
    tables = (Table("Attempts that did not answer", columns, lines),)
    return Section("failovers", "Failovers", (_TRIED,), (), tables)


def rules(view: View) -> Section:
    """Rules that applied, with their legal basis, and rules on trial with their effect."""
    applied = view.parts(lambda one: one.rules, *_READ)
    trials = view.parts(lambda one: one.trials, *_READ)
    tables = (
        Table("Rules that applied", ("rule", "because", "requests"),
              [Line((*map(readable, pair), count)) for pair, count in applied]),
        Table("Rules on trial (dry run), and what they would have said of the places used",
              ("rule", "effect", "requests"),
              [Line((*map(readable, pair), count)) for pair, count in trials]),
    )  # fmt: skip
    return Section("rules", "Rules and their legal basis", (), (), tables)
