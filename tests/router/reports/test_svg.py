"""Marks escape what they are given."""

import xml.etree.ElementTree as ET

from router.reports.svg import picture, tag, text, titled


def test_values_and_words_stay_values_and_words() -> None:
    nasty = "\"'><script>&"
    drawn = picture(10, 10.5, nasty, [text(1, 2, nasty), titled(tag("g", {"id": nasty}), nasty)])
    root = ET.fromstring(drawn)
    assert root.attrib["aria-label"] == nasty
    assert root.attrib["viewBox"] == "0 0 10 10.5"
    assert [one.text for one in root.iter() if one.text] == [nasty, nasty]
