"""A soak's evidence, judged: the region log, the upstreams' journals, what clients heard."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from router.audit.layout import Folder
from router.audit.reading import LogReader
from tests.chaos.evidence import Reached, Trace, endpoint_of, unjustified
from tests.chaos.world import OUTSIDE, TENANTS

LOGS = ("eu-1.w1", "eu-1.w2")
LONGEST = 6.0 + 3.0
"""Seconds: the deadline of a request, and what a busy machine adds."""
TURN = 0.25
"""Seconds: a client's durations are by its loop's clock, which stands still for a busy turn."""
KEPT = 20


@dataclass(slots=True)
class Faults:
    """What must not be: how often, and the first of each in words."""

    counts: Counter[str] = field(default_factory=Counter)
    told: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, text: str) -> None:
        """One more."""
        self.counts[kind] += 1
        if len(self.told[kind]) < KEPT:
            self.told[kind].append(text)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as its client heard it."""

    began: float
    record: str
    endpoint: str


@dataclass(slots=True)
class Clients:
    """What all clients heard."""

    answers: dict[str, Answered] = field(default_factory=dict)
    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    streams: int = 0
    latest: float = 0.0


def one_by_one(log: Path, name: str) -> Iterator[Trace]:
    """Every request of a log when its outcome is read; at the end those that have none."""
    running: dict[str, Trace] = {}
    for shown in LogReader(Folder(log).log(name)).entries():
        if not shown.id:
            continue
        running.setdefault(shown.id, Trace(shown.id)).add(shown)
        if shown.kind == "outcome":
            yield running.pop(shown.id)
    yield from running.values()


def heard(folder: Path, faults: Faults) -> Clients:
    """Read what clients wrote down; `faults` gets what hung, broke or had no shape."""
    kills = [(row[2], row[3]) for row in rows(folder / "events.jsonl") if row[0] == "worker killed"]
    found = Clients()
    for row in rows(folder / "load.jsonl"):
        if isinstance(row, dict):
            found.latest = max(found.latest, row.get("latest", 0.0))
            if "malformed" in row:
                faults.add("malformed", row["malformed"])
            continue
        began, seconds, tenant, stream, status, code, request, record, left, endpoint = row
        cut = not status and not left
        found.codes["cut by a kill" if cut else code] += 1
        found.seconds.append(seconds)
        found.starts.append(began)
        found.streams += stream
        if seconds > LONGEST:
            faults.add("hung", f"{tenant} {request}: {code} after {seconds:.1f} s")
        if cut and not any(start - TURN <= began + seconds <= end + 5 for start, end in kills):
            faults.add("dropped", f"{tenant} at {began + seconds:.3f}: {code}")
        if status == 200:
            found.answers[request] = Answered(began, record, endpoint)
    return found


def reached(folder: Path) -> dict[str, list[Reached]]:
    """What upstreams saw of clients' requests, by request."""
    found: dict[str, list[Reached]] = defaultdict(list)
    for journal in sorted(folder.glob("*.hits")):
        for request, region, replica, at in rows(journal):
            if request != "probe":
                hit = Reached(request, endpoint_of(region), replica, at)
                found[request].append(hit)
    return found


def rows(file: Path) -> Iterator[Any]:
    """The JSON lines of a file; a last one that a kill cut short is left out."""
    with file.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield orjson.loads(line)


def judged(folder: Path, faults: Faults) -> dict[str, object]:
    """Everything that must hold of a soak's folder; gives its figures."""
    clients, hits = heard(folder, faults), reached(folder)
    counted: Counter[str] = Counter()
    for trace in (one for name in LOGS for one in one_by_one(folder / "log", name)):
        # One that is decided again, under a new snapshot, is named `ID.1`; upstreams hear `ID`.
        request = trace.id.partition(".")[0]
        called = bool(trace.tried) or trace.status in ("unknown", "open")
        of_this = hits.pop(request, []) if called else []
        counted["upstream"] += len(of_this)
        counted["outside allowed"] += sum(hit.endpoint in OUTSIDE for hit in of_this)
        _settled(trace, counted, faults)
        for text in unjustified(of_this, {request: trace}):
            faults.add("unjustified", text)
        _told(trace, of_this, clients.answers.pop(request, None) if called else None, faults)
    for request, left in hits.items():
        faults.add("unjustified", f"{left[0]} has no decision ({request})")
    for request, answer in clients.answers.items():
        faults.add("unrecorded", f"{request} at {answer.began:.3f} is in no log")
    return _figures(clients, counted)


def _settled(trace: Trace, counted: Counter[str], faults: Faults) -> None:
    if trace.decision is None:
        counted["refused"] += bool(trace.refusals)
        if trace.outcomes or trace.attempts:
            faults.add("unsettled", f"{trace.id}: entries without a decision")
        return
    counted["decisions"] += 1
    counted["attempts announced"] += len(trace.attempts)
    counted["recovered"] += trace.status == "unknown"
    if len(trace.outcomes) != 1:
        faults.add("unsettled", f"{trace.id}: {len(trace.outcomes)} outcomes")
    if trace.tenant not in TENANTS:
        faults.add("unsettled", f"{trace.id}: no such tenant `{trace.tenant}`")


def _told(trace: Trace, hits: list[Reached], answer: Answered | None, faults: Faults) -> None:
    """The receipt names the entry, and a place that was called, as the outcome does.

    Not the last that was: a process that stood still reads late what it was sent long before.
    """
    if answer is None:
        return
    index = -1 if trace.decision is None else trace.decision.place.index
    if answer.record.split("/")[1] != str(index):
        faults.add("misplaced", f"{trace.id}: the receipt names another entry than {index}")
    said = trace.outcomes[0].body.get("endpoint") if trace.outcomes else None
    if trace.status != "unknown" and said != answer.endpoint:
        faults.add("misplaced", f"{trace.id}: {answer.endpoint} is said, the log says {said}")
    if answer.endpoint not in {hit.endpoint for hit in hits}:
        faults.add("misplaced", f"{trace.id}: {answer.endpoint} is said, {hits} were called")


def _figures(clients: Clients, counted: Counter[str]) -> dict[str, object]:
    seconds = sorted(clients.seconds)
    lasted = max(clients.starts) - min(clients.starts)
    return {
        "requests": len(seconds),
        "requests a second": round((len(seconds) - 1) / lasted, 1),
        "streams": clients.streams,
        "codes": dict(clients.codes.most_common()),
        "seconds": {str(q): round(_at(seconds, q), 3) for q in (0.5, 0.9, 0.99, 0.999, 1.0)},
        "latest turn": round(clients.latest, 2),
        **counted,
    }


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def events(folder: Path) -> dict[str, int]:
    """How often each kind of event was."""
    return dict(Counter(str(row[0]) for row in rows(folder / "events.jsonl")).most_common())
