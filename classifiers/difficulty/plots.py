"""Figures of a measurement as SVG text: call-performance curve, calibration, drift of scores.

Plain SVG from a few numbers needs no library, opens in every browser and can be compared as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.difficulty import curves, drift
from classifiers.difficulty.bootstrap import Resampled, drawing

Vector = NDArray[np.float64]
Point = tuple[float, float]
Interval = tuple[float, float, float]
_COLOURS: Final = ("#1b6ca8", "#c8553d", "#4a7c59", "#7d5ba6", "#b08900", "#5c5c5c")
_WIDTH: Final = 640
_HEIGHT: Final = 420
_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 40, 16, 52
_POINTS: Final = 200
_OPEN: Final = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
    'font-family="sans-serif" font-size="12">'
)
_TURNED: Final = 'transform="rotate(-90)" text-anchor="end"'
_TICKS: Final = 5
_BANDS: Final = 2
_BAND: Final = "; band: 95 % of bootstrap draws"
_DRAWS: Final = 300
_Z: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; `dashed` for a reference, `dots` to show its points.

    `band`: (x, low, high) of an area around the line; `bars`: the same as upright bars.
    """

    name: str
    points: Sequence[Point]
    dashed: bool = False
    dots: bool = False
    band: Sequence[Interval] = ()
    bars: Sequence[Interval] = ()

    @property
    def corners(self) -> list[Point]:
        """All points that must be on the page."""
        spans = [(x, y) for x, *ends in (*self.band, *self.bars) for y in ends]
        return [*self.points, *spans]


def call_performance(
    routers: Mapping[str, tuple[Vector, Vector]], groups: Sequence[str] = ()
) -> str:
    """Recovered quality by share of strong calls; `routers` are (scores, gains) by name.

    One router, or two that are compared, have a band: 95 % of bootstrap draws at each share, of
    whole `groups`, which are those of the rows of each.
    """
    lines = [Line("random", ((0.0, 0.0), (1.0, 1.0)), dashed=True)]
    for name, (scores, gain) in routers.items():
        share, recovered = curves.curve(scores, gain)
        at = np.linspace(0.0, 1.0, _POINTS)
        points = zip(at.tolist(), np.interp(at, share, recovered).tolist(), strict=True)
        band = _band(scores, gain, at, groups) if len(routers) <= _BANDS else ()
        label = f"{name}: APGR {curves.apgr(scores, gain):.3f}"
        lines.append(Line(label, tuple(points), band=band))
    return chart(
        "Call-performance curve" + (_BAND if len(routers) <= _BANDS else ""),
        ("share of calls sent to strong", "recovered quality"), lines,
    )  # fmt: skip


def _band(
    scores: Vector, gain: Vector, at: Vector, groups: Sequence[str]
) -> tuple[tuple[float, float, float], ...]:
    rng, resampled, drawn = np.random.default_rng(0), Resampled(scores, gain), []
    draw = drawing(len(gain), groups)
    for _ in range(_DRAWS):
        found = resampled.curve(draw(rng))
        if found is not None:
            drawn.append(np.interp(at, found.share, found.recovered))
    if not drawn:
        return ()
    low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
    return tuple(zip(at.tolist(), low.tolist(), high.tolist(), strict=True))


def calibration(probability: Vector, better: Vector, note: str = "", name: str = "") -> str:
    """Predicted against observed frequency that strong is better, in bins of equal mass.

    A bar is the 95 % interval of a bin's frequency (Wilson 1927).
    """
    line = calibrated_bins(probability, better, f"{name}{len(probability)} rows{note}")
    return calibrations([line])


def calibrations(lines: Sequence[Line]) -> str:
    """A chart of such bins, one line or several."""
    perfect = Line("perfect", ((0.0, 0.0), (1.0, 1.0)), dashed=True)
    axes = ("P(strong better), predicted", "observed frequency")
    return chart("Calibration; bars: 95 % intervals", axes, [perfect, *lines])


def calibrated_bins(probability: Vector, better: Vector, name: str) -> Line:
    """The bins of a calibration chart, with their bars."""
    parts = np.array_split(np.argsort(probability, kind="stable"), curves.BINS)
    bins = [(probability[p].mean(), better[p].mean(), len(p)) for p in parts if len(p)]
    points = [(float(x), float(y)) for x, y, _ in bins]
    return Line(name, points, dots=True, bars=[(float(x), *_wilson(y, n)) for x, y, n in bins])


