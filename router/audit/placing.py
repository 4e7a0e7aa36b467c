"""What is told of a log that is not what was signed for: each fault once, where it is.

One fault has many consequences: of a line that is taken out, all later ones of its segment stand
one place too early, and with them the lines of receipts and what the next segment says of them.

 1. Where the stored hashes reproduce a head they prove what the lines were: each difference is told
    (`locate.py`), and of what reading found only what lies before them or above what is proved.
 2. The first head that they don't reproduce tells a range, up to the line that first does not
    follow from those before it. A line that can't be read, or a missing segment, in the range names
    the place; that nothing else in the range is wrong can't be known, and is said.
 3. A receipt is told where it says something else than that, or more.
"""

from collections.abc import Iterator, Sequence

from router.audit.heads import Head
from router.audit.layout import Folder
from router.audit.locate import SHOWN, differences, roots_at, stored_leaves
from router.audit.note import parse_checkpoint
from router.audit.receipt import Receipt
from router.audit.scan import Scan
from router.audit.tree import HASH_BYTES
from router.audit.verdict import Finding, merged


class Placing:
    """Names the faults of one log; `good` and `bad` are the heads that fit its lines or don't."""

    def __init__(
        self, folder: Folder, found: Scan, good: Sequence[Head], bad: Sequence[Head]
    ) -> None:
        self._found = found
        self._good = good
        stored = stored_leaves(folder.log(found.log), found) if bad else b""
        roots = roots_at(stored, {head.size for head in bad})
        reproduced = [head for head in bad if roots.get(head.size) == head.root]
        end = max((head.size for head in reproduced), default=0)
        self._proved = stored[: end * HASH_BYTES]
        self._fits = [head.size for head in (*good, *reproduced)]
        self._open = [head for head in bad if roots.get(head.size) != head.root]
        self._differences = differences(found, stored, end) if end else []
        self._ranged = range(0)
        self._stands: dict[str, int] = {}

    def findings(self, receipts: Sequence[Receipt]) -> list[Finding]:
        """1 to 3."""
        told = [*self._located(), *self._ranges()] if self._differences else [*self._unlocated()]
        judged = list(self._receipts(receipts, told))
        if any(one.fault == "altered" and one.place.index in self._ranged for one in judged):
            told = [one for one in told if one.fault != "contradicted"]  # told more exactly
        return told + judged

    def _located(self) -> Iterator[Finding]:
        """1."""
        yield from self._differences
        first = self._differences[0].place.index
        end = len(self._proved) // HASH_BYTES
        short = {self._found.place(one.place.index).segment for one in self._differences}
        for one in self._found.findings:
            before = self._found.place(max(one.place.index - 1, 0)).segment
            if one.place.index < first or (one.place.index >= end and before not in short):
                yield one
        yield from (one for one in self._found.unfit if one.place.index < first)

    def _ranges(self) -> Iterator[Finding]:
        """2, where lines are told by 1: whoever writes other hashes could so hide behind one."""
        if self._open:
            head = min(self._open, key=lambda head: head.size)
            yield self._range(head, head.size)

    def _unlocated(self) -> Iterator[Finding]:
        """2, where nothing else is told."""
        read, unfit = self._found.findings, self._found.unfit
        if not self._open:
            yield from (*unfit, *read)
            return
        head = min(self._open, key=lambda head: head.size)
        fits = self._proves(head)
        ends = min((one.place.index for one in unfit if one.place.index >= fits), default=head.size)
        named = [one for one in read if fits <= one.place.index < head.size]
        if not named or ends < named[0].place.index:
            yield self._range(head, ends)
        yield from (one for one in unfit if one.place.index < fits)
        for one in read:
            more = f"; lines {fits} to {head.size - 1} can't be proved" if one in named[:1] else ""
            yield Finding(one.fault, one.place, one.detail + more)

    def _proves(self, head: Head) -> int:
        """How many lines below a head are proved."""
        return max((size for size in self._fits if size <= head.size), default=0)

    def _range(self, head: Head, end: int) -> Finding:
        """A fault whose line can't be named; line `end` does not follow from those before it."""
        size, fits = self._found.size, self._proves(head)
        place, last = self._found.place(fits), min(head.size - 1, end)
        if size == fits:
            detail = f"lines up to {head.size - 1} were signed at {head.source}, and are gone"
            return Finding("truncated", place, detail)
        self._ranged = range(fits, last + 1)
        detail = f"something in lines {fits} to {last} is not as signed at {head.source}"
        if size < head.size:
            detail = f"{size} of {head.size} lines signed at {head.source} are here, {fits} proved"
            return Finding("truncated", place, detail)
        return Finding("contradicted", place, detail)

    def _receipts(self, receipts: Sequence[Receipt], told: Sequence[Finding]) -> Iterator[Finding]:
        """3."""
        fitting = {(head.size, head.root) for head in self._good}
        stands: dict[int, list[Receipt]] = {}
        for receipt in sorted(receipts, key=lambda one: one.index):
            leaf, place = self._found.leaf(receipt.index), self._found.place(receipt.index)
            if leaf is not None and leaf.hex() == receipt.leaf:
                continue
            if self._is_proved(receipt):
                continue  # 1 says what became of its line
            head = parse_checkpoint(receipt.checkpoint)
            if leaf is None:
                if not told:
                    yield Finding("truncated", place, f"a receipt names line {receipt.index}")
            elif (head.size, head.root) in fitting:
                # A receipt's own words aren't signed: only the log and its head can be right here.
                detail = f"its head fits, and line {receipt.index} is not the one it names: forged,"
                detail += " or given for an entry that was never logged"
                yield Finding("anchor", place, detail)
            elif (far := self._moved(receipt)) is not None:
                stands.setdefault(far, []).append(receipt)
            else:
                detail = f"line {receipt.index} is not the one of a receipt"
                yield Finding("altered", place, detail)
        # All that stand as far off have one cause, before them; two lines that changed places none.
        for far, (first, *more) in stands.items():
            if not more or not told:
                detail = (
                    f"the line of a receipt, {first.index}, now stands {far:+} lines from there"
                )
                yield Finding("moved", self._found.place(first.index), detail)

    def _is_proved(self, receipt: Receipt) -> bool:
        at = receipt.index * HASH_BYTES
        return self._proved[at : at + HASH_BYTES].hex() == receipt.leaf

    def _moved(self, receipt: Receipt) -> int | None:
        """How far from its index the line of a receipt stands now."""
        if not self._stands:
            leaves = bytes(self._found.leaves)
            starts = range(0, len(leaves), HASH_BYTES)
            self._stands = {leaves[at : at + HASH_BYTES].hex(): at // HASH_BYTES for at in starts}
        at = self._stands.get(receipt.leaf)
        return None if at is None else at - receipt.index


def capped(findings: Sequence[Finding]) -> list[Finding]:
    """Each once, and not more than anybody reads."""
    unique = merged(findings)
    if len(unique) <= SHOWN:
        return unique
    more = Finding("altered", unique[SHOWN].place, f"and {len(unique) - SHOWN} more findings")
    return [*unique[:SHOWN], more]
