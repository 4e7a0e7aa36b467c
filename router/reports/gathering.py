"""One pass over the logs, while they are verified: every request of the period into its group.

Memory holds the groups (as many as tenants, classes and places make), what is open, and events up
to a bound; never the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from router.audit.bodies import Body, attempts_in, list_in, object_in, text_in, texts_in
from router.audit.reading import Shown
from router.audit.rows import Joining, Request
from router.audit.structure import GAP_MICROSECONDS
from router.reports.facts import NONE, Facts
from router.reports.figures import (
    RECORDS,
    Covered,
    Event,
    Failed,
    Family,
    Group,
    Kept,
    Ref,
    Silence,
    Tally,
)
from router.reports.period import Period
from router.reports.told import event, readable

MOST_EVENTS: Final = 500
_MOST_KEPT: Final = 20_000
_PREFILLED: Final = "prefilled"
_EVENTS: Final = frozenset({"snapshot", "drift", "veto", "key", "administration", "recovery"})


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom a report is about and for.

    `tenant` is one tenant, `None` all. `sits` are the place ids where the reader is, `None` for
    whoever holds the log itself. `attribute` is the one that says a request's data class.
    """

    period: Period
    tenant: str | None = None
    sits: frozenset[str] | None = None
    attribute: str = "data_class"

    def sees(self, body: Body) -> bool:
        """Whether an entry may be named, and not only counted, where the reader sits."""
        if self.sits is None:
            return True
        kept = texts_in(object_in(body, "allowed"), "retain")
        return bool(self.sits) and self.sits <= set(kept)


