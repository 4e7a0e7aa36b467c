"""The timeline: areas compare, texts are texts, marks stand at their times."""

import xml.etree.ElementTree as ET

from router.reports.figures import Event, Silence
from router.reports.period import between, zone
from router.reports.timeline import Strip, timeline

SVG = "{http://www.w3.org/2000/svg}"
WEEK = between(0, 7 * 86_400_000_000, zone("UTC"))


def bars(drawn: str) -> list[dict[str, float]]:
    found = ET.fromstring(drawn).iter(f"{SVG}rect")
    names = ("x", "y", "width", "height")
    return [{name: float(one.attrib[name]) for name in names} for one in found]


def test_a_long_stretch_is_as_high_as_its_mean() -> None:
    drawn = timeline(WEEK, [Strip("processed", [(0, 1, 30), (1, 4, 30), (4, 7, 0)])], [])
    one, three = bars(drawn)
    assert abs(one["height"] * one["width"] / (three["height"] * three["width"]) - 1) < 0.1
    assert three["width"] > 2.9 * one["width"]
    assert ">60<" in drawn


def test_marks_and_silences_carry_their_words() -> None:
    event = Event(86_400_000_000, "eu-1/3", "drift", "<b>moved</b> & gone", "", "")
    start = Event(86_400_000_000, "eu-1/4", "administration", "process start", "", "")
    silence = Silence("eu-1", 0, 3_600_000_000)
    drawn = timeline(WEEK, [Strip("processed", [(0, 7, 0)])], [event, start], [silence])
    titles = [one.text for one in ET.fromstring(drawn).iter(f"{SVG}title")]
    assert any("<b>moved</b> & gone" in str(one) for one in titles)
    assert any(str(one).startswith("silence of log eu-1") for one in titles)
    assert not any("process start" in str(one) for one in titles)


def test_one_moment_and_no_strip() -> None:
    ET.fromstring(timeline(between(5, 6, zone("UTC")), [], []))
    ET.fromstring(timeline(between(5, 6, zone("UTC")), [Strip("refused", [(0, 1, 1)])], []))
