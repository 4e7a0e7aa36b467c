"""Which call is which attempt's, for one source. Nothing is paired twice.

1. A call with the id that an attempt's answer carried is that attempt's. A second call with the
   same id is one that we didn't make: `reused`.
2. A call that names a record or request of ours is its attempt's if that attempt has no id of its
   own, went to an endpoint like it, and isn't taken. Else the name is `claimed` by somebody.
3. What is left on both sides is paired by time: attempts whose call has no id (of unknown fate, or
   of a source that gives none) with calls that name nothing of ours, of the same model and region,
   and by a principal that made calls of ours too. Each attempt explains one call at most; one that
   was answered comes before one of unknown fate.
4. A call that is left bypassed the router, if it ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from router.reconcile import names
from router.reconcile.model import UNKNOWN_TIME, Call, Finding, Kind, Source
from router.reconcile.presume import Stretch, pairs
from router.reconcile.store import BY_CLAIM, BY_ID, BY_TIME, Row, Store
from router.reconcile.vllm import PROBE

FREE: Final = "c.source = ? and c.fate = '' and c.id not in (select call from pairs)"
_SAME_ID: Final = """
select c.id, a.id from calls c join attempts a on a.call_id = c.call_id
where c.source = ? and c.call_id != '' and a.call_id != ''
order by c.call_id, c.ran desc, c.time, c.id
"""
_CLAIMING: Final = f"""
select c.id, c.record, c.request, c.spot, c.region, c.endpoint from calls c
where {FREE} and (c.record != '' or c.request != '') order by c.time, c.id
"""  # noqa: S608
_CLAIMED: Final = """
select a.id, a.spot, a.endpoint, a.call_id from attempts a
where {} = ? and not exists (select 1 from pairs p where p.source = ? and p.attempt = a.id)
order by a.surely desc, a.number
"""
_WAITING: Final = """
select a.id, a.began, a.ended, a.surely from attempts a
join seen s on s.facts = a.facts and s.source = ?
where a.spot = ? and (not ? or a.call_id = '') and not exists
    (select 1 from pairs p where p.source = s.source and p.attempt = a.id) order by a.began
