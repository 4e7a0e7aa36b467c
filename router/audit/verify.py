"""Offline verification of a folder of logs.

For the folder:
 1. Read the roster: each line signed by a known key and chained to the one before.
 2. Every log the roster or an anchor names is there; every log that is there is in the roster.

For each log:
 3. Collect every signed head: anchors given, published checkpoints, roster. Two heads of one size
    agree, and each is signed by a known key.
 4. Read all lines once: hashes, roots at the sizes of those heads, structure.
 5. Each head fits the root of the lines below it; each receipt fits the line at its index. The key
    of a head was certified: no line below is newer than its certificate, and one holds it.
 6. If one doesn't, name the places (`placing.py`). Otherwise structure counts (`structure.py`).
 7. Lines above the largest fitting anchor are the unanchored tail.

For the folder again:
 8. A log that was given up, or falls silent without a stop while others go on, is a named gap.

Lines that were released are not here, but their leaf hashes are: they count in the roots, and
what they say is not judged (`absence.py`).

A folder restored from sealed segments may end before its roster, checkpoints and anchors do: with
`sealed` (log → size) heads above that size are not judged, and a notice says how many lines they
cover that are not there.

With no anchor the best verdict is `consistent, unanchored`: whoever holds the signing key could
have written all of it anew. Nothing here writes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from router.audit.errors import AuditError
from router.audit.heads import Head, Heads, certified, published_size
from router.audit.layout import Folder
from router.audit.locate import altered_sidecar
from router.audit.note import PublicKey
from router.audit.placing import Placing, capped
from router.audit.reading import Place
from router.audit.receipt import Receipt
from router.audit.roster import NO_LINE, RosterLine, read_roster
from router.audit.scan import Reader, Scan, scan
from router.audit.structure import GAP_MICROSECONDS, Structure
from router.audit.verdict import Anchor, Finding, LogVerdict, Verdict, merged


def verify(
    folder: Path,
    *,
    against: Sequence[Anchor] = (),
    public_keys: Sequence[PublicKey] = (),
    sealed: Mapping[str, int] | None = None,
    reader: Reader | None = None,
) -> Verdict:
    """Verify every log in `folder`.

    `against` are checkpoints or receipts kept elsewhere; `public_keys` the keys the logs must be
    signed with. Without keys those of the roster are used, and a notice says so. `sealed` is for
    a folder that was restored: how many lines of each log there are. `reader` is shown every entry
    as it is verified.
    """
    return _Verification(Folder(folder), against, public_keys, sealed, reader).run()


class _Verification:
    def __init__(
        self,
        folder: Folder,
        against: Sequence[Anchor],
        public_keys: Sequence[PublicKey],
        sealed: Mapping[str, int] | None,
        reader: Reader | None,
    ) -> None:
        self._folder = folder
        self._reader = reader
        self._sealed = sealed
        self._anchors = [(number, anchor) for number, anchor in enumerate(against, 1)]
        self._keys = list(public_keys)
        self._lines: list[RosterLine] = []
        self._findings: list[Finding] = []
        self._notices: list[str] = []
        self._newest: dict[str, int] = {}

    def run(self) -> Verdict:
        # The folder may be growing: a log is there before the roster names it, and is named before
        # its first segment. So segments are listed before the roster is read, folders after it.
        begun = [log for log in self._folder.log_ids() if self._folder.log(log).begun]
        self._roster()
        present = self._folder.log_ids()
        self._missing(present, begun)
        logs = [self._log(log) for log in present]
        self._silent()
        return Verdict(logs, merged(self._findings), self._notices)

    def _roster(self) -> None:
        """1."""
        try:
            self._lines, torn = read_roster(self._folder)
        except AuditError as error:
            self._findings.append(Finding("roster", Place("roster.jsonl", "", 0, -1), str(error)))
            torn = 0
        if torn:
            self._notices.append("the roster has a torn tail")
        if not self._keys:
            self._keys = list(dict.fromkeys(line.key for line in self._lines))
            self._notices.append("keys were taken from the roster: pass a public key to check them")
        previous, newest = NO_LINE, 0
        for number, line in enumerate(self._lines, 1):
            if line.previous != previous:
                self._unfit(number, "it doesn't follow the line before it")
            if not line.signed or line.key not in self._keys:
                self._unfit(number, "it is not signed by a known key")
            previous = line.digest
            if newest - line.time > GAP_MICROSECONDS:
                late = (newest - line.time) // 1_000_000
                self._notices.append(
                    f"line {number} of the roster is dated {late} s before one above it: a clock "
                    "that was set back, or a key whose day was over"
                )
            newest = max(newest, line.time)

    def _unfit(self, number: int, detail: str) -> None:
        self._findings.append(Finding("roster", Place("roster.jsonl", "", number, -1), detail))

    def _missing(self, present: Sequence[str], begun: Sequence[str]) -> None:
        """2."""
        named = {line.log for line in self._lines}
        anchored = {_origin(anchor) for _, anchor in self._anchors}
        for log in sorted((named | anchored) - set(present)):
            if self._sealed is not None:
                self._notices.append(f"nothing of `{log}` is sealed yet")
                continue
            detail = "an anchor names it" if log in anchored else "the roster names it"
            detail += self._lost(log)
            self._findings.append(Finding("missing_log", Place(log, "", 0, -1), detail))
        self._findings += (
            Finding("unlisted_log", Place(log, "", 0, -1), "the roster doesn't name it")
            for log in sorted(set(begun) - named)
        )

    def _lost(self, log: str) -> str:
        """What the roster says of a log that nobody could recover."""
        said = [line for line in self._lines if line.log == log][-1:]
        return "".join(
            f"; it was lost with {line.size} lines below its last good checkpoint"
            for line in said
            if line.event == "lost"
        )

    def _silent(self) -> None:
        """8."""
        newest = max(self._newest.values(), default=0)
        ends = {line.log: line.event for line in self._lines}
        for log, last in self._newest.items():
            if ends.get(log) == "lost":
                self._notices.append(f"gap: {log}: given up{self._lost(log)}")
            elif ends.get(log) == "start" and newest - last > GAP_MICROSECONDS:
                seconds = (newest - last) // 1_000_000
                self._notices.append(
                    f"gap: {log}: it never stopped, and has nothing of the last {seconds} s that "
                    "other logs go on"
                )

    def _log(self, log: str) -> LogVerdict:
        heads = self._heads(log)
        structure = Structure(self._folder)
        wanted = {head.size for head in heads.all}
        found = scan(self._folder.log(log), wanted, structure, self._reader)  # 4
        structure.judge_roster(self._digests())
        before = max((head.size for head in heads.all if not head.given), default=0)
        if self._sealed is None:
            structure.judge_published(max(before, published_size(self._folder.log(log))))
        structure.judge_history(heads.published_sizes, before)
        self._newest[log] = structure.newest
        good, bad = _judged(heads.all, found)  # 5
        findings = [*heads.findings, *heads.split_views()]
        notices = [*heads.notices]
        findings += Placing(self._folder, found, good, bad).findings(heads.receipts)  # 6
        if bad or found.faulty:
            findings += () if bad else structure.findings
            notices.append("the structure was judged only up to the first fault")
        else:
            findings += structure.findings
            published = max((head.size for head in good if not head.given), default=0)
            findings += altered_sidecar(found, published)
            notices += structure.notices
            findings += certified(good, found.times, structure.keys, structure.absence)
            findings += structure.absence.findings(max((head.size for head in good), default=0))
            notices += structure.absence.notices()
        anchored = [head.size for head in good if head.given]
        given = any(head.given for head in heads.all)
        size = max(anchored, default=0) if given else None
        absent = structure.absence.count
        return LogVerdict(log, found.size, size, found.torn, capped(findings), notices, absent)

    def _digests(self) -> list[bytes]:
        try:
            return [line.digest for line in read_roster(self._folder)[0]]
        except AuditError:
            return []  # reported by 1

    def _heads(self, log: str) -> Heads:
        """3."""
        heads = Heads(log, self._keys)
        anchors = [(number, one) for number, one in self._anchors if _origin(one) == log]
        for number, anchor in anchors:
            heads.given(number, anchor)
        numbered = [(at, line) for at, line in enumerate(self._lines, 1) if line.log == log]
        heads.roster(numbered)
        held = frozenset(_text(anchor) for _, anchor in anchors)
        heads.published(self._folder.log(log), held, numbered)
        if self._sealed is not None:
            heads.leave_above(self._sealed.get(log, 0))
        return heads


def _judged(heads: Sequence[Head], found: Scan) -> tuple[list[Head], list[Head]]:
    good = [head for head in heads if found.roots.get(head.size) == head.root]
    return good, [head for head in heads if found.roots.get(head.size) != head.root]


def _origin(anchor: Anchor) -> str:
    return anchor.log if isinstance(anchor, Receipt) else anchor.origin


def _text(anchor: Anchor) -> str:
    return anchor.checkpoint if isinstance(anchor, Receipt) else anchor.text
