"""Every report that is restated has its tests, and every test of a report is restated."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from regions.document import parse_as

HERE = Path(__file__).parent
OWED = {
    "residency": (
        "01", "03", "04", "06", "07", "08", "10", "11", "12", "14", "15", "16", "19", "20",
    ),
    "config": ("02", "03", "04", "05"),
    "bedrock": ("02", "03", "04", "06"),
    "streaming": ("01", "02", "06", "08", "09", "12", "14", "15"),
    "disconnect": ("02", "04"),
    "errors": ("01", "04", "05", "06"),
    "difficulty": ("01", "02", "03", "04"),
    "security": ("03", "06", "09"),
}  # fmt: skip


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    kind: str
    scenario: str
    expectation: str


class Reports(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reports: list[Report]


def restated() -> list[str]:
    path = HERE / "reports.yaml"
    return [one.id for one in parse_as(path.read_bytes(), path.name, Reports)[1].reports]


def test_every_report_is_restated_once() -> None:
    owed = [f"{area}-{number}" for area, numbers in OWED.items() for number in numbers]
    assert sorted(restated()) == sorted(owed)


def test_every_report_has_tests_that_name_it() -> None:
    named = set()
    for path in set(HERE.glob("test_reports_*.py")) - set(HERE.glob("test_reports_d_*.py")):
        for area, number in re.findall(r"def test_([a-z]+)_(\d\d)_", path.read_text()):
            named.add(f"{area}-{number}")
    assert named == set(restated())
