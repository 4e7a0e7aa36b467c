"""Every report of the data plane that is restated has its tests, and no test names another."""

from __future__ import annotations

import re

from regions.document import parse_as
from tests.cases.test_reports import HERE, Reports

OWED = {
    "failover": (
        "02", "03", "05", "06", "10", "13", "15", "16", "17", "20", "22", "24", "26", "27",
    ),
    "limits": ("01", "02", "03", "04", "06", "07", "08"),
    "observability": ("03", "04", "05", "06", "07", "08"),
    "retries": ("01", "02", "03", "04", "05"),
    "timeouts": ("02", "03", "04"),
    "balancing": ("04", "05", "06", "07"),
    "probes": ("01", "02", "03", "04"),
    "disconnect": ("05",),
}  # fmt: skip
"""Those of configuration are in `reports.yaml`."""


def restated() -> list[str]:
    path = HERE / "reports-d.yaml"
    return [one.id for one in parse_as(path.read_bytes(), path.name, Reports)[1].reports]


def test_every_report_is_restated_once() -> None:
    owed = [f"{area}-{number}" for area, numbers in OWED.items() for number in numbers]
    assert sorted(restated()) == sorted(owed)


def test_every_report_has_tests_that_name_it() -> None:
    named = {
        f"{area}-{number}"
        for file in HERE.glob("test_reports_d_*.py")
        for area, number in re.findall(r"def test_([a-z]+)_(\d\d)_", file.read_text())
    }
    assert sorted(restated()) == sorted(named)
