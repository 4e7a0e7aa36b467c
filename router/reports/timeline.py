"""How many requests there were when: a strip per way of ending, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from router.reports.figures import Event, Silence
from router.reports.period import Period
from router.reports.svg import AMBER, BLUE, INK, LINE, MUTED, RED, picture, tag, text, titled

WIDTH: Final = 1000.0
_LEFT: Final = 130.0
_STRIP: Final = 74.0
_COLOURS: Final = {"processed": BLUE, "refused": RED}
_MARKS: Final = {"snapshot": INK, "drift": RED, "veto": AMBER, "recovery": RED, "key": AMBER}
_GLYPH: Final = 9.5


@dataclass(frozen=True, slots=True)
class Strip:
    """One series: steps `(first, end, count)` as `suppression.steps` gives them."""

    name: str
    steps: Sequence[tuple[int, int, int]]


def timeline(
    period: Period,
    strips: Sequence[Strip],
    events: Sequence[Event],
    silences: Sequence[Silence] = (),
) -> str:
    """The picture of a period."""
    height = 20 + len(strips) * _STRIP + 60
    parts = [*_silent(period, silences, height - 60)]
    for number, strip in enumerate(strips):
        parts += _strip(period, strip, 20 + number * _STRIP)
    parts += _axis(period, height - 56)
    parts += _events(period, events, height - 60)
    return picture(WIDTH, height, "timeline of requests", parts)


def _x(period: Period, micros: int) -> float:
    share = (micros - period.since) / (period.until - period.since)
    return _LEFT + (WIDTH - _LEFT - 10) * min(max(share, 0.0), 1.0)


def _strip(period: Period, strip: Strip, top: float) -> Iterator[str]:
    base, most = top + _STRIP - 16, 0.0
    # A stretch of several steps is as high as their mean, so that areas compare.
    heights = [count / (end - first) for first, end, count in strip.steps]
    most = max(heights, default=0.0)
    total = sum(count for _, _, count in strip.steps)
    yield text(0, base - 24, strip.name, 12, weight="bold")
    yield text(0, base - 8, f"{total:,}", 12, fill=MUTED)
    yield tag("line", {"x1": _LEFT, "y1": base, "x2": WIDTH - 10, "y2": base, "stroke": LINE})
    for (first, end, count), mean in zip(strip.steps, heights, strict=True):
        if not count:
            continue
        left, right = _x(period, period.starts[first]), _x(period, period.ends(end - 1))
        tall = max((_STRIP - 28) * mean / most, 1.5)
        bar = tag("rect", {
            "x": left + 0.5, "y": base - tall, "width": max(right - left - 1, 0.8), "height": tall,
            "fill": _COLOURS.get(strip.name, AMBER),
        })  # fmt: skip
        yield titled(bar, f"{_span(period, first, end)}: {count:,} requests")
    if most:
        peak = f"{round(most):,} a {period.step}"
        yield text(WIDTH - 10, top + 4, f"highest: {peak}", 10, "end", MUTED)


def _span(period: Period, first: int, end: int) -> str:
    last = period.day(period.ends(end - 1) - 1)
    start = period.day(period.starts[first])
    return start if start == last else f"{start} to {last}"


def _axis(period: Period, y: float) -> Iterator[str]:
    ticks = max(1, round(len(period.starts) / 8))
    for number in range(0, len(period.starts), ticks):
        x = _x(period, period.starts[number])
        if x > WIDTH - 70 and number:
            continue
        yield tag("line", {"x1": x, "y1": y - 4, "x2": x, "y2": y, "stroke": MUTED})
        yield text(x, y + 12, period.day(period.starts[number]), 10, fill=MUTED)


def _silent(period: Period, silences: Sequence[Silence], height: float) -> Iterator[str]:
    for one in silences:
        left, right = _x(period, one.since), _x(period, one.until)
        words = f"silence of log {one.log}: {period.shown(one.since)} to {period.shown(one.until)}"
        mark = tag("rect", {
            "x": left, "y": 8, "width": max(right - left, 1.5), "height": height - 8,
            "fill": "#f3d9d7", "fill-opacity": 0.7,
        })  # fmt: skip
        yield titled(mark, words)


def _events(period: Period, events: Sequence[Event], y: float) -> Iterator[str]:
    shown = [one for one in events if one.kind in _MARKS]
    for one in shown:
        x = _x(period, one.time)
        mark = tag("path", {
            "d": f"M{x:.1f} {y + 24:.1f}l5 {_GLYPH}h-10z", "fill": _MARKS[one.kind],
        })  # fmt: skip
        yield titled(mark, f"{period.shown(one.time)} {one.kind}: {one.what}")
    if shown:
        yield text(0, y + 33, "changes", 12, weight="bold")
    x = _LEFT
    for kind in sorted({one.kind for one in shown}):
        yield tag("path", {"d": f"M{x:.1f} {y + 44:.1f}l5 {_GLYPH}h-10z", "fill": _MARKS[kind]})
        yield text(x + 9, y + 53, kind, 10, fill=MUTED)
        x += 30 + 6 * len(kind)
