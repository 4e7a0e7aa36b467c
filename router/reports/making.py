"""From a folder of logs to a report: verify, gather in the same pass, compose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from router.audit.commands import logs_in, read_anchor, read_receipts
from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.audit.note import PublicKey
from router.audit.receipt import Receipt
from router.audit.roster import RosterLine, read_roster
from router.audit.verdict import Anchor, Verdict
from router.audit.verify import verify
from router.reports.composing import compose
from router.reports.document import Report, Section
from router.reports.facts import Facts
from router.reports.gathering import Gathered, Gatherer, Scope
from router.reports.reconciled import read_reconciled, section
from router.reports.view import Made

LEAST: Final = 5


class NotWhole(AuditError):
    """The log does not verify, and no report of it was asked for all the same."""

    def __init__(self, verdict: Verdict) -> None:
        first = verdict.all_findings[0]
        super().__init__(
            f"the log does not verify: {len(verdict.all_findings)} findings, first {first}; see "
            "`domicile audit verify`, or use `--despite-findings` for a report that says so"
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is asked to be.

    `least` is the smallest group told (1: all; `None`: all of a tenant's own report that lies
    inside its boundary, else `LEAST`); `view_from` where the reader is, as a boundary, or `None`
    for whoever holds the log; `anchors` what a router says of its own; `despite` makes a report of
    a log that doesn't verify.
    """

    scope: Scope
    least: int | None
    made_at: float
    view_from: str | None = None
    against: tuple[Path, ...] = ()
    receipts: tuple[Path, ...] = ()
    keys: tuple[PublicKey, ...] = ()
    reconcile: Path | None = None
    anchors: tuple[str, ...] = ()
    despite: bool = False


def make(path: Path, asked: Asked, progress: Callable[[int], object] = lambda _: None) -> Report:
    """The report. `progress` is told the bytes of each segment that is read.

    Raises:
        UsageError: no log there, or an anchor that can't be read.
        NotWhole: the log has findings. PlaceError: `view_from` means nothing here.
    """
    folder = logs_in(path)
    anchors = [read_anchor(one) for one in asked.against]
    anchors += [anchor for one in asked.receipts for anchor in read_receipts(one)]
    roster, facts = _roster(folder), Facts(folder)
    scope = _placed(asked, facts, folder)
    gatherer = Gatherer(scope, facts, _sizes(anchors), progress)
    verdict = verify(path, against=anchors, public_keys=asked.keys, reader=gatherer)
    if not verdict.ok and not asked.despite:
        raise NotWhole(verdict)
    gathered = gatherer.end()
    own = scope.tenant is not None and not gathered.hidden
    least = asked.least or (1 if own else LEAST)
    extra = _extra(asked, scope)
    return compose(
        Made(
            str(path),
            scope,
            gathered,
            facts,
            verdict,
            roster,
            least,
            asked.made_at,
            extra,
            anchors=asked.anchors,
            stranger=_stranger(scope, gathered, facts),
        )
    )


def _stranger(scope: Scope, gathered: Gathered, facts: Facts) -> bool:
    """Whether nothing knows the tenant: neither a request of the period nor a snapshot stored."""
    if scope.tenant is None or gathered.groups:
        return False
    worlds = (facts.world(digest) for digest in gathered.snapshots)
    return not any(scope.tenant in one.policy.tenants for one in worlds if one is not None)


def _roster(folder: Folder) -> Sequence[RosterLine]:
    try:
        return read_roster(folder)[0]
    except AuditError:
        return []  # a finding of the verification


def _placed(asked: Asked, facts: Facts, folder: Folder) -> Scope:
    """The scope with the places where the reader is, by the newest snapshot that loads."""
    if asked.view_from is None:
        return asked.scope
    stored = (folder.path / "snapshots").glob("*.json")
    for one in sorted(stored, key=lambda file: file.stat().st_mtime, reverse=True):
        if facts.world(one.stem) is not None:
            break
        facts.missing.pop(one.stem, None)  # the catalog's own files lie there too
    sits = facts.sits(asked.view_from) if asked.view_from else frozenset[str]()
    return replace(asked.scope, sits=sits)


def _sizes(anchors: Sequence[Anchor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for anchor in anchors:
        log = anchor.log if isinstance(anchor, Receipt) else anchor.origin
        size = anchor.index + 1 if isinstance(anchor, Receipt) else anchor.size
        sizes[log] = max(size, sizes.get(log, 0))
    return sizes


def _extra(asked: Asked, scope: Scope) -> list[Section]:
    if asked.reconcile is None:
        return []
    return [section(read_reconciled(asked.reconcile), scope.period, asked.reconcile.name)]