def _wilson(share: float, n: int) -> Point:
    middle, spread = (
        share + _Z * _Z / (2 * n),
        _Z * sqrt(share * (1 - share) / n + (_Z / n / 2) ** 2),
    )
    return (
        float((middle - spread) / (1 + _Z * _Z / n)),
        float((middle + spread) / (1 + _Z * _Z / n)),
    )


def score_drift(reference: Sequence[float], values: Sequence[float]) -> str:
    """Distribution of scores in training (`reference`) and now, with PSI and KS and their limits.

    A limit is what the number exceeds once in a hundred times when nothing changed.
    """
    lines = [
        Line("training", _distribution(reference), dashed=True),
        Line(f"now, {len(values)} rows", _distribution(values)),
    ]
    found = drift.compare(reference, values)
    title = (
        f"Drift of scores: PSI {found.psi:.3f} (limit {found.psi_limit:.3f}), "
        f"KS {found.ks:.3f} (limit {found.ks_limit:.3f})"
    )
    return chart(title, ("score", "share of rows below"), lines)


def _distribution(values: Sequence[float]) -> tuple[Point, ...]:
    at = np.linspace(0.0, 1.0, _POINTS)
    found = np.quantile(np.asarray(values, float), at)
    return tuple(zip(found.tolist(), at.tolist(), strict=True))


def chart(title: str, axes: tuple[str, str], lines: Sequence[Line]) -> str:
    """A chart of lines; both axes span at least what the lines do."""
    xs = [x for line in lines for x, _ in line.corners] or [0.0]
    ys = [y for line in lines for _, y in line.corners] or [0.0]
    frame = _Frame(_span(xs), _span(ys))
    drawn = [
        _OPEN,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(title)}</text>',
        *frame.axes(*axes),
    ]
    for number, line in enumerate(lines):
        drawn += frame.line(line, _COLOURS[(number - 1) % len(_COLOURS)], number)
    return "\n".join([*drawn, "</svg>", ""])


def _span(values: Sequence[float]) -> Point:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The area between the axes: values to places on the page."""

    across: Point
    up: Point

    def at(self, point: Point) -> Point:
        x = (point[0] - self.across[0]) / (self.across[1] - self.across[0])
        y = (point[1] - self.up[0]) / (self.up[1] - self.up[0])
        return (
            round(_LEFT + x * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    def axes(self, across: str, up: str) -> list[str]:
        floor, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        drawn = [
            f'<path d="M{_LEFT} {_TOP}V{floor}H{right}" fill="none" stroke="#333"/>',
            f'<text x="{right}" y="{_HEIGHT - 14}" text-anchor="end">{escape(across)}</text>',
            f'<text x="{-_TOP}" y="16" {_TURNED}>{escape(up)}</text>',
        ]
        for step in range(_TICKS + 1):
            x = self.across[0] + (self.across[1] - self.across[0]) * step / _TICKS
            y = self.up[0] + (self.up[1] - self.up[0]) * step / _TICKS
            place = self.at((x, y))
            drawn += [
                f'<text x="{place[0]}" y="{floor + 16}" text-anchor="middle">{x:.2f}</text>',
                f'<text x="{_LEFT - 6}" y="{place[1] + 4}" text-anchor="end">{y:.2f}</text>',
            ]
        return drawn

    def line(self, line: Line, colour: str, number: int) -> list[str]:
        colour = "#999" if line.dashed else colour
        places = [self.at(point) for point in line.points]
        path = " ".join(f"{x},{y}" for x, y in places)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        below = _TOP + 14 + 16 * number
        drawn = [
            *self._spans(line, colour),
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>',
            f'<text x="{_LEFT + 12}" y="{below}" fill="{colour}">{escape(line.name)}</text>',
        ]
        if line.dots:
            drawn += [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in places]
        return drawn

    def _spans(self, line: Line, colour: str) -> list[str]:
        """The band below a line, and its bars."""
        drawn = []
        if line.band:
            edge = [(x, low) for x, low, _ in line.band]
            edge += [(x, high) for x, _, high in reversed(line.band)]
            path = " ".join(f"{x},{y}" for x, y in map(self.at, edge))
            drawn.append(f'<polygon points="{path}" fill="{colour}" fill-opacity="0.15"/>')
        for x, low, high in line.bars:
            (left, bottom), (_, top) = self.at((x, low)), self.at((x, high))
            drawn.append(
                f'<path d="M{left} {bottom}V{top}" stroke="{colour}" stroke-opacity="0.5"/>'
            )
        return drawn
