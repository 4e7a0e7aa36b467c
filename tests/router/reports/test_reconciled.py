"""What `audit reconcile` wrote, read with care."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.reconcile.model import Coverage, Finding, Kind, Result, Source
from router.reports.period import between, zone
from router.reports.reconciled import MOST, Reconciled, ReconcileRefused, read_reconciled, section

DAY = between(0, 86_400_000_000, zone("UTC"))
FINDING = {"kind": "bypass", "provider": "aws", "via": "cloudtrail", "place": "aws:us-east-1"}
COVERAGE = {"provider": "aws", "source": "cloudtrail", "attempts": 9, "by_id": 7, "missing": 2}


def written(path: Path, **more: object) -> Path:
    whole = {"format": "domicile-reconcile/1", "period": {"since": 0, "until": 86_400_000_000},
             "findings": [FINDING], "coverage": [COVERAGE]}  # fmt: skip
    path.write_text(json.dumps(whole | more))
    return path


def test_findings_and_coverage_become_a_section(tmp_path: Path) -> None:
    found = read_reconciled(written(tmp_path / "r.json"))
    made = section(found, DAY, "r.json")
    assert made.tables[0].lines[0].cells == ("aws", "cloudtrail", 9, 7, 0, 2, 0, 0)
    assert made.tables[1].lines[0].cells[:4] == ("bypass", "aws", "", "aws:us-east-1")
    assert len(made.paragraphs) == 1


def test_another_period_and_many_findings_are_said(tmp_path: Path) -> None:
    found = read_reconciled(written(tmp_path / "r.json", findings=[FINDING] * (MOST + 1)))
    made = section(found, between(1, 2, zone("UTC")), "<r>.json")
    assert len(made.tables[1].lines) == MOST
    assert "another period" in made.paragraphs[1]
    assert str(MOST + 1) in made.paragraphs[2]
    assert (
        "another period"
        in section(Reconciled(format="domicile-reconcile/1"), DAY, "").paragraphs[1]
    )


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other/1"}', '{"findings": [{}]}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ReconcileRefused, match="no result of"):
        read_reconciled(tmp_path / "r.json")
    with pytest.raises(ReconcileRefused, match="can't read"):
        read_reconciled(tmp_path / "gone.json")


def test_it_takes_what_the_command_writes(tmp_path: Path) -> None:
    finding = Finding(
        Kind.OUTSIDE, Source.CLOUDTRAIL, "ran there", "eu-1/3", "sonnet", "aws:us-east-1"
    )
    coverage = Coverage("aws", "cloudtrail", attempts=3, by_id=2, missing=1, place_told=2)
    counted = {"outside": 1, "missing": 7}
    result = Result(0, DAY.until, 5, [coverage], [finding], [], {}, {}, counted, whole=False)
    (tmp_path / "r.json").write_text(json.dumps(result.to_json()))
    made = section(read_reconciled(tmp_path / "r.json"), DAY, "r.json")
    assert "not proven complete" in made.paragraphs[1]
    assert made.paragraphs[2] == "The first 1 of 8 findings."
    assert made.tables[0].lines[0].cells == ("aws", "cloudtrail", 3, 2, 0, 1, 0, 2)
    assert made.tables[1].lines[0].cells == (
        "outside", "aws", "eu-1/3", "aws:us-east-1", "sonnet", "ran there",
    )  # fmt: skip
