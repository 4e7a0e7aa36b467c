"""Attempts and calls side by side, in a private database that spills to disk: memory stays bounded.

An event counts once, by its own id; the same id over other content is a conflict. What pairs with
what is decided in `pairing`, what a pair means in `judging`; this only keeps and finds.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from router.reconcile import names
from router.reconcile.cloudtrail import StreamPlace
from router.reconcile.model import Call, Facts, Sent, Source, Where

_SCHEMA: Final = """
pragma journal_mode = off; pragma synchronous = off; pragma temp_store = file;
create table attempts (id integer primary key, record text, request text, number int, endpoint text,
    call_id text, result text, began int, ended int, surely int, allowed int, footprint int,
    told text, file int, line int, facts int, spot text, counts int);
create index attempt_call on attempts (call_id) where call_id != '';
create index attempt_record on attempts (record);
create index attempt_request on attempts (request);
create table calls (id integer primary key, source text, event text, call_id text, record text,
    request text, time int, region text, model text, place text, ran int, principal text, file int,
    number int, unit text, endpoint text, content text, spot text, fate text default '');
create unique index call_event on calls (source, event) where event != '';
create index call_id on calls (source, call_id);
create index call_fate on calls (source, fate);
create table streams (call_id text primary key, place text, file int, number int) without rowid;
create table pairs (source text, attempt int, call int, how text, primary key (source, attempt))
    without rowid;
create unique index pair_call on pairs (call);
create table seen (facts int, source text, primary key (facts, source)) without rowid;
"""
_SENT: Final = """record, request, number, endpoint, call_id, result, began, ended, surely, allowed,
    footprint, told, file, line, facts"""
_CALL: Final = """source, event, call_id, record, request, time, region, model, place, ran,
    principal, file, number, unit, endpoint, content"""
_OURS: Final = ", ".join(f"a.{name.strip()}" for name in _SENT.split(","))
_THEIRS: Final = ", ".join(f"c.{name.strip()}" for name in _CALL.split(","))

Row = tuple[Any, ...]
T = TypeVar("T", bound=Hashable)
BY_ID: Final = "id"
BY_CLAIM: Final = "claim"
BY_TIME: Final = "time"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two events with one id that say different things: the one kept, and the other's place."""

    event: str
    where: Where


@dataclass(frozen=True, slots=True)
class Pair:
    """An attempt and the call that it explains, and how that is known."""

    sent: Sent
    facts: Facts
    call: Call
    how: str


