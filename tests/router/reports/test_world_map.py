"""The map: points where they belong, close ones as one, nothing beside the picture."""

import xml.etree.ElementTree as ET
from importlib.resources import files

import orjson
import pytest

from router.reports.facts import Spot
from router.reports.world_map import WIDTH, Point, _gathered, _ranges, _window, world_map

SVG = "{http://www.w3.org/2000/svg}"


def point(id_: str, lat: float | None, lon: float | None, sure: int = 5) -> Point:
    return Point(Spot(id_, "DE", "", lat, lon), sure, 0)


FRA, PAR = point("self:fra1", 50.1, 8.7), point("self:par1", 48.9, 2.4)
IAD, SYD = point("self:iad1", 39.0, -77.5), point("self:syd1", -33.9, 151.2)


def test_the_window_holds_every_point() -> None:
    for points in ([FRA], [FRA, PAR], [FRA, IAD], [FRA, IAD, SYD], []):
        window = _window([(one.spot.lon or 0, one.spot.lat or 0) for one in points])
        for one in points:
            x, y = window.at(one.spot.lon or 0, one.spot.lat or 0)
            assert 0 <= x <= WIDTH
            assert 0 <= y <= window.height


def test_points_that_cover_each_other_are_one() -> None:
    twin = point("aws:eu-central-1", 50.1, 8.7, 3)
    points = [FRA, IAD, twin]
    marks = _gathered(points, _window([(8.7, 50.1), (-77.5, 39.0)]))
    assert [mark.numbers for mark in marks] == [[1, 3], [2]]
    assert marks[0].sure == 8


@pytest.mark.parametrize(
    ("numbers", "shown"), [([1], "1"), ([1, 2, 3, 5], "1–3, 5"), ([2, 4], "2, 4")]
)
def test_numbers_are_written_short(numbers: list[int], shown: str) -> None:
    assert _ranges(numbers) == shown


def test_it_is_an_image_whose_texts_are_texts() -> None:
    nasty = Point(Spot("<script>&", "]]>", '"onload="', 1.0, 1.0), 1, 1, hidden=True)
    lost = point("area:aws:DE", None, None)
    drawn = ET.fromstring(world_map([nasty, lost]))
    words = [one.text for one in drawn.iter(f"{SVG}text")]
    assert any("<script>&" in str(one) and "too few to tell" in str(one) for one in words)
    assert any("not on the map" in str(one) for one in words)
    assert len(list(drawn.iter(f"{SVG}circle"))) == 1
    assert not list(drawn.iter(f"{SVG}script"))


def test_nothing_processed_is_said() -> None:
    assert "Nothing was processed" in world_map([])


def test_the_outline_is_closed_and_within_the_world() -> None:
    stored = orjson.loads(files("router.reports").joinpath("data/land.json").read_bytes())
    assert "public domain" in stored["source"]
    for ring in stored["rings"]:
        lon = lat = 0
        for number in range(0, len(ring), 2):
            lon, lat = lon + ring[number], lat + ring[number + 1]
            assert abs(lat) <= 900
            assert abs(lon) <= 5400
            # No line runs across the whole picture.
            assert number == 0 or abs(ring[number]) < 1800
