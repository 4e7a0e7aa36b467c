"""Figures of rows that say when they were asked, as those of the outcome store do.

Rows in the order of time are cut into windows of equal numbers: what changed, and what the small
tier lost, from window to window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.difficulty import drift
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import STRUCTURE
from classifiers.difficulty.plots import Line, Vector, chart

Rows = NDArray[np.int64]
LEAST: Final = 50
"""Rows of a window; fewer say nothing."""
_WINDOWS: Final = 20
_DAY: Final = 86_400.0
_STEM: Final = STRUCTURE.index("stem")
_Z: Final = 1.959964


def figures(rows: Sequence[Example], rank: Vector, reference: Sequence[float]) -> dict[str, str]:
    """SVG texts `drift_over_time` and `quality_over_time`; none for fewer than two windows.

    `rank`: scores of the rows; `reference`: scores in training, empty if they are not known.
    """
    times = np.array([row.at for row in rows if row.at is not None])
    if len(times) < len(rows) or len(rows) < 2 * LEAST:
        return {}
    order = np.argsort(times, kind="stable")
    windows: list[Rows] = np.array_split(order, min(_WINDOWS, len(rows) // LEAST))
    middle = [float((times[one].mean() - times.min()) / _DAY) for one in windows]
    lengths = np.array([row.features.structure[_STEM] for row in rows])
    series = {"scores": (reference, rank), "length of the question": ((), lengths)}
    lost = np.array([row.y_strong - row.y_weak for row in rows])
    return {
        "drift_over_time": _drift(series, windows, middle),
        "quality_over_time": _quality(lost, windows, middle),
    }


def _drift(
    series: Mapping[str, tuple[Sequence[float], Vector]],
    windows: Sequence[Rows],
    middle: Sequence[float],
) -> str:
    """PSI of each window, as a share of what it exceeds once in a hundred times by chance."""
    lines = [Line("limit (1 %)", ((middle[0], 1.0), (middle[-1], 1.0)), dashed=True)]
    for name, (reference, values) in series.items():
        first, rest = (reference, 0) if len(reference) else (values[windows[0]].tolist(), 1)
        found = [drift.compare(first, values[one].tolist(), name) for one in windows[rest:]]
        points = [(x, one.psi / one.psi_limit) for x, one in zip(middle[rest:], found, strict=True)]
        since = "the first window" if rest else "training"
        lines.append(Line(f"{name}, against {since}", points, dots=True))
    title = f"Drift over time, {len(windows)} windows of about {len(windows[0])} rows"
    return chart(title, ("days since the first row", "PSI / its limit"), lines)


def _quality(lost: Vector, windows: Sequence[Rows], middle: Sequence[float]) -> str:
    means = [float(lost[one].mean()) for one in windows]
    widths = [float(_Z * lost[one].std(ddof=1) / np.sqrt(len(one))) for one in windows]
    found = list(zip(middle, means, widths, strict=True))
    lines = [
        Line("no loss", ((middle[0], 0.0), (middle[-1], 0.0)), dashed=True),
        Line("mean loss of the small tier", [(x, y) for x, y, _ in found], dots=True,
             band=[(x, y - width, y + width) for x, y, width in found]),
    ]  # fmt: skip
    return chart(
        "Quality over time; band: 95 % interval",
        ("days since the first row", "quality of strong minus weak"), lines,
    )  # fmt: skip
