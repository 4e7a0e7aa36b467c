"""Plots are written where asked, and what is in the way is told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from router.simulator.plots import PANELS, PER_CLASS, NoPlots, plot
from router.simulator.tally import Result, Tally, result


def some() -> list[Result]:
    return [result(name, "one", Tally(2.0), [], 10.0) for name in ("ours", "random")]


def test_a_plot_has_every_panel_and_strategy(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the `reports` extra isn't installed")
    for name in ("a.svg", "a.png"):
        plot(some(), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.startswith("<?xml")
    for word in ("ours", "random", *(title for _, title in PANELS)):
        assert f"<!-- {word} -->" in drawn


def test_classes_and_layouts_have_lines_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the `reports` extra isn't installed")
    strand = {"ttft_p99": 1.0, "itl_p99": 0.1, "shed": 1, "requests": 4}
    runs = [
        replace(one, replicas=4, layout=layout, classes={"interactive": strand, "batch": strand})
        for one, layout in zip(some(), ("one", "split=1:1"), strict=True)
    ]
    plot(runs, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    for _, title in PER_CLASS:
        for kind in ("interactive", "batch"):
            assert f"<!-- {title.format(kind)} -->" in drawn
    assert "<!-- random, split=1:1 -->" in drawn


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NoPlots, match="reports"):
        plot(some(), tmp_path / "a.svg")


def test_a_file_that_can_t_be_written_is_told(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the `reports` extra isn't installed")
    for file in (tmp_path / "none" / "a.svg", tmp_path / "a.odd"):
        with pytest.raises(NoPlots, match="can't be written"):
            plot(some(), file)