class Interned(Generic[T]):
    """Values that many rows share, each kept once."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """The number of a value, the same for equal ones."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Store:
    """Keeps both sides. From `since` on and before `until` is what counts, once `bound`."""

    def __init__(self, named_fleets: bool = False) -> None:
        # An empty name is a private file, deleted on close, used once the cache is full.
        self.db = sqlite3.connect("", isolation_level=None)
        self.db.executescript(_SCHEMA)
        self.since = 0
        self.until = 1 << 62
        self.repeated: Counter[Source] = Counter()
        self._named = named_fleets
        self._facts: Interned[Facts] = Interned()
        self._sets: Interned[frozenset[str]] = Interned()
        self._files: Interned[str] = Interned()

    def close(self) -> None:
        """Forget everything."""
        self.db.close()

    # -- keeping ---------------------------------------------------------------------------

    def add_sent(self, found: Iterable[tuple[Sent, Facts]]) -> int:
        """Keep our attempts; gives their number."""
        cursor = self.db.cursor()
        cursor.execute("begin")
        before = self.db.total_changes
        cursor.executemany(
            f"insert into attempts ({_SENT}, spot, counts) values ({_marks(16)}, 1)",  # noqa: S608
            (self._sent_row(sent, facts) for sent, facts in found),
        )
        added = self.db.total_changes - before
        for number, facts in enumerate(self._facts.values):
            rows = [(number, str(source)) for source in facts.seen_by]
            cursor.executemany("insert or ignore into seen values (?, ?)", rows)
        cursor.execute("commit")
        return added

    def _sent_row(self, sent: Sent, facts: Facts) -> Row:
        return (
            sent.record, sent.request, sent.number, sent.endpoint, sent.call_id, sent.result,
            sent.began, sent.ended, sent.surely, self._sets.number(sent.allowed),
            self._sets.number(sent.footprint), sent.told, self._files.number(sent.where.file),
            sent.where.number, self._facts.number(facts), self._our_spot(sent, facts),
        )  # fmt: skip

    def bound(self, since: int, until: int) -> None:
        """Attempts count that began from `since` on, before `until`."""
        self.since, self.until = since, until
        self.db.execute("update attempts set counts = began >= ? and began < ?", (since, until))

    def _our_spot(self, sent: Sent, facts: Facts) -> str:
        """What a call must share with an attempt to be paired with it by time."""
        if Source.VLLM in facts.seen_by:
            return sent.endpoint if self._named else ""
        if facts.kind == "bedrock":
            return f"{facts.source} {names.model(facts.model)}"
        return names.model(facts.model)

    def only(self, call_ids: Iterable[str]) -> None:
        """Of the attempts that count, only those with these ids do."""
        self.db.execute("create table sample (call_id text primary key) without rowid")
        self.db.executemany("insert into sample values (?)", ((one,) for one in call_ids))
        self.db.execute(
            "update attempts set counts = 0 where call_id not in (select call_id from sample)"
        )

    def begin(self) -> None:
        """Calls are added in one transaction: begin it."""
        self.db.execute("begin")

    def commit(self) -> None:
        """End it."""
        self.db.execute("commit")

    def add_call(self, call: Call) -> Conflict | None:
        """Keep a call unless it is there already. One that is there otherwise is a conflict, and
        kept too: which of the two is the true one can't be known here."""
        if self._added(call, call.event):
            return None
        kept = self._one(
            "select content from calls where source = ? and event = ?", str(call.source), call.event
        )
        same_id = f"{call.event} {call.content}"
        if kept == call.content or not self._added(call, same_id):
            self.repeated[call.source] += 1
            return None
        return Conflict(call.event, call.where)

    def _added(self, call: Call, event: str) -> bool:
        cursor = self.db.execute(
            f"insert or ignore into calls ({_CALL}, spot) values ({_marks(17)})",  # noqa: S608
            (
                str(call.source), event, call.call_id, call.record, call.request, call.time,
                call.region, call.model, call.place, call.ran, call.principal,
                self._files.number(call.where.file), call.where.number, call.where.unit,
                call.endpoint, call.content, self._their_spot(call),
            ),
        )  # fmt: skip
        return cursor.rowcount == 1

    def _their_spot(self, call: Call) -> str:
        if call.source is Source.VLLM:
            return call.endpoint
        plain = names.model(call.model)
        return f"{call.region} {plain}" if call.source.gives_ids else plain

    def add_stream(self, found: StreamPlace) -> Conflict | None:
        """Keep the place that a stream's second event tells, like `add_call`."""
        row = (found.call_id, found.place, self._files.number(found.where.file), found.where.number)
        if self.db.execute("insert or ignore into streams values (?, ?, ?, ?)", row).rowcount:
            return None
        kept = self._one("select place from streams where call_id = ?", found.call_id)
        if kept == found.place:
            self.repeated[Source.CLOUDTRAIL] += 1
            return None
        return Conflict(found.call_id, found.where)

    def join_streams(self) -> Iterator[tuple[str, str, str]]:
        """Give each call its stream's place; yields (call id, its place, the other) that differ."""
        source = str(Source.CLOUDTRAIL)
        differ = self.db.execute(
            "select c.call_id, c.place, s.place from calls c join streams s using (call_id)"
            " where c.source = ? and c.place != '' and s.place != '' and c.place != s.place",
            (source,),
        ).fetchall()
        self.db.execute(
            "update calls set place = (select s.place from streams s"
            " where s.call_id = calls.call_id)"
            " where source = ? and place = '' and call_id in (select call_id from streams)",
            (source,),
        )
        yield from ((str(a), str(b), str(c)) for a, b, c in differ)

    # -- pairing ---------------------------------------------------------------------------

    def pair(self, source: Source, attempt: int, call: int, how: str) -> bool:
        """Pair them; false when the attempt has its call from this source already."""
        row = (str(source), attempt, call, how)
        done = self.db.execute("insert or ignore into pairs values (?, ?, ?, ?)", row)
        return done.rowcount == 1

    def mark(self, call: int, fate: str) -> None:
        """Say what became of a call that is no attempt's."""
        self.db.execute("update calls set fate = ? where id = ?", (fate, call))

    def rows(self, statement: str, *values: object) -> list[Row]:
        """All rows of a small answer."""
        return self.db.execute(statement, values).fetchall()

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        """The rows of a large answer, in batches, while others are written."""
        cursor = self.db.cursor()
        cursor.execute(statement, values)
        while batch := cursor.fetchmany(4096):
            yield from batch

    def _one(self, statement: str, *values: object) -> object:
        found = self.db.execute(statement, values).fetchone()
        return None if found is None else found[0]

    # -- finding ---------------------------------------------------------------------------

    def pairs(self, source: Source) -> Iterator[Pair]:
        """Every pair of a source whose attempt counts, in the order of attempts."""
        for row in self.stream(
            f"select {_OURS}, {_THEIRS}, p.how from pairs p join attempts a on a.id = p.attempt"  # noqa: S608
            " join calls c on c.id = p.call where p.source = ? and a.counts order by a.id",
            str(source),
        ):
            facts = self._facts.values[row[14]]
            yield Pair(self._sent(row[:15]), facts, self._call(row[15:31]), str(row[31]))

    def unpaired(self, source: Source) -> Iterator[Sent]:
        """Attempts that a source could show and doesn't, those that count, in their order."""
        for row in self.stream(
            f"select {_OURS} from attempts a join seen s on s.facts = a.facts and s.source = ?"  # noqa: S608
            " where a.counts and not exists"
            " (select 1 from pairs p where p.source = s.source and p.attempt = a.id) order by a.id",
            str(source),
        ):
            yield self._sent(row)

    def unseen(self, given: Iterable[Source]) -> list[tuple[str, int]]:
        """Providers, with how many attempts that count none of these sources could show."""
        asked = [str(source) for source in given]
        counts: Counter[str] = Counter()
        for number, count in self.rows(
            "select a.facts, count(*) from attempts a where a.counts and not exists (select 1 from"  # noqa: S608
            f" seen s where s.facts = a.facts and s.source in ({_marks(len(asked))}))"
            " group by 1",
            *asked,
        ):
            facts = self._facts.values[number]
            counts[facts.provider or "unknown"] += count
        return sorted(counts.items())

    def call(self, id_: int) -> Call:
        """One call."""
        (row,) = self.rows(f"select {_THEIRS} from calls c where c.id = ?", id_)  # noqa: S608
        return self._call(row)

    def sent(self, id_: int) -> Sent:
        """One attempt."""
        (row,) = self.rows(f"select {_OURS} from attempts a where a.id = ?", id_)  # noqa: S608
        return self._sent(row)

    def _sent(self, row: Row) -> Sent:
        (record, request, number, endpoint, call_id, result, began, ended, surely, allowed,
         footprint, told, file, line, _) = row  # fmt: skip
        sets = self._sets.values
        return Sent(
            record, request, number, endpoint, call_id, result, began, ended, bool(surely),
            sets[allowed], sets[footprint], told, Where(self._files.values[file], line),
        )  # fmt: skip

    def _call(self, row: Row) -> Call:
        (source, event, call_id, record, request, time, region, model, place, ran, principal,
         file, number, unit, endpoint, content) = row  # fmt: skip
        where = Where(self._files.values[file], number, unit)
        return Call(
            Source(source), event, call_id, record, request, time, region, model, place, bool(ran),
            principal, where, endpoint, content,
        )  # fmt: skip


def _marks(count: int) -> str:
    return ", ".join("?" * count)
