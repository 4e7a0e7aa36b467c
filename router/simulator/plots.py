"""Runs as one page of plots: a line for each strategy over the size of the fleet.

matplotlib is imported here, when a plot is asked for (`pip install domicile[reports]`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from router.simulator.tally import Result

PANELS: Final = (
    ("ttft_p50", "time to first token, p50 (s)"),
    ("ttft_p99", "time to first token, p99 (s)"),
    ("itl_p99", "between two tokens, p99 (s)"),
    ("hit_rate", "prompt tokens from caches (share)"),
    ("utilisation", "engines at work (share)"),
    ("goodput", "answers in time (1/s)"),
)


class NoPlots(Exception):
    """A plot can't be made; says what to install or where to write."""


def plot(results: Sequence[Result], file: Path) -> None:
    """Write the plots of some runs, as SVG, PNG or PDF by the file's name.

    Raises:
        NoPlots: matplotlib isn't installed, or the file can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        message = "plots need matplotlib: pip install 'domicile[reports]'"
        raise NoPlots(message) from None
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    panels = figure.subplots(2, 3).flat
    names = list(dict.fromkeys(one.strategy for one in results))
    for panel, (field, title) in zip(panels, PANELS, strict=True):
        for name in names:
            mine = sorted((one for one in results if one.strategy == name), key=_size)
            values = [getattr(one, field) for one in mine]
            panel.plot([_size(one) for one in mine], values, marker="o", label=name)
        panel.set_title(title, fontsize=10)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    figure.supxlabel("replicas")
    figure.legend(names, loc="outside upper center", ncols=max(1, len(names)))
    try:
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise NoPlots(f"`{file}` can't be written: {error}") from None


def _size(one: Result) -> int:
    return one.replicas
