"""Runs as one page of plots: a line for each strategy and layout over the size of the fleet.

matplotlib is imported here, when a plot is asked for (`pip install domicile[reports]`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
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


_INSTALL: Final = "plots need matplotlib: pip install 'domicile[reports]'"
PER_CLASS: Final = (
    ("ttft_p99", "{}: time to first token, p99 (s)"),
    ("itl_p99", "{}: between two tokens, p99 (s)"),
    ("shed", "{}: told to come again (share)"),
)
KINDS: Final = frozenset({".svg", ".png", ".pdf"})
_COLUMNS: Final = 3


class NoPlots(Exception):
    """A plot can't be made; says what to install or where to write."""


def writable(file: Path) -> None:
    """See that a plot could be written.

    Raises:
        NoPlots: matplotlib isn't installed, the name says no known kind, or its folder isn't there.
    """
    if find_spec("matplotlib") is None:
        raise NoPlots(_INSTALL)
    if file.suffix not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise NoPlots(f"`{file}` can't be written: its name must end in one of {known}")
    if not file.parent.is_dir():
        raise NoPlots(f"`{file}` can't be written: there is no folder `{file.parent}`")
    if file.is_dir():
        raise NoPlots(f"`{file}` can't be written: it is a folder")


def plot(results: Sequence[Result], file: Path) -> None:
    """Write the plots of some runs, as SVG, PNG or PDF by the file's name.

    A line for each strategy and layout over the size of the fleet; a column for each class.

    Raises:
        NoPlots: matplotlib isn't installed, or the file can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlots(_INSTALL) from None
    writable(file)
    panels = list(_panels(results))
    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(12, 3.25 * rows), layout="constrained")
    names = list(dict.fromkeys(map(_line, results)))
    for axes, panel in zip(figure.subplots(rows, _COLUMNS).flat, panels, strict=True):
        if panel is None:
            axes.set_axis_off()
            continue
        title, values = panel
        for name in names:
            mine = sorted(
                (_size(one), value)
                for one, value in zip(results, values, strict=True)
                if _line(one) == name and value is not None
            )
            axes.plot([at for at, _ in mine], [v for _, v in mine], marker="o", label=name)
        axes.set_title(title, fontsize=10)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.supxlabel("replicas")
    figure.legend(names, loc="outside upper center", ncols=max(1, min(6, len(names))))
    try:
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise NoPlots(f"`{file}` can't be written: {error}") from None


Panel = tuple[str, list[float | None]]
"""A title, and each run's value."""


def _panels(results: Sequence[Result]) -> Iterator[Panel | None]:
    """What is drawn, three in a row; `None` leaves a place empty."""
    for name, title in PANELS:
        yield title, [getattr(one, name) for one in results]
    classes = list(dict.fromkeys(name for one in results for name in one.classes))
    if not classes:
        return
    for name, title in PER_CLASS:
        for kind in classes:
            yield title.format(kind), [_of(one.classes.get(kind), name) for one in results]
        for _ in range(_COLUMNS - len(classes)):
            yield None


def _of(strand: Mapping[str, object] | None, name: str) -> float | None:
    """A class's value in one run; what is counted, as a share of its requests."""
    if strand is None or not isinstance(value := strand[name], (int, float)):
        return None
    asked = strand["requests"]
    return value / asked if name == "shed" and isinstance(asked, int) and asked else float(value)


def _line(one: Result) -> str:
    return one.strategy if one.layout == "one" else f"{one.strategy}, {one.layout}"


def _size(one: Result) -> int:
    return one.replicas
