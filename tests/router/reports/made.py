"""Reports of small logs, made as the command makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from router.reports.document import Report
from router.reports.gathering import Scope
from router.reports.making import Asked, make
from router.reports.period import between, zone
from tests.router.audit.logbox import START, LogBox
from tests.router.reports.logs import Did, Scribbler, opened

DAY = between(round(START * 1e6), round((START + 86_400) * 1e6), zone("UTC"))
NASTY = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'; drop table--",
    "{{ 7 * 7 }}{% raw %}",
    '#panic("evaluated") #read("/etc/passwd")',
    "$ x^2 $ *bold* _it_ @ref <label> \\ [content]",
    "]]></svg><script>alert(2)</script>",
    "عيادة الأسنان",
    "牙科诊所",
    "a\u202egnp.exe",
    "x" * 500,
)  # fmt: skip


async def filled(box: LogBox, done: Iterable[Did], log_id: str = "eu-1") -> Scribbler:
    """A log of these requests, still open."""
    made = await opened(box, log_id)
    await made.all(done)
    await made.log.tick()
    return made


def report(box: LogBox, least: int | None = 1, tenant: str | None = None, **more: object) -> Report:
    """Its report for the day."""
    asked = Asked(Scope(DAY, tenant), least, START + 86_400, **more)  # type: ignore[arg-type]
    return make(box.folder, asked)


def rows(found: Report, section: str, table: int = 0) -> Sequence[Mapping[str, object]]:
    """The rows of a table, by column."""
    [part] = [one for one in found.sections if one.id == section]
    chosen = part.tables[table]
    return [dict(zip(chosen.columns, line.cells, strict=True)) for line in chosen.lines]


def facts(found: Report) -> dict[str, object]:
    """What stands on top."""
    return dict(found.facts)


def keep(box: LogBox, to: Path, log_id: str = "eu-1") -> Path:
    """The newest published checkpoint, kept elsewhere."""
    to.write_bytes((box.folder / log_id / "checkpoint").read_bytes())
    return to
