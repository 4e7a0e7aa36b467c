"""Every report of the data plane that is restated has its tests, and no test names another."""

from __future__ import annotations

import re

from regions.document import parse_as
from tests.cases.test_reports import HERE, Reports


def test_every_report_has_tests_that_name_it() -> None:
    path = HERE / "reports-d.yaml"
    restated = [one.id for one in parse_as(path.read_bytes(), path.name, Reports)[1].reports]
    named = {
        f"{area}-{number}"
        for file in HERE.glob("test_reports_d_*.py")
        for area, number in re.findall(r"def test_([a-z]+)_(\d\d)_", file.read_text())
    }
    assert sorted(restated) == sorted(named)
