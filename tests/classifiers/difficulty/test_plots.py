"""Figures: well-formed SVG that shows the numbers it was made of."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from classifiers.difficulty import curves
from classifiers.difficulty.plots import Line, calibration, call_performance, chart, score_drift

SVG = "{http://www.w3.org/2000/svg}"


def parts(text: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(text).iter(f"{SVG}{tag}"))


def words(text: str) -> list[str]:
    return [one.text or "" for one in parts(text, "text")]


def places(element: ET.Element) -> list[tuple[float, float]]:
    found = [point.split(",") for point in element.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in found]


def test_a_chart_keeps_names_as_text_and_points_inside() -> None:
    text = chart("<b>&", ("x", "y"), [Line("a<b", ((0.0, -1.0), (5.0, 3.0)), dots=True)])
    assert words(text)[0] == "<b>&"
    assert "a<b" in words(text)
    [line] = parts(text, "polyline")
    (left, low), (right, high) = places(line)
    assert 0 < left < right < 640
    assert 0 < high < low < 420, "up is up"
    assert len(parts(text, "circle")) == 2


@pytest.mark.parametrize("points", [(), ((1.0, 1.0),), ((1.0, 1.0), (2.0, 1.0))])
def test_a_chart_of_little_is_still_one(points: tuple[tuple[float, float], ...]) -> None:
    text = chart("t", ("x", "y"), [Line("one", points)])
    assert len(parts(text, "polyline")) == 1
    assert "nan" not in text


def test_the_call_performance_curve_names_the_area() -> None:
    rng = np.random.default_rng(0)
    gain = rng.choice([0.0, 0.0, 1.0], 300)
    good, bad = gain + rng.normal(0, 0.3, 300), rng.normal(0, 1, 300)
    text = call_performance({"good": (good, gain), "bad": (bad, gain)})
    assert f"good: APGR {curves.apgr(good, gain):.3f}" in words(text)
    random_line, first, second = parts(text, "polyline")
    middle = len(places(first)) // 2
    assert places(first)[middle][1] < places(second)[middle][1], "the better one is higher"
    assert "stroke-dasharray" in random_line.attrib


def test_calibration_shows_one_dot_for_each_bin() -> None:
    p = np.linspace(0.1, 0.9, 300)
    better = (np.random.default_rng(1).random(300) < p).astype(float)
    text = calibration(p, better, ", ECE 0.01")
    assert len(parts(text, "circle")) == curves.BINS
    assert "300 rows, ECE 0.01" in words(text)


def test_drift_tells_statistics_and_limits() -> None:
    rng = np.random.default_rng(2)
    same = score_drift(rng.normal(0, 1, 500).tolist(), rng.normal(0, 1, 500).tolist())
    moved = score_drift(rng.normal(0, 1, 500).tolist(), rng.normal(1, 1, 500).tolist())

    def numbers(text: str) -> list[float]:
        return [float(n) for n in re.findall(r"\d\.\d{3}", words(text)[0])]

    psi, psi_limit, ks, ks_limit = numbers(same)
    assert psi < psi_limit
    assert ks < ks_limit
    psi, psi_limit, ks, ks_limit = numbers(moved)
    assert psi > psi_limit
    assert ks > ks_limit
