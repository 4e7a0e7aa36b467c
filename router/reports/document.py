"""A report as its renderers take it: sections of paragraphs, tables, pictures. Nothing but text.

HTML, PDF and JSON are made from the same object, so they say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | int | None
Cells: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table; `None` in a cell is a number too small to tell. `evidence` is the id of
    what stands behind it, empty without."""

    cells: Cells
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows; `empty` is said when there are none."""

    title: str
    columns: tuple[str, ...]
    lines: Sequence[Line]
    empty: str = "None in this period."

    @property
    def linked(self) -> bool:
        """Whether some row names what stands behind it."""
        return any(line.evidence for line in self.lines)


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG image of our own making, and what it shows in words; `share` of a page's width."""

    name: str
    svg: str
    caption: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it, in this order."""

    id: str
    title: str
    paragraphs: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    bullets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stands behind a figure: some of its records, and the command that lists all.

    `records` are pairs of record and request id, which is empty where it may not be told.
    """

    id: str
    what: str
    records: Sequence[tuple[str, str]]
    command: str


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report. `alarm` is empty unless the log does not verify; it stands on top of all.

    `least` is the smallest number told, 1 when all are.
    """

    title: str
    subtitle: str
    alarm: str
    facts: Sequence[tuple[str, Cell]]
    sections: Sequence[Section]
    evidence: Sequence[Evidence]
    least: int

    def shown(self, cell: Cell) -> str:
        """A cell as people read it."""
        if cell is None:
            return f"fewer than {self.least}"
        return cell if isinstance(cell, str) else f"{cell:,}"

    def to_json(self) -> dict[str, object]:
        """The same for programs: numbers as numbers, `null` for one too small to tell."""
        return {
            "format": "domicile-report/1",
            "title": self.title,
            "about": self.subtitle,
            "alarm": self.alarm,
            "smallest_told": self.least,
            "facts": dict(self.facts),
            "sections": [_section(one) for one in self.sections],
            "evidence": {
                one.id: {
                    "what": one.what,
                    "records": [{"record": r, "request": q or None} for r, q in one.records],
                    "command": one.command,
                }
                for one in self.evidence
            },
        }


def _section(one: Section) -> dict[str, object]:
    return {
        "id": one.id,
        "title": one.title,
        "said": [*one.paragraphs, *one.bullets],
        "tables": [
            {
                "title": table.title,
                "rows": [
                    dict(zip(table.columns, line.cells, strict=True))
                    | ({"evidence": line.evidence} if line.evidence else {})
                    for line in table.lines
                ],
            }
            for table in one.tables
        ],
    }