"""
_PLAIN: Final = f"select distinct c.spot from calls c where {FREE}"  # noqa: S608


@dataclass(slots=True)
class Pairing:
    """Pairs the calls of one source. `skew` is how far two clocks may be apart, in microseconds."""

    store: Store
    source: Source
    skew: int
    exempt: Collection[str] = ()

    def run(self) -> Iterator[Finding]:
        """All four steps; the findings are those of calls."""
        yield from self._by_id()
        yield from self._claims()
        self._set_aside()
        self._by_time()
        yield from self._left()

    # 1.

    def _by_id(self) -> Iterator[Finding]:
        for call, attempt in self.store.stream(_SAME_ID, str(self.source)):
            if not self.store.pair(self.source, attempt, call, BY_ID):
                yield from self._reused(call, attempt, "the answer's id")

    def _reused(self, call: int, attempt: int, what: str) -> Iterator[Finding]:
        found, sent = self.store.call(call), self.store.sent(attempt)
        if not found.ran:
            self.store.mark(call, "refused")
            return
        self.store.mark(call, str(Kind.REUSED))
        if self._counts(found):
            detail = f"a call that we didn't make has {what} of one that we made{_by(found)}"
            yield self._finding(Kind.REUSED, found, detail, sent.record, sent.endpoint)

    # 2.

    def _claims(self) -> Iterator[Finding]:
        for row in self.store.stream(_CLAIMING, str(self.source)):
            record, request = str(row[1]), str(row[2])
            if request == PROBE:
                self.store.mark(row[0], "probe")
                continue
            column, name = ("record", record) if record else ("request", request)
            yield from self._claim(row, column, name)

    def _claim(self, row: Row, column: str, name: str) -> Iterator[Finding]:
        call, spot, endpoint = row[0], str(row[3]), str(row[5])
        known = self.store.rows(f"select id from attempts where {column} = ? limit 1", name)  # noqa: S608
        if not known:
            return  # a bypass, or another router's: step 4 says which name it bears
        for found in self.store.rows(_CLAIMED.format(column), name, str(self.source)):
            if self._fits(found, spot, endpoint):
                self.store.pair(self.source, found[0], call, BY_CLAIM)
                return
        if column == "request":
            yield from self._reused(call, known[0][0], f"`{name}`, the request id,")
            return
        found_call, sent = self.store.call(call), self.store.sent(known[0][0])
        self.store.mark(call, str(Kind.CLAIMED) if found_call.ran else "refused")
        if found_call.ran and self._counts(found_call):
            detail = f"it names record `{name}`, whose call is another{_by(found_call)}"
            yield self._finding(Kind.CLAIMED, found_call, detail, name, sent.endpoint)

    def _fits(self, attempt: Row, spot: str, endpoint: str) -> bool:
        """Whether a claim may be true: an attempt without an id of its own, and like the call."""
        own_id = str(attempt[3])
        if self.source.gives_ids:
            return not own_id and str(attempt[1]) == spot
        return not endpoint or str(attempt[2]) == endpoint

    # 3.

    def _set_aside(self) -> None:
        """Calls of principals who are known not to be ours: counted, never taken for ours."""
        for name in self.exempt:
            plain = names.principal(name)
            self.store.rows(
                "update calls set fate = 'exempt' where source = ? and fate = ''"
                " and id not in (select call from pairs)"
                " and (principal = ? or principal = ? or principal like ? escape '\\')",
                str(self.source), name, plain, plain.replace("%", "\\%").replace("_", "\\_") + "/%",
            )  # fmt: skip

    def _by_time(self) -> None:
        ours = {
            names.principal(str(row[0]))
            for row in self.store.stream(
                "select distinct c.principal from pairs p join calls c on c.id = p.call"
                " where p.source = ? and c.principal != ''",
                str(self.source),
            )
        }
        for (spot,) in self.store.rows(_PLAIN, str(self.source)):
            calls = self._calls(str(spot), ours)
            timed = [one for one in calls if one[1] != UNKNOWN_TIME]
            for attempt, call in pairs(self._waiting(str(spot)), timed):
                self.store.pair(self.source, attempt, call, BY_TIME)
            untimed = (one for one in calls if one[1] == UNKNOWN_TIME)
            left = sorted(self._waiting(str(spot)), key=lambda one: not one.surely)
            for (call, _), stretch in zip(untimed, left, strict=False):
                self.store.pair(self.source, stretch.attempt, call, BY_TIME)

    def _calls(self, spot: str, ours: Collection[str]) -> list[tuple[int, int]]:
        """What names nothing of ours, in the order of time."""
        found = self.store.stream(
            f"select c.id, c.time, c.principal from calls c where {FREE}"  # noqa: S608
            " and c.spot = ? and c.record = '' and c.request = '' order by c.time, c.id",
            str(self.source), spot,
        )  # fmt: skip
        return [
            (call, time)
            for call, time, who in found
            if not ours or names.principal(str(who)) in ours
        ]

    def _waiting(self, spot: str) -> Iterator[Stretch]:
        asked = (str(self.source), spot, self.source.gives_ids)
        for attempt, began, ended, surely in self.store.stream(_WAITING, *asked):
            yield Stretch(attempt, began - self.skew, ended + self.skew, bool(surely))

    # 4.

    def _left(self) -> Iterator[Finding]:
        for (id_,) in self.store.stream(
            f"select c.id from calls c where {FREE} order by c.time, c.id",  # noqa: S608
            str(self.source),
        ):
            call = self.store.call(id_)
            if not self._counts(call):
                self.store.mark(id_, "outside_period")
            elif not call.ran:
                self.store.mark(id_, "refused")
            else:
                self.store.mark(id_, str(Kind.BYPASS))
                detail = f"no attempt of ours explains this call{_by(call)}{_bears(call)}"
                yield self._finding(Kind.BYPASS, call, detail)

    def _counts(self, call: Call) -> bool:
        """Whether a call lies in the period; one without a time does."""
        return call.time == UNKNOWN_TIME or self.store.since <= call.time < self.store.until

    def _finding(
        self, kind: Kind, call: Call, detail: str, record: str = "", endpoint: str = ""
    ) -> Finding:
        place = call.place or call.region
        return Finding(
            kind, self.source, detail, record, call.endpoint or endpoint, place, call.where
        )


def _by(call: Call) -> str:
    who = f" by `{call.principal}`" if call.principal else ""
    return f": `{call.model or '?'}`{who}" if call.model or who else ""


def _bears(call: Call) -> str:
    name = call.record or call.request
    return f"; it bears `{name}`, which no log here holds: give that log too" if name else ""
