"""One reconciliation: a folder of logs against everything that providers' records were given of.

1. our attempts; 2. every source's calls, each file with its faults; CloudTrail's digests first;
3. pairs per source; 4. what each pair says; 5. what has no counterpart; 6. coverage.

A record that is not there yet is no finding while the grace period lasts: CloudTrail delivers
within about 15 minutes, digests within an hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from router.assess.records import log_files
from router.audit.commands import UsageError
from router.audit.layout import Folder
from router.reconcile import cloudtrail, digests, exports, invocations, vllm
from router.reconcile.cloudtrail import StreamPlace
from router.reconcile.digests import Checked, Keys
from router.reconcile.judging import Basis, judge
from router.reconcile.model import (
    PROVIDERS,
    Call,
    Coverage,
    Finding,
    Kind,
    Result,
    Sent,
    Source,
    Where,
)
from router.reconcile.ours import FactsOf, Ours, facts_of, whole_since
from router.reconcile.pairing import Pairing
from router.reconcile.reading import Fault, files
from router.reconcile.store import BY_TIME, Store

GRACE: Final = 3600.0
SKEW: Final = 300.0
KEPT: Final = 1000
"""Findings of one kind and source that are kept whole; the others are counted."""

_FATES: Final = ("by_id", "by_time", "missing", "pending", "not_seen")
_BASES: Final = {
    Basis.TOLD: "place_told",
    Basis.ONLY: "place_only",
    Basis.NOWHERE: "refused",
    Basis.NONE: "place_unknown",
}
Progress = Callable[[str, int], object]
Read = Call | StreamPlace | Fault


@dataclass(frozen=True, slots=True)
class Asked:
    """What to reconcile. Times are microseconds; `grace` and `skew` seconds.

    `since` and `until` bound the attempts and calls that count: without them, the logs' first and
    last entry do.

    `given` names the paths of each source; `fleets` the endpoint whose log each vLLM path is, where
    that is known; `exempt` are principals whose calls are known not to be the router's; `facts` is
    how the endpoints of a snapshot are found. With a `sample`, only attempts with these call ids
    count.
    """

    folder: Path
    given: Mapping[Source, Sequence[Path]]
    at: int
    since: int | None = None
    until: int | None = None
    grace: float = GRACE
    skew: float = SKEW
    keys: Keys = field(default_factory=dict)
    fleets: Mapping[Path, str] = field(default_factory=dict)
    exempt: Sequence[str] = ()
    facts: FactsOf = facts_of
    sample: frozenset[str] | None = None


_EXPECTED: Final[Mapping[Source, str]] = {
    Source.CLOUDTRAIL: "events of Bedrock were looked for, as CloudTrail delivers them",
    Source.BEDROCK: "records of the schema `ModelInvocationLog` were looked for",
    Source.VLLM: "lines of requests were looked for, as `--enable-log-requests` writes them",
    Source.AZURE: "records of the category `RequestResponse` were looked for",
    Source.GCP: "data access entries of `aiplatform.googleapis.com` were looked for",
}


@dataclass(slots=True)
class Findings:
    """Findings as they come: each kind of each source up to a bound, all counted."""

    kept: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[Kind, Source]] = field(default_factory=Counter)

    def add(self, found: Iterable[Finding]) -> None:
        """Take what comes."""
        for one in found:
            self.counts[one.kind, one.source] += 1
            if self.counts[one.kind, one.source] <= KEPT:
                self.kept.append(one)

    def left_out(self) -> Iterator[str]:
        """Of which kinds not all are kept."""
        for (kind, source), count in self.counts.items():
            if count > KEPT:
                yield f"{count} findings `{kind}` of {source}: the first {KEPT} are shown"


def reconcile(asked: Asked, progress: Progress = lambda _what, _bytes: None) -> Result:
    """Reconcile. `progress` is told what was read, and how many bytes.

    Raises:
        UsageError: there is no log, or a path isn't there. LineInvalid: a log can't be read.
    """
    if not Folder(asked.folder).log_ids():
        raise UsageError(f"`{asked.folder}` holds no log")
    since = whole_since(Folder(asked.folder))
    if (asked.since or 0) < since:
        # What was released would be missed, and its calls taken for ones that bypassed the router.
        raise UsageError(
            f"lines of `{asked.folder}` were released, and what is here is whole from "
            f"{datetime.fromtimestamp(since / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ} on: give a `--period` "
            "after that, or a folder that `audit restore` brings back"
        )
    for path in (one for paths in asked.given.values() for one in paths):
        if not path.exists():
            raise UsageError(f"`{path}` is not there")
    with closing(Store(bool(asked.fleets))) as store:
        return _Run(asked, store, progress).run()


@dataclass(slots=True)
class _Run:
    asked: Asked
    store: Store
    progress: Progress
    findings: Findings = field(default_factory=Findings)
    notices: list[str] = field(default_factory=list)
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    trail: Checked = field(default_factory=Checked)

    def run(self) -> Result:
        ours = Ours(Folder(self.asked.folder), self.asked.facts)
        self.store.add_sent(ours.attempts(lambda size: self.progress("log", size)))  # 1
        since = ours.first if self.asked.since is None else self.asked.since
        until = ours.last + 1 if self.asked.until is None else self.asked.until
        self.store.bound(since, until)
        if self.asked.sample is not None:
            self.store.only(self.asked.sample)
        self.notices += ours.notices
        self._read_all()  # 2
        coverage = [*self._covered(), *self._unseen()]  # 3 to 6
        whole = self._whole()
        self.notices += self.findings.left_out()
        counts = {str(kind): 0 for kind, _ in self.findings.counts}
        for (kind, _), count in self.findings.counts.items():
            counts[str(kind)] += count
        return Result(
            since, until, self.asked.at, coverage, self.findings.kept, self.notices, self.calls,
            dict(self.trail.states), counts, whole, self.trail.regions,
        )  # fmt: skip

    # 2.

    def _read_all(self) -> None:
        for source, paths in self.asked.given.items():
            if source is Source.CLOUDTRAIL:
                self._digests(paths)
            self.store.begin()
            for path in paths:
                for file in _files_of(source, path):
                    self._take(source, self._reads(source, path, file))
                    self.progress(str(source), file.stat().st_size)
            self.store.commit()
        for call_id, own, other in self.store.join_streams():
            detail = f"call `{call_id}` ran in {own} by one event, in {other} by another"
            self.findings.add([Finding(Kind.EVENT_CONFLICT, Source.CLOUDTRAIL, detail)])

    def _digests(self, paths: Sequence[Path]) -> None:
        held = [one for path in paths for one in _files_of(Source.CLOUDTRAIL, path)]
        self.trail = digests.check(paths, held, self.asked.keys)
        self.findings.add(self.trail.findings)
        self.notices += self.trail.notices

    def _reads(self, source: Source, given: Path, file: Path) -> Iterable[Read]:
        if source is Source.CLOUDTRAIL:
            return cloudtrail.calls(file)
        if source is Source.BEDROCK:
            return invocations.calls(file)
        if source is Source.VLLM:
            return vllm.calls(file, self.asked.fleets.get(given, ""), self.store.until)
        return exports.azure_calls(file) if source is Source.AZURE else exports.gcp_calls(file)

    def _take(self, source: Source, found: Iterable[Read]) -> None:
        for one in found:
            if isinstance(one, Fault):
                self._found(Kind.UNREADABLE, source, one.reason, one.where)
                continue
            if isinstance(one, StreamPlace):
                conflict = self.store.add_stream(one)
            else:
                conflict = self.store.add_call(one)
            if conflict is not None:
                detail = f"event `{conflict.event}` is there twice, with different content"
                self._found(Kind.EVENT_CONFLICT, source, detail, conflict.where)

    def _found(self, kind: Kind, source: Source, detail: str, where: Where) -> None:
        self.findings.add([Finding(kind, source, detail, where=where)])

    # 3 to 6.

    def _covered(self) -> Iterator[Coverage]:
        skew = round(self.asked.skew * 1e6)
        for source in self.asked.given:
            self.findings.add(Pairing(self.store, source, skew, self.asked.exempt).run())
            count: Counter[str] = Counter()
            for pair in self.store.pairs(source):
                judged = judge(pair, skew)
                self.findings.add(judged.findings)
                count["by_time" if pair.how == BY_TIME else "by_id"] += 1
                count[_BASES[judged.basis]] += 1
            for sent in self.store.unpaired(source):
                count[self._without(source, sent)] += 1
            self._count_calls(source)
            attempts = sum(count[name] for name in _FATES)
            del count[_BASES[Basis.NONE]]
            yield Coverage(PROVIDERS[source], str(source), attempts, **count)

    def _without(self, source: Source, sent: Sent) -> str:
        """5. What it means that an attempt has no record there."""
        if not sent.surely:
            return "not_seen"
        if sent.ended > self.asked.at - self.asked.grace * 1e6:
            return "pending"
        detail = f"`{sent.endpoint}` answered, and no record of it is there"
        told = Finding(Kind.MISSING, source, detail, sent.record, sent.endpoint, where=sent.where)
        self.findings.add([told])
        return "missing"

    def _count_calls(self, source: Source) -> None:
        counts: Counter[str] = Counter()
        for fate, count in self.store.rows(
            "select fate, count(*) from calls where source = ? group by fate", str(source)
        ):
            counts[str(fate) or "paired"] += count
        counts["repeated"] = self.store.repeated[source]
        self.calls[str(source)] = +counts
        if not self.calls[str(source)]:
            self.notices.append(f"{source}: nothing that was given is a call; {_EXPECTED[source]}")
        if counts["probe"]:
            self.notices.append(f"{source}: {counts['probe']} calls name themselves canaries")

    def _unseen(self) -> Iterator[Coverage]:
        """Attempts that none of the sources given could show, by provider."""
        for provider, count in self.store.unseen(self.asked.given):
            yield Coverage(provider, "", count, not_observable=count)

    def _whole(self) -> bool:
        """Whether the trail is proven complete for the period, where one was given."""
        if Source.CLOUDTRAIL not in self.asked.given:
            return True
        states = self.trail.states
        if states["undigested"] or not self.trail.spans:
            self.notices.append("no digest files: that the trail is complete can't be known")
            return False
        if states["unsigned"]:
            self.notices.append(f"{states['unsigned']} log files are listed by unsigned digests")
        unsigned = self.trail.unsigned
        if unsigned:
            # Also those that list nothing: else an empty one stood for an hour that was taken out.
            self.notices.append(f"{unsigned} digests have no signature that could be checked")
        short = False
        for scope in self.trail.spans:
            if not self.trail.reaches(scope, self.store.since, self.store.until):
                short = True
                self.notices.append(f"the digests of {' '.join(scope)} don't reach over all of it")
        return not (short or unsigned or states["newer"])


def _files_of(source: Source, path: Path) -> Iterator[Path]:
    if source is Source.CLOUDTRAIL:
        return log_files(path) if path.is_dir() else iter([path])
    if source is Source.BEDROCK:
        return (one for one in files(path) if not invocations.holds_bodies(one, path))
    return files(path)


def sizes(given: Mapping[Source, Sequence[Path]]) -> int:
    """The bytes of every file that will be read."""
    found = (
        one for source, paths in given.items() for path in paths for one in _files_of(source, path)
    )
    return sum(one.stat().st_size for one in found)
