"""Where requests were processed, on a map: points of the catalog over an outline of the land.

The outline is Natural Earth's (public domain), see `data/land.json`. A filled point is a place
where requests were processed for certain; a ring one where they may have been (the provider names
several and doesn't tell which), or where they are fewer than may be told. Points that would cover
each other are drawn as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import sqrt
from typing import Final

import orjson

from router.reports.facts import Spot
from router.reports.svg import AMBER, BLUE, INK, LAND, LINE, MUTED, picture, tag, text, titled

WIDTH: Final = 1000.0
_NEAR: Final = 20.0
_LEAST_SPAN: Final = 50.0
_LABEL: Final = 34


@dataclass(frozen=True, slots=True)
class Point:
    """A place: requests processed there for certain, and those that may have been."""

    spot: Spot
    sure: int
    possible: int
    hidden: bool = False

    @property
    def words(self) -> str:
        """What the legend says of it."""
        told = [f"{self.sure:,} requests" if self.sure else "",
                f"{self.possible:,} possibly" if self.possible else "",
                ("and more, " * (self.sure + self.possible > 0) + "too few to tell")
                if self.hidden else ""]  # fmt: skip
        name = f", {self.spot.name}" if self.spot.name else ""
        return f"{self.spot.id} ({self.spot.country}{name}): {', '.join(filter(None, told))}"


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the world shown, in degrees, and the scale; twice as wide as it is high."""

    west: float
    north: float
    scale: float
    height: float

    def at(self, lon: float, lat: float) -> tuple[float, float]:
        """Where a place lies in the picture."""
        return (lon - self.west) * self.scale, (self.north - lat) * self.scale


@dataclass(slots=True)
class _Mark:
    x: float
    y: float
    numbers: list[int]
    sure: int
    possible: int


def world_map(points: Sequence[Point]) -> str:
    """The picture. Points without coordinates stand only in the legend below it."""
    placed = [one for one in points if one.spot.lat is not None and one.spot.lon is not None]
    window = _window([(one.spot.lon or 0.0, one.spot.lat or 0.0) for one in placed])
    legend = list(_legend(points, window.height + 24))
    height = window.height + 14 + 18 * ((len(points) + 1) // 2) + (18 if points else 22)
    return picture(WIDTH, height, "map of where requests were processed", [
        tag("clipPath", {"id": "map-frame"},
            tag("rect", {"x": 0, "y": 0, "width": WIDTH, "height": window.height})),
        tag("rect", {"x": 0, "y": 0, "width": WIDTH, "height": window.height, "fill": "#f6f8fa"}),
        tag("g", {"clip-path": "url(#map-frame)"}, "".join((*_graticule(window), _land(window)))),
        *_marks(points, window),
        *legend,
    ])  # fmt: skip


def _window(places: Sequence[tuple[float, float]]) -> Window:
    """The whole world, or the part that holds all points with some room."""
    whole = Window(-180.0, 80.0, WIDTH / 360, 140 * WIDTH / 360)
    if not places:
        return whole
    west, east = min(x for x, _ in places), max(x for x, _ in places)
    south, north = min(y for _, y in places), max(y for _, y in places)
    span = max((east - west) * 1.3, (north - south) * 1.3 * 2, _LEAST_SPAN)
    if span > 200:
        return whole
    left = min(max((west + east) / 2 - span / 2, -180.0), 180.0 - span)
    top = min((north + south) / 2 + span / 4, 84.0)
    return Window(left, top, WIDTH / span, WIDTH / 2)


def _land(window: Window) -> str:
    rings = orjson.loads(files("router.reports").joinpath("data/land.json").read_bytes())["rings"]
    path = []
    for ring in rings:
        for turn in (-360, 0, 360):  # what goes on beyond 180 degrees is seen from the other side
            drawn = _outline(ring, turn, window)
            if any(-50 < x < WIDTH + 50 and -50 < y < window.height + 50 for x, y in drawn):
                path.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn) + "Z")
    style = {"fill": LAND, "stroke": LINE, "stroke-width": 0.7, "fill-rule": "nonzero"}
    return tag("path", {"d": "".join(path), **style})


def _outline(ring: Sequence[int], turn: int, window: Window) -> list[tuple[float, float]]:
    lon = lat = 0
    drawn = []
    for number in range(0, len(ring), 2):
        lon, lat = lon + ring[number], lat + ring[number + 1]
        drawn.append(window.at(lon / 10 + turn, lat / 10))
    return drawn


def _graticule(window: Window) -> Iterator[str]:
    step = 30 if window.scale < 5 else 10
    style = {"stroke": "#e6ebef", "stroke-width": 0.7}
    for lon in range(-180, 181, step):
        x, _ = window.at(lon, 0)
        if 0 < x < WIDTH:
            yield tag("line", {"x1": x, "y1": 0, "x2": x, "y2": window.height, **style})
    for lat in range(-90, 91, step):
        _, y = window.at(0, lat)
        if 0 < y < window.height:
            yield tag("line", {"x1": 0, "y1": y, "x2": WIDTH, "y2": y, **style})


def _marks(points: Sequence[Point], window: Window) -> Iterator[str]:
    marks = _gathered(points, window)
    most = max((one.sure + one.possible for one in marks), default=1) or 1
    for one in sorted(marks, key=lambda mark: -(mark.sure + mark.possible)):
        radius = 8 + 14 * sqrt((one.sure + one.possible) / most)
        sure = one.sure > 0
        style = {"fill": BLUE if sure else "#ffffff", "fill-opacity": 0.85,
                 "stroke": BLUE if sure else AMBER, "stroke-width": 2}  # fmt: skip
        circle = tag("circle", {"cx": one.x, "cy": one.y, "r": radius, **style})
        words = _ranges(one.numbers)
        fits = len(words) * 5.5 < 2 * radius
        x = one.x if fits else one.x + radius + 3
        fill = "#ffffff" if fits and sure else INK
        label = text(x, one.y + 4, words, 11, "middle" if fits else "start", fill, "bold")
        shown = "\n".join(points[number - 1].words for number in one.numbers)
        yield titled(circle + label, shown)


def _gathered(points: Sequence[Point], window: Window) -> list[_Mark]:
    marks: list[_Mark] = []
    for number, one in enumerate(points, 1):
        if one.spot.lat is None or one.spot.lon is None:
            continue
        x, y = window.at(one.spot.lon, one.spot.lat)
        near = next((m for m in marks if abs(m.x - x) < _NEAR and abs(m.y - y) < _NEAR), None)
        if near is None:
            marks.append(_Mark(x, y, [number], one.sure, one.possible))
        else:
            near.numbers.append(number)
            near.sure += one.sure
            near.possible += one.possible
    return marks


def _ranges(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 as `1–3, 5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


def _legend(points: Sequence[Point], top: float) -> Iterator[str]:
    if not points:
        yield text(0, top, "Nothing was processed in this period.", fill=MUTED)
        return
    rows = (len(points) + 1) // 2
    for number, one in enumerate(points):
        x, y = (0.0, top + 18 * number) if number < rows else (505.0, top + 18 * (number - rows))
        placed = one.spot.lat is not None
        head = f"{number + 1}" if placed else f"{number + 1} (not on the map)"
        yield text(x, y, _cut(f"{head}  {one.words}", 86), 11.5)


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
