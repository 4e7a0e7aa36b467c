"""The result of `audit reconcile`, as a section of a report. Read, never trusted as our own."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from router.audit.errors import AuditError
from router.reports.document import Line, Section, Table
from router.reports.period import Period
from router.reports.told import readable
from router.settings import bounded

MOST: Final = 200


class ReconcileRefused(AuditError):
    """A file that is no result of `audit reconcile`; the message says why."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class FindingView(_Part):
    """One finding: what, at which provider, about which record of ours, where."""

    kind: str
    provider: str
    record: str = ""
    place: str = ""
    endpoint: str = ""
    detail: str = ""


class CoverageView(_Part):
    """How much of what was sent to a provider its own records show."""

    provider: str
    source: str = ""
    attempts: int = 0
    by_id: int = 0
    by_time: int = 0
    missing: int = 0
    not_observable: int = 0
    place_told: int = 0


class PeriodView(_Part):
    """What was reconciled, microseconds since 1970."""

    since: int
    until: int


class Reconciled(_Part):
    """The file, as far as a report needs it. `kinds` counts all findings, also those not listed."""

    format: Literal["domicile-reconcile/1"]
    findings: tuple[FindingView, ...] = ()
    coverage: tuple[CoverageView, ...] = ()
    period: PeriodView | None = None
    kinds: dict[str, int] = {}
    whole: bool = True


def read_reconciled(path: Path) -> Reconciled:
    """The result in a file. Raises ReconcileRefused."""
    try:
        return Reconciled.model_validate_json(bounded.read(path, bounded.LARGE))
    except OSError as error:
        raise ReconcileRefused(f"can't read `{path}`: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ReconcileRefused(
            f"`{path}` is no result of `audit reconcile --json`: {where}: {first['msg']}"
        ) from None


def section(found: Reconciled, period: Period, file: str) -> Section:
    """What the providers' own records say."""
    told = [(f"As `{readable(file)}` says, which `domicile audit reconcile` made from the "
            "providers' records; this report did not check those again.")]  # fmt: skip
    if found.period is None or (found.period.since, found.period.until) != (
        period.since, period.until,
    ):  # fmt: skip
        told.append("It is about another period than this report, or does not name one.")
    if not found.whole:
        told.append("The records given are not proven complete: a call may be missing in them.")
    count = max(sum(found.kinds.values()), len(found.findings))
    if count > min(MOST, len(found.findings)):
        told.append(f"The first {min(MOST, len(found.findings))} of {count:,} findings.")
    coverage = [
        Line((readable(one.provider), readable(one.source), one.attempts, one.by_id, one.by_time,
              one.missing, one.not_observable, one.place_told))
        for one in found.coverage
    ]  # fmt: skip
    findings = [
        Line(tuple(map(readable, (one.kind, one.provider, one.record, one.place, one.endpoint,
                                  one.detail))))
        for one in found.findings[:MOST]
    ]  # fmt: skip
    tables = (
        Table("Coverage", _COVERAGE, coverage, "No provider was compared."),
        Table("Findings", _FINDINGS, findings, "No finding."),
    )
    return Section("reconciled", "What the providers' own records say", told, tables=tables)


_COVERAGE: Final = (
    "provider", "records", "attempts", "by id", "by time", "missing", "not observable",
    "place told",
)  # fmt: skip
_FINDINGS: Final = ("kind", "provider", "record", "place", "endpoint", "detail")