@dataclass(slots=True)
class Gathered:
    """What one pass found. `hidden` requests were counted but may not be named to the reader;
    `snapshots` came into force before the period's end."""

    groups: dict[Group, Tally] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    events_left: int = 0
    readings: Counter[str] = field(default_factory=Counter)
    silences: list[Silence] = field(default_factory=list)
    covered: dict[str, Covered] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    hidden: int = 0
    snapshots: dict[str, None] = field(default_factory=dict)
    certified: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class Gatherer:
    """Is shown every entry that is verified. `anchors`: log → lines that an anchor covers."""

    scope: Scope
    facts: Facts
    anchors: Mapping[str, int]
    progress: Callable[[int], object]
    found: Gathered = field(default_factory=Gathered)
    _joining: dict[str, Joining] = field(default_factory=dict)
    _running: dict[str, bool] = field(default_factory=dict)
    _alike: dict[tuple[object, ...], tuple[Group, tuple[object, ...]]] = field(default_factory=dict)

    def segment(self, log: str, count: int) -> None:
        """A segment has been read: interned values of the next one are others."""
        self._alike.clear()
        self.progress(count)

    def entry(self, shown: Shown) -> None:
        """One entry, verified as far as a line can be by itself."""
        log = shown.place.log
        self._time(log, shown)
        if shown.kind in _EVENTS:
            self._event(shown)
            return
        joining = self._joining.get(log)
        if joining is None:
            joining = self._joining[log] = Joining()
        ended = joining.add(shown)
        if ended is not None:
            self._request(ended)

    def end(self) -> Gathered:
        """The logs have been read to their ends."""
        for joining in self._joining.values():
            for request in joining.left():
                self._request(request)
        return self.found

    # -- requests ----------------------------------------------------------------------

    def _request(self, request: Request) -> None:
        began = request.began
        period, tenant = self.scope.period, self.scope.tenant
        if not period.holds(began.time):
            return
        who = object_in(began.body, "who")
        if tenant is not None and who.get("tenant") != tenant:
            return
        group = self._group(request, who)
        tally = self.found.groups.get(group)
        if tally is None:
            tally = self.found.groups[group] = Tally()
        self._count(tally, request, who)

    def _count(self, tally: Tally, request: Request, who: Body) -> None:
        began, ended = request.began, request.ended
        body, log = began.body, began.place.log
        tally.count += 1
        tally.covered += began.place.index < self.anchors.get(log, 0)
        tally.steps[self.scope.period.bucket(began.time)] += 1
        tally.statuses[request.outcome] += 1
        router = object_in(who, "router")
        if router:
            region = text_in(router, "region")
            countries = self.facts.countries(text_in(body, "snapshot"), (region,))
            tally.routers[text_in(router, "id"), region, ", ".join(countries)] += 1
        self._rules(tally, request)
        attempts = attempts_in(ended)
        failed = [one for one in attempts if not (one.get("result") == "ok" or _half(one, ended))]
        if failed:
            self._failed(tally, request, failed)
        tally.moved += bool(failed) and "ran" in ended
        endpoint = text_in(ended, "endpoint")
        if endpoint:
            tally.endpoints.add(endpoint)
        if not self.scope.sees(body):
            self.found.hidden += 1
            tally.hidden += 1
        elif len(tally.records) < RECORDS:
            tally.records.append(Ref(log, began.place.index, began.id))

    def _rules(self, tally: Tally, request: Request) -> None:
        body = request.began.body
        allowed = object_in(body, "allowed")
        for rule in list_in(allowed, "rules"):
            if isinstance(rule, dict):
                tally.rules[text_in(rule, "rule"), text_in(rule, "because")] += 1
        places = texts_in(object_in(request.ended, "ran"), "process")
        for name in texts_in(allowed, "dry_run"):
            snapshot, at = text_in(body, "snapshot"), request.began.time / 1e6
            tally.trials[name, self.facts.trial(snapshot, name, places, at)] += 1

    def _failed(self, tally: Tally, request: Request, failed: list[Body]) -> None:
        began, ended = request.began, request.ended
        snapshot, at = text_in(began.body, "snapshot"), began.time / 1e6
        for one in failed:
            endpoint = text_in(one, "endpoint")
            # One that answered later is described there; older entries describe none.
            same = endpoint == text_in(ended, "endpoint")
            ran = object_in(ended if same else one, "ran")
            places = texts_in(ran, "process") or self.facts.attempted(snapshot, endpoint, at)
            countries = self.facts.countries(snapshot, places)
            recipient = self._recipient(ran, snapshot, places)
            tally.failed[
                Failed(endpoint, text_in(one, "result"), places, countries, recipient)
            ] += 1

    def _recipient(self, ran: Body, snapshot: str, places: tuple[str, ...]) -> str:
        """Who received it: as the entry says, or, in older ones, by the snapshot it names."""
        written = "; ".join(texts_in(ran, "recipients"))
        return readable(written or self.facts.recipient(snapshot, places))

    def _mechanism(self, ran: Body, snapshot: str, endpoint: str, at: float) -> str:
        """The assurances held: as the entry says, or, in older ones, by the snapshot it names."""
        known = self.facts.mechanism(snapshot, endpoint, at)
        if "mechanisms" not in ran:
            return readable(known)
        return readable(", ".join(texts_in(ran, "mechanisms")) or NONE)

    # -- groups ------------------------------------------------------------------------

    def _group(self, request: Request, who: Body) -> Group:
        """The group of a request; those that share interned values share it without a look."""
        body, ended = request.began.body, request.ended
        shared = (who, body.get("attributes"), ended.get("ran"))
        snapshot, at = text_in(body, "snapshot"), request.began.time / 1e6
        key = (
            *map(id, shared), request.began.kind, request.outcome, text_in(ended, "endpoint"),
            text_in(ended, "place"), *(text_in(body, name) for name in ("code", "target", "when")),
            self.facts.spell(snapshot, at),
        )  # fmt: skip
        known = self._alike.get(key)
        if known is not None:
            return known[0]
        if len(self._alike) >= _MOST_KEPT:
            self._alike.clear()
        group = self._grouped(request, who)
        # The values are kept with it, so that an id stays theirs.
        self._alike[key] = (group, shared)
        return group

    def _grouped(self, request: Request, who: Body) -> Group:
        body, ended = request.began.body, request.ended
        purpose = text_in(who, "purpose")
        told = data_class(object_in(body, "attributes"), self.scope.attribute)
        if purpose not in ("", "interactive"):
            told = f"{told} · {purpose}"
        tenant = readable(text_in(who, "tenant"))
        family = _family(request)
        if family == "processed":
            return Group(family, tenant, told, self._where(request))
        code = {
            "refused": text_in(body, "code"),
            "misdirected": f"to {text_in(body, 'target')}, {text_in(body, 'when')}",
        }.get(family, request.outcome)
        return Group(family, tenant, told, Kept(code=readable(code or text_in(ended, "status"))))

    def _where(self, request: Request) -> Kept:
        body, ended = request.began.body, request.ended
        ran, snapshot = object_in(ended, "ran"), text_in(body, "snapshot")
        told = text_in(ended, "place")
        known = told not in ("", "not observable")
        places = (told,) if known else tuple(sorted(texts_in(ran, "process")))
        retained = ran.get("retain")
        return Kept(
            self.facts.countries(snapshot, places),
            tuple(readable(one) for one in places),
            known,
            self._recipient(ran, snapshot, places),
            self._mechanism(ran, snapshot, text_in(ended, "endpoint"), request.began.time / 1e6),
            readable(retained if isinstance(retained, str) else ", ".join(texts_in(ran, "retain"))),
            readable(", ".join(texts_in(ran, "operate"))),
        )

    # -- the rest ----------------------------------------------------------------------

    def _time(self, log: str, shown: Shown) -> None:
        before = self.found.newest.get(log, 0)
        starts = shown.body.get("event") == "start"
        recovers = starts or "recovery" in (shown.kind, shown.body.get("by"))
        silent = shown.time - before > GAP_MICROSECONDS
        if silent and self._running.get(log) and not recovers:
            period = self.scope.period
            if before < period.until and shown.time >= period.since:
                self.found.silences.append(Silence(log, before, shown.time))
        if shown.kind == "administration" and (starts or shown.body.get("event") == "stop"):
            self._running[log] = starts
        newest = self.found.newest[log] = max(before, shown.time)
        size = self.anchors.get(log, 0)
        if shown.place.index < size:
            self.found.covered[log] = Covered(size, newest)

    def _event(self, shown: Shown) -> None:
        if shown.kind == "snapshot" and shown.time < self.scope.period.until:
            self.found.snapshots[text_in(shown.body, "to")] = None
        if not self.scope.period.holds(shown.time):
            return
        if shown.body.get("event") == "read":
            self.found.readings[readable(text_in(shown.body, "by"))] += 1
            return
        if "certificate" in shown.body:
            strength = readable(text_in(shown.body, "strength"))
            self.found.certified[shown.place.log, strength] += 1
            return
        if self.scope.sits == frozenset():
            return
        told = event(shown, self.scope.tenant)
        if shown.kind == "snapshot" and self.scope.tenant is None:
            change = self.facts.changed(text_in(shown.body, "from"), text_in(shown.body, "to"))
            told = replace(
                told, detail=readable(f"{told.detail}; {change}" if change else told.detail)
            )
        if len(self.found.events) < MOST_EVENTS:
            self.found.events.append(told)
        else:
            self.found.events_left += 1


def data_class(attributes: Body, name: str) -> str:
    """An attribute's values as a reader sees them; what it may be beyond them is said."""
    state = attributes.get(name)
    if not isinstance(state, dict):
        return "not declared"
    values = ", ".join(sorted(texts_in(state, "values"))) or "none"
    return readable(values if state.get("closed") is True else f"{values} or more")


def _family(request: Request) -> Family:
    kind = request.began.kind
    if kind == "refusal":
        return "refused"
    if kind == "misdirected":
        return "misdirected"
    if request.outcome == "open" and not request.ended:
        return "open"
    return "processed" if "ran" in request.ended else "unanswered"


def _half(attempt: Body, ended: Body) -> bool:
    """Whether an attempt computed the prompt for an answer that names its places too: one of the
    two steps of that answer, and no failure."""
    places = texts_in(object_in(ended, "ran"), "process")
    mine = texts_in(object_in(attempt, "ran"), "process")
    return attempt.get("result") == _PREFILLED and bool(mine) and set(mine) <= set(places)
