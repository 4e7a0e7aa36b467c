"""A receipt tells the place only where there is one to tell."""

from __future__ import annotations

from dataclasses import replace

from regions.countries import Countries
from regions.model import Footprint, Retention
from router.receipts import place_headers
from tests.router.made import ATLAS, candidacy


def test_one_region_is_told() -> None:
    assert place_headers(candidacy("a", "self:par1")) == {"x-domicile-region": "self:par1"}


def test_several_regions_are_told_as_the_footprint() -> None:
    places = ATLAS.place("self:fra1", "self:par1")
    footprint = Footprint(places, Retention.nothing("test"), Countries.of(["DE"]))
    found = place_headers(replace(candidacy("a"), footprint=footprint))
    assert found == {"x-domicile-footprint": "self:fra1,self:par1"}


def test_an_area_is_no_region() -> None:
    places = ATLAS.place("area:self:DE")
    footprint = Footprint(places, Retention.nothing("test"), Countries.of(["DE"]))
    found = place_headers(replace(candidacy("a"), footprint=footprint))
    assert found == {"x-domicile-footprint": "area:self:DE"}
