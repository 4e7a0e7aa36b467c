"""The laws that entries keep among themselves.

1. A decision id is open once. The snapshot of a decision or refusal is stored and has the digest
   it names, and so has the file of facts that the snapshot names in turn (`data`).
2. An attempt or outcome belongs to an open decision and is not dated before it.
3. Every endpoint attempted is in the plan of its decision.
4. A decision has exactly one outcome; a start or stop finds nothing open.
5. The roster has the lines that start, heartbeat and stop entries say it has.
6. A running process writes something at least every two heartbeats (else a notice: a gap).
7. A segment line repeats what was open before it.
8. After each start, heartbeat and stop a checkpoint is published: the newest one is never older
   than the newest lines by more than what makes a gap.
9. Lines that are not here were released, as a signed entry says (`absence.py`).
10. A key that was certified to sign stands in a `key` entry, from its first batch on (`keys`).

Names read from bodies, and only these: `plan` (endpoint names, or objects with `endpoint`),
`endpoint`, `attempts` (likewise), `snapshot` (hex SHA-256), `event`, `roster`, `certificate`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import orjson

from router.audit.absence import Absence
from router.audit.layout import DIGEST, Folder
from router.audit.lines import EntryLine, SegmentLine, Value
from router.audit.reading import Place
from router.audit.verdict import Fault, Finding

GAP_MICROSECONDS = 150 * 1_000_000


@dataclass(frozen=True, slots=True)
class _Open:
    place: Place
    time: int
    plan: frozenset[str] | None


class Structure:
    """Follows the entries of one log in order and collects what breaks a law."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._rosters: list[tuple[Place, Mapping[str, Value]]] = []
        self._open: dict[str, _Open] = {}
        self._snapshots: dict[str, bool] = {}
        self.newest = 0
        self.keys: dict[str, tuple[int, int]] = {}
        self._publications: list[tuple[Place, int, Value]] = []
        self._running = self._resuming = False
        self.absence = Absence()
        self.findings: list[Finding] = []
        self.notices: list[str] = []

    def entry(self, place: Place, line: EntryLine, body: Mapping[str, Value]) -> None:
        """Judge one entry."""
        self._gap(place, line, body)
        if line.kind == "decision":
            self._decision(place, line, body)
        elif line.kind == "refusal":
            self._snapshot(place, body)
        elif line.kind in ("attempt", "outcome"):
            self._later(place, line, body)
        elif line.kind in ("administration", "heartbeat"):
            self._process(place, line, body)
        elif line.kind == "key" and "certificate" in body:
            self.keys.setdefault(str(body["certificate"]), (place.index, line.time))

    def absent(self, place: Place, end: int) -> None:
        """The lines from a place up to `end` are not here: what is open after them is not known."""
        self.absence.lines(place, place.index, end)
        self._open.clear()
        self._resuming = True

    def segment(self, place: Place, line: SegmentLine) -> None:
        """7. After lines that are not here, what it says is taken as it is."""
        if self._resuming:
            self._resuming, self._running = False, True
            self.absence.followed(line.time)
            self.newest = max(self.newest, line.time)
            there = ((id_, Place(place.log, "", 0, index)) for id_, index in line.open)
            self._open = {id_: _Open(at, 0, None) for id_, at in there}
            return
        opened = tuple((id_, known.place.index) for id_, known in self._open.items())
        if opened != line.open:
            self._fault("segment", place, "it lists other open requests than were left open")

    def end(self) -> None:
        """The log is read to its end. What is still open awaits recovery."""
        if self._open:
            self.notices.append(f"{len(self._open)} requests are open: recovery will settle them")

    def judge_roster(self, digests: Sequence[bytes]) -> None:
        """5. `digests` of the roster's lines, read after the log: it may be growing."""
        for place, named in self._rosters:
            lines = named.get("lines")
            if not isinstance(lines, int) or not 0 <= lines <= len(digests):
                self._fault("roster", place, "the roster is shorter than the one this entry saw")
            elif lines and digests[lines - 1].hex() != named.get("digest"):
                self._fault("roster", place, "the roster is not the one this entry saw")

    def judge_published(self, covered: int) -> None:
        """8. `covered` lines by the newest head in the folder, read after the log: it may grow."""
        for place, time, _ in self._publications:
            if place.index >= covered:
                # A crash, or a process that is at it, leaves the last ones without a checkpoint.
                late = (self.newest - time) // 1_000_000
                if self.newest - time > GAP_MICROSECONDS:
                    detail = f"what was published after this entry is gone: {late} s of the log"
                    self._fault("checkpoint", place, detail)
                return

    def judge_history(self, sizes: Sequence[int], below: int) -> None:
        """8. `sizes` of the heads in the list of those that were published, `below` the largest."""
        known, gone = sorted(sizes), 0
        for (place, _, _), (later, _, event) in pairwise(self._publications):
            # A crash loses the last one of a process; a stop may share its with what came before.
            if later.index < below and event not in ("start", "stop"):
                at = bisect_right(known, place.index)
                gone += known[at : at + 1] == [] or known[at] > later.index
        if gone:
            self.notices.append(
                f"{gone} published checkpoints are not in `checkpoints.jsonl`, as in what was "
                "restored: of a fault below them, a larger range is told"
            )

    def _decision(self, place: Place, line: EntryLine, body: Mapping[str, Value]) -> None:
        if line.id in self._open:
            self._fault("duplicate", place, f"`{line.id}` already has an open decision")
        halves = body.get("prefill")
        also = endpoints(list(halves.values())) if isinstance(halves, dict) else ()
        plan = frozenset((*endpoints(body["plan"]), *also)) if "plan" in body else None
        self._open[line.id] = _Open(place, line.time, plan)
        self._snapshot(place, body)

    def _snapshot(self, place: Place, body: Mapping[str, Value]) -> None:
        snapshot = body.get("snapshot")
        if snapshot is not None and not self._stored(str(snapshot)):
            detail = f"snapshot `{snapshot}`, or the facts that it names, is missing or altered"
            self._fault("snapshot", place, detail)

    def _later(self, place: Place, line: EntryLine, body: Mapping[str, Value]) -> None:
        decision = self._open.get(line.id)
        if decision is None:
            self._fault("orphan", place, f"`{line.id}` has no open decision for an {line.kind}")
            return
        if line.time < decision.time:
            self._fault("out_of_order", place, f"dated before its decision at {decision.place}")
        for endpoint in endpoints([body.get("endpoint"), *_items(body.get("attempts"))]):
            if decision.plan is not None and endpoint not in decision.plan:
                detail = f"`{endpoint}` is not in the plan at {decision.place}"
                self._fault("outside_plan", place, detail)
        if line.kind == "outcome":
            del self._open[line.id]

    def _process(self, place: Place, line: EntryLine, body: Mapping[str, Value]) -> None:
        if body.get("event") == "released":
            self.absence.released(place.index, body)
        if body.get("event") in ("start", "stop"):
            self._running = body["event"] == "start"
            for id_, known in self._open.items():
                self._fault("unsettled", known.place, f"`{id_}` was never settled")
            self._open.clear()
        roster = body.get("roster")
        if isinstance(roster, dict):
            self._publications.append((place, line.time, body.get("event")))
            self._rosters.append((place, roster))

    def _gap(self, place: Place, line: EntryLine, body: Mapping[str, Value]) -> None:
        recovering = body.get("event") == "start" or "recovery" in (line.kind, body.get("by"))
        silent = line.time - self.newest
        if self._running and not recovering and silent > GAP_MICROSECONDS:
            self.notices.append(f"gap: {place}: nothing for {silent // 1_000_000} s before it")
        self.newest = max(self.newest, line.time)

    def _stored(self, digest: str) -> bool:
        if digest not in self._snapshots:
            held = self._held(digest)
            facts = None if held is None else _facts(held)
            self._snapshots[digest] = held is not None and (
                facts is None or self._held(facts) is not None
            )
        return self._snapshots[digest]

    def _held(self, digest: str) -> bytes | None:
        """A stored file that is what its name says."""
        path = self._folder.snapshot(digest)
        if DIGEST.fullmatch(digest) is None or not path.is_file():
            return None
        data = path.read_bytes()
        return data if sha256(data).hexdigest() == digest else None

    def _fault(self, fault: Fault, place: Place, detail: str) -> None:
        self.findings.append(Finding(fault, place, detail))


def _facts(snapshot: bytes) -> str | None:
    """The file that a stored snapshot names, if it does."""
    try:
        content = orjson.loads(snapshot)
    except ValueError:
        return None
    named = content.get("data") if isinstance(content, dict) else None
    return named if isinstance(named, str) else None


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def endpoints(value: Value) -> Iterator[str]:
    """Endpoint names in a list of names or of objects with `endpoint`."""
    for item in _items(value):
        name = item.get("endpoint") if isinstance(item, dict) else item
        if isinstance(name, str):
            yield name
