"""A report as PDF, set by typst (the optional extra `reports`), offline.

The layout (`report.typ`) is fixed; texts reach it as JSON values, which typst never reads as
markup. Nothing but that file and the pictures is in the folder it may read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import orjson

from router.audit.errors import AuditError
from router.reports.document import Picture, Report, Section, Table
from router.reports.glyphs import NOTE, lacking, named


class PdfUnavailable(AuditError):
    """There is no typst here, or it could not set the report; the message says what to do."""


def pdf(report: Report) -> bytes:
    """The document. Raises PdfUnavailable."""
    typst = _typst()
    values, pictures = _drawable(report, typst)
    with tempfile.TemporaryDirectory(prefix="domicile-report-") as name:
        folder = Path(name)
        source = folder / "report.typ"
        source.write_bytes(files("router.reports").joinpath("report.typ").read_bytes())
        (folder / "report.json").write_bytes(values)
        for file, svg in pictures:
            (folder / file).write_text(svg, "utf-8")
        try:
            made = typst.compile(str(source), root=str(folder))
        except (RuntimeError, ValueError) as error:
            raise PdfUnavailable(f"the PDF could not be set: {error}") from None
    if not isinstance(made, bytes):
        raise PdfUnavailable("typst gave no single document; use the version Domicile names")
    return made


def _drawable(report: Report, typst: ModuleType) -> tuple[bytes, list[tuple[str, str]]]:
    """The report's values as JSON and its pictures, with what no font here can draw named."""
    said = _values(report)
    values = orjson.dumps(said).decode()
    shown = [picture for section in report.sections for picture in section.pictures]
    fonts = (font.path for font in typst.Fonts().fonts() if font.path)
    instead = named(lacking("".join([values, *(one.svg for one in shown)]), fonts))
    if instead:
        facts = [(name, report.shown(value)) for name, value in (*report.facts, ("fonts", NOTE))]
        values = orjson.dumps({**said, "facts": facts}).decode().translate(instead)
    return values.encode(), [(_file(one), one.svg.translate(instead)) for one in shown]


def _values(report: Report) -> dict[str, object]:
    return {
        "title": report.title,
        "about": report.subtitle,
        "alarm": report.alarm,
        "facts": [[name, report.shown(value)] for name, value in report.facts],
        "sections": [_section(report, one) for one in report.sections],
        "evidence": [
            [one.id, one.what, ", ".join(record for record, _ in one.records), one.command]
            for one in report.evidence
        ],
    }


def _section(report: Report, one: Section) -> dict[str, object]:
    return {
        "title": one.title,
        "paragraphs": one.paragraphs,
        "bullets": one.bullets,
        "pictures": [
            {"file": _file(p), "caption": p.caption, "share": p.share} for p in one.pictures
        ],
        "tables": [_table(report, table) for table in one.tables],
    }


def _table(report: Report, table: Table) -> dict[str, object]:
    rows = [[report.shown(cell) for cell in line.cells] for line in table.lines]
    columns = list(table.columns)
    numbers = [bool(rows) and not isinstance(c, str) for c in _first(table)]
    if table.linked:
        columns.append("evidence")
        numbers.append(False)
        rows = [[*row, line.evidence] for row, line in zip(rows, table.lines, strict=True)]
    return {
        "title": table.title,
        "columns": columns,
        "rows": rows,
        "empty": table.empty,
        "numbers": numbers,
        "widths": _widths(columns, rows),
    }


def _first(table: Table) -> Sequence[object]:
    return table.lines[0].cells if table.lines else ()


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[float]:
    """Shares of the page by how long the texts are, within bounds that keep all readable."""
    widths = []
    for number, column in enumerate(columns):
        longest = max((len(row[number]) for row in rows), default=0)
        widths.append(float(min(max(longest, len(column), 6), 40)))
    return widths


def _file(picture: Picture) -> str:
    return f"{picture.name}.svg"


def _typst() -> ModuleType:
    try:
        return import_module("typst")
    except ImportError:
        raise PdfUnavailable(
            "`typst` is not installed: install Domicile with its extra `reports`, as "
            "pip install 'domicile[reports]'; HTML and JSON need nothing more"
        ) from None
