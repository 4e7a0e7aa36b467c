"""Tables hold what tells runs apart, and no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from router.cli import simulated_tables
from router.cli.simulated_tables import tables
from router.simulator.tally import Result, Tally, result

ONE = result("ours", "one", Tally(2.0), [], 10.0)
STRAND = {
    "requests": 9, "shed": 1, "good": 0.5, "ttft_p50": 0.123456, "ttft_p99": 1.0, "itl_p50": 0.0,
    "itl_p99": 0.0, "waited_p99": 0.0, "tokens": 1.0,
}  # fmt: skip


def shown(capsys: pytest.CaptureFixture[str], *results: Result) -> str:
    tables(results, [None] * len(results))
    return capsys.readouterr().out


def test_one_run_has_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, ONE)
    assert "ours" in out
    for word in ("layout", "by class", "by tenant", "by part", "caches", "lost"):
        assert word not in out


def test_what_differs_has_a_column_and_what_there_is_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    split = replace(
        ONE, layout="split=1:1", moved=5, transfer_p50=0.25, lost=2, classes={"batch": STRAND},
        parts={"prefill": {"replicas": 1, "jobs": 7, "utilisation": 0.5}},
    )  # fmt: skip
    out = shown(capsys, ONE, split)
    for word in ("layout", "lost", "by class", "batch", "0.123 ", "by part", "prefill"):
        assert word in out
    assert "caches moved, ours, split=1:1, 0 replicas: 5, in 0.25 s (p50)" in out
    assert "strategy" not in out  # they are alike in it


def test_every_column_is_explained_where_the_help_leads() -> None:
    page = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text()
    columns = page.partition("## Columns")[2].partition("\n## ")[0]
    every = [getattr(simulated_tables, name) for name in ("RUN", "ALL", "STRAND", "PART")]
    titles = [title.split()[0] for table in every for title in table.values()]
    assert len(titles) > 20
    assert [title for title in titles if f"`{title}`" not in columns] == []
