"""Every signed statement about the size and root of one log, wherever it was found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from router.audit.absence import Absence
from router.audit.errors import NoteInvalid
from router.audit.layout import LogFolder, complete_lines
from router.audit.note import Certificate, Checkpoint, PublicKey, parse_checkpoint
from router.audit.reading import Place
from router.audit.receipt import Receipt
from router.audit.roster import RosterLine
from router.audit.verdict import Anchor, Finding


@dataclass(frozen=True, slots=True)
class Head:
    """A root that the log must have at a size. `given`: by whoever verifies, not by the folder.

    `certificate`: of the key that signed it, where the known key only certified that one.
    """

    size: int
    root: bytes
    source: Place
    given: bool
    certificate: Certificate | None = None


class Heads:
    """Collects the heads of one log, and findings about the statements themselves."""

    def __init__(self, log: str, keys: Sequence[PublicKey]) -> None:
        self._log = log
        self._keys = keys
        self.all: list[Head] = []
        self.published_sizes: list[int] = []
        self.receipts: list[Receipt] = []
        self.findings: list[Finding] = []
        self.notices: list[str] = []

    def given(self, number: int, anchor: Anchor) -> None:
        """An anchor of this log, the `number`-th one given."""
        place = Place(f"anchor {number}", "", 0, -1)
        try:
            receipt = anchor if isinstance(anchor, Receipt) else None
            head = parse_checkpoint(receipt.checkpoint) if receipt else _checkpoint(anchor)
        except NoteInvalid as error:
            self.findings.append(Finding("anchor", place, str(error)))
            return
        signed = head.signed(self._keys)
        if head.origin != self._log or signed is None:
            self.findings.append(
                Finding("anchor", place, f"signed by no known key of log `{self._log}`")
            )
        certificate = None if signed is None else signed.certificate
        self.all.append(Head(head.size, head.root, place, True, certificate))
        if receipt:
            self.receipts.append(receipt)
            if not 0 <= receipt.index < head.size:
                self.findings.append(Finding("anchor", place, "the receipt is not below its head"))

    def roster(self, numbered: Sequence[tuple[int, RosterLine]]) -> None:
        """Starts and stops of this log."""
        for number, line in numbered:
            if line.signed:
                place = Place("roster.jsonl", "", number, -1)
                # A start comes before the `key` entry of its key; `lost` is another log's word.
                certificate = line.certificate if line.event == "stop" else None
                self.all.append(Head(line.size, line.root, place, False, certificate))

    def published(
        self, folder: LogFolder, held: frozenset[str], numbered: Sequence[tuple[int, RosterLine]]
    ) -> None:
        """`checkpoints.jsonl` and `checkpoint`. `held`: texts given as anchors."""
        # In this order, so that a log that is being written is read without a false alarm.
        present = folder.checkpoint.exists()
        latest = folder.checkpoint.read_text("utf-8", "replace") if present else ""
        history = list(self._history(folder))
        texts = ["", *(head.text for head in history)]  # before the first there was none
        place = Place(self._log, "", 0, -1)
        if latest not in texts[-2:]:
            detail = "`checkpoint` is not the newest that was published"
            self.findings.append(Finding("checkpoint", place, detail))
        elif history and latest != texts[-1]:
            stopped = [line.size for _, line in numbered if line.event == "stop"][-1:]
            if texts[-1] in held or stopped == [history[-1].size]:
                detail = "`checkpoint` is older than one that was published"
                self.findings.append(Finding("checkpoint", place, detail))
            else:
                self.notices.append("`checkpoint` is one publication behind: a crash between both")

    def _history(self, folder: LogFolder) -> Iterator[Checkpoint]:
        if not folder.checkpoints.exists():
            return
        raws, torn = complete_lines(folder.checkpoints.read_bytes())
        if torn:
            self.notices.append("`checkpoints.jsonl` has a torn tail")
        for number, raw in enumerate(raws, 1):
            place = Place(f"{self._log}/checkpoints.jsonl", "", number, -1)
            try:
                head = parse_checkpoint(orjson.loads(raw)["checkpoint"])
            except (ValueError, KeyError, TypeError, AttributeError, NoteInvalid) as error:
                self.findings.append(Finding("checkpoint", place, f"unreadable: {error}"))
                continue
            self.published_sizes.append(head.size)
            signed = head.signed(self._keys)
            if head.origin != self._log or signed is None:
                detail = f"signed by no known key of log `{self._log}`"
                self.findings.append(Finding("checkpoint", place, detail))
            else:
                self.all.append(Head(head.size, head.root, place, False, signed.certificate))
            yield head

    def leave_above(self, size: int) -> None:
        """Leave out what is stated of more lines than were sealed, and say so."""
        most = max((head.size for head in self.all), default=0)
        if most > size:
            self.notices.append(f"sealed up to {size}: {most - size} lines that heads cover aren't")
        self.all = [head for head in self.all if head.size <= size]
        self.receipts = [receipt for receipt in self.receipts if receipt.index < size]

    def split_views(self) -> Iterator[Finding]:
        """Two heads of one size with different roots."""
        by_size: dict[int, Head] = {}
        for head in self.all:
            first = by_size.setdefault(head.size, head)
            if first.root != head.root:
                detail = f"another root at size {head.size} than {first.source}"
                yield Finding("split_view", head.source, detail)


def published_size(folder: LogFolder) -> int:
    """How many lines the newest published checkpoint covers, going by what it says."""
    raws = complete_lines(folder.checkpoints.read_bytes())[0] if folder.checkpoints.exists() else []
    try:
        return parse_checkpoint(orjson.loads(raws[-1])["checkpoint"]).size if raws else 0
    except (ValueError, KeyError, TypeError, AttributeError, NoteInvalid):
        return 0


def certified(
    heads: Sequence[Head],
    times: Mapping[int, int],
    keys: Mapping[str, tuple[int, int]],
    absence: Absence,
) -> Iterator[Finding]:
    """Heads whose key had no right to sign them.

    Args:
        heads: those that fit the log.
        times: size → the newest time (µs) of the entries below it.
        keys: certificate → index and time (µs) of the `key` entry that holds it.
        absence: lines that are not here; such an entry may be among them.
    """
    for head in heads:
        held = head.certificate
        if held is None or head.size not in times:
            continue
        if times[head.size] >= held.ends * 1_000_000:
            detail = f"signed for {head.size} lines after the certificate of its key had ended"
            yield Finding("certificate", head.source, detail)
            continue
        if held.payload not in keys and absence.hides(held, head.size):
            continue
        index, entered = keys.get(held.payload, (head.size, 0))
        if index >= head.size:
            detail = f"signed for {head.size} lines by a key that the log doesn't know by then"
            yield Finding("certificate", head.source, detail)
        elif entered < held.begins * 1_000_000:
            detail = f"signed for {head.size} lines by a key that was certified for a later day"
            yield Finding("certificate", head.source, detail)


def _checkpoint(anchor: Anchor) -> Checkpoint:
    if isinstance(anchor, Receipt):
        raise NoteInvalid("a receipt is not a checkpoint")
    return anchor
