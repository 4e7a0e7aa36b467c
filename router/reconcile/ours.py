"""The region log → attempts, each with what was allowed and what its endpoint was then.

1. An outcome lists its attempts, each with the id that the provider's answer carried.
2. An attempt that was answered must be in the provider's record; one that failed may be, unless
   nothing of it was sent.
3. A canary at a managed API (`administration`, `"event":"canary"`) is an attempt as well, allowed
   wherever its endpoint may run.
4. A request without such a list (open, or settled by recovery) may have asked any endpoint of its
   plan.
5. What an endpoint was (kind, model, source) stands in the snapshot that the decision names; where
   that can't be loaded, the outcome's own words count, and it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from regions.model import Endpoint
from router.audit.bodies import Body, attempts_in, object_in, text_in, texts_in
from router.audit.layout import Folder, LogFolder, first_line
from router.audit.lines import SegmentLine, parse_line
from router.audit.reading import LogReader, Shown
from router.decisions.replayed import WorldMissing, world
from router.reconcile.model import Facts, Sent, Where

UNSENT: Final = frozenset(
    {"connect_failed", "tls_failed", "misconfigured", "deadline", "inexpressible", "no_room_here"}
)
"""Results of attempts of which no byte left."""
ANSWERED: Final = frozenset({"ok", "escalated", "prefilled"})
LONGEST: Final = 3_600_000_000
"""An hour: no request runs longer, whatever recovery says of when it ended."""

Progress = Callable[[int], object]
FactsOf = Callable[[Folder, str], Mapping[str, Facts]]


def whole_since(folder: Folder) -> int:
    """Since when (µs) every attempt is in these logs; 0: always. Lines that were released are not
    here, and a request that was decided in them may have run for as long as any can."""
    oldest = (here for log in folder.logs for here in log.segments()[:1] if here != log.hashed()[0])
    lines = map(parse_line, map(first_line, oldest))
    return max((one.time + LONGEST for one in lines if isinstance(one, SegmentLine)), default=0)


@dataclass(slots=True)
class Ours:
    """Reads the attempts of a folder of logs.

    `facts` gives the endpoints of a snapshot; `first` and `last` are the times of the entries read.
    """

    folder: Folder
    facts: FactsOf
    notices: list[str] = field(default_factory=list)
    first: int = 1 << 62
    last: int = 0
    _loaded: dict[str, Mapping[str, Facts]] = field(default_factory=dict)
    _sets: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)

    def attempts(self, progress: Progress = lambda _: None) -> Iterator[tuple[Sent, Facts]]:
        """Every attempt that may have reached its endpoint. `progress` gets the bytes read.

        Raises:
            LineInvalid: a line of the log can't be read.
        """
        for log in self.folder.logs:
            yield from self._of_log(log, progress)

    def _of_log(self, log: LogFolder, progress: Progress) -> Iterator[tuple[Sent, Facts]]:
        reader, opened = LogReader(log), dict[str, Shown]()
        for segment in log.segments():
            for shown in reader.of(segment):
                self.first, self.last = min(self.first, shown.time), max(self.last, shown.time)
                if shown.kind == "decision":
                    opened[shown.id] = shown
                elif shown.kind == "outcome" and (began := opened.pop(shown.id, None)) is not None:
                    yield from self._ended(began, shown)
                elif shown.kind == "administration" and shown.body.get("event") == "canary":
                    yield self._canary(shown)
            progress(segment.path.stat().st_size)
        for began in opened.values():
            yield from self._perhaps(began, began.time + LONGEST)

    def _canary(self, shown: Shown) -> tuple[Sent, Facts]:
        """3."""
        body, began = shown.body, shown.body.get("began")
        endpoint, result = text_in(body, "endpoint"), text_in(body, "result")
        places = self._kept(texts_in(body, "process"))
        sent = Sent(
            f"{shown.place.log}/{shown.place.index}",
            "",
            0,
            endpoint,
            text_in(body, "call"),
            result,
            began if isinstance(began, int) else shown.time,
            shown.time,
            result in ANSWERED,
            places,
            places,
            "",
            Where(f"{shown.place.log}/segments/{shown.place.segment}", shown.place.line),
        )
        return sent, self._facts(text_in(body, "snapshot"), endpoint, {})

    def _ended(self, began: Shown, outcome: Shown) -> Iterator[tuple[Sent, Facts]]:
        if not isinstance(outcome.body.get("attempts"), list):
            yield from self._perhaps(began, min(outcome.time, began.time + LONGEST))
            return
        listed = attempts_in(outcome.body)
        last = len(listed) - 1
        for number, one in enumerate(listed):
            if one.get("result") not in UNSENT:
                answered = outcome.body if number == last else {}
                yield self._attempt(began, outcome, number, one, answered)

    def _attempt(
        self, began: Shown, outcome: Shown, number: int, one: Body, answered: Body
    ) -> tuple[Sent, Facts]:
        endpoint, result = text_in(one, "endpoint"), text_in(one, "result")
        mine = answered if answered.get("endpoint") == endpoint else {}
        ran = object_in(mine, "ran")
        told = text_in(mine, "place")
        sent = Sent(
            f"{began.place.log}/{began.place.index}",
            began.id,
            number,
            endpoint,
            text_in(one, "call"),
            result,
            began.time,
            max(outcome.time, began.time),
            result in ANSWERED,
            self._kept(texts_in(object_in(began.body, "allowed"), "process")),
            self._kept(texts_in(ran, "process")),
            "" if told == "not observable" else told,
            Where(f"{outcome.place.log}/segments/{outcome.place.segment}", outcome.place.line),
        )
        return sent, self._facts(text_in(began.body, "snapshot"), endpoint, ran)

    def _perhaps(self, began: Shown, until: int) -> Iterator[tuple[Sent, Facts]]:
        """4."""
        halves = object_in(began.body, "prefill").values()
        named = [*texts_in(began.body, "plan"), *(one for one in halves if isinstance(one, str))]
        for number, endpoint in enumerate(named):
            one: Body = {"endpoint": endpoint, "result": "unknown"}
            outcome = Shown(began.place, began.kind, began.id, until, {})
            yield self._attempt(began, outcome, number, one, {})

    def _facts(self, snapshot: str, endpoint: str, ran: Body) -> Facts:
        """5."""
        if snapshot not in self._loaded:
            self._loaded[snapshot] = self._load(snapshot)
        known = self._loaded[snapshot].get(endpoint)
        if known is not None:
            return known
        provider, source = text_in(ran, "provider"), text_in(ran, "source")
        kind = {"aws": "bedrock", "self": "vllm"}.get(provider, "")
        return Facts(kind, provider, text_in(ran, "model"), source, provider == "self")

    def _load(self, snapshot: str) -> Mapping[str, Facts]:
        try:
            return self.facts(self.folder, snapshot)
        except WorldMissing as missing:
            self.notices.append(f"endpoints are taken as their outcomes say: {missing}")
            return {}

    def _kept(self, ids: Iterable[str]) -> frozenset[str]:
        """One set of each kind, however many attempts have it."""
        made = frozenset(ids)
        return self._sets.setdefault(made, made)


def facts_of(folder: Folder, snapshot: str) -> Mapping[str, Facts]:
    """The endpoints of a snapshot stored beside the log. Raises WorldMissing."""
    endpoints = world(folder, snapshot).policy.endpoints
    return {name: facts(endpoint) for name, endpoint in endpoints.items()}


def facts(endpoint: Endpoint) -> Facts:
    """What reconciliation needs of an endpoint."""
    host = urlsplit(endpoint.urls[0]).hostname if endpoint.urls else ""
    source = endpoint.source or ""
    if source and ":" not in source:
        source = f"{endpoint.provider}:{source}"
    return Facts(
        endpoint.kind,
        endpoint.provider,
        endpoint.model,
        source,
        endpoint.self_operated or endpoint.provider == "self",
        host or "",
    )
