"""What a verification says: findings with places, notices, and one status line per log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from router.audit.note import Checkpoint
from router.audit.reading import Place
from router.audit.receipt import Receipt

Anchor: TypeAlias = Checkpoint | Receipt
Fault: TypeAlias = Literal[
    "altered",  # a line is not the one that was signed for
    "removed",
    "added",
    "duplicated",
    "moved",
    "truncated",  # lines a signed head covers are gone from the end
    "contradicted",  # a signed head doesn't fit, and the place is known as a range only
    "malformed",  # not a line that a log writes
    "segment",  # a segment file is missing, misnamed or starts wrongly
    "sidecar",  # stored leaf hashes differ from the lines
    "checkpoint",  # a published checkpoint is unreadable, stale, or signed by nobody known
    "anchor",  # what was given to compare with is signed by nobody known
    "certificate",  # the key of a head had ended, or the log doesn't hold its certificate
    "split_view",  # two signed heads of one size differ
    "missing_log",
    "unlisted_log",
    "roster",
    "snapshot",
    "orphan",  # an attempt or outcome without its decision
    "outside_plan",
    "out_of_order",  # something is dated before the decision it depends on
    "unsettled",
    "duplicate",  # a second decision under an open id
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault and where it is."""

    fault: Fault
    place: Place
    detail: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.place}: {self.detail}"


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Each once, and one for all lines of a list that follow each other and have the same fault."""
    runs: list[list[Finding]] = []
    for one in dict.fromkeys(findings):
        if runs and _follows(runs[-1][-1], one):
            runs[-1].append(one)
        else:
            runs.append([one])
    return [_whole(run) for run in runs]


def _follows(one: Finding, other: Finding) -> bool:
    """Lines of the roster, or of published checkpoints; those of a log have an index."""
    after = replace(one, place=replace(one.place, line=one.place.line + 1))
    return after == other and one.place.line > 0 and one.place.index < 0


def _whole(run: Sequence[Finding]) -> Finding:
    first, last = run[0], run[-1]
    if first is last:
        return first
    return replace(first, detail=f"lines {first.place.line} to {last.place.line}: {first.detail}")


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """One log. `anchored` is the size of the largest anchor it agrees with; None without one.
    `absent`: how many lines are here by their hashes only."""

    log: str
    size: int
    anchored: int | None
    torn: int
    findings: Sequence[Finding]
    notices: Sequence[str]
    absent: int = 0

    @property
    def tail(self) -> int:
        """Lines above the largest anchor (0 without one: nothing is anchored then)."""
        return 0 if self.anchored is None else max(0, self.size - self.anchored)

    @property
    def statuses(self) -> list[str]:
        """Words of law 11 that apply."""
        words = [f"{len(self.findings)} findings"] if self.findings else []
        if not self.findings and self.anchored is None:
            words.append("consistent, unanchored")
        if self.tail:
            words.append(f"unanchored tail: {self.tail}")
        if self.absent:
            words.append(f"released: {self.absent}")
        if self.torn:
            words.append("torn tail")
        return words or ["intact"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A folder of logs. `findings` are those of the folder itself: roster, missing logs, anchors
    of logs that are not there."""

    logs: Sequence[LogVerdict]
    findings: Sequence[Finding]
    notices: Sequence[str]

    @property
    def all_findings(self) -> list[Finding]:
        """Findings of the folder and of every log."""
        return [*self.findings, *(finding for log in self.logs for finding in log.findings)]

    @property
    def ok(self) -> bool:
        """No finding anywhere. A tail, a torn tail or a missing anchor is not a finding."""
        return not self.all_findings

    @property
    def absent(self) -> int:
        """How many lines of all logs are here by their hashes only."""
        return sum(log.absent for log in self.logs)

    @property
    def statuses(self) -> list[str]:
        """All statuses, each once."""
        words = [f"{len(self.findings)} findings"] if self.findings else []
        return list(dict.fromkeys([*words, *(s for log in self.logs for s in log.statuses)]))
