"""Boundaries in few words."""

import pytest

from regions.boundaries import boundary
from regions.catalog import Catalog
from regions.countries import Countries
from router.cli.places import boundary_json, boundary_text, countries_text, word_for


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("EU", "EU"),
        ("EEA", "EEA"),
        ("worldwide", "worldwide"),
        ("DE", "DE"),
        ("EU & DE", "DE"),
        ("worldwide & EU", "EU"),
        ("EU - DE", None),
        ("aws:eu-central-1", None),
        ("DE - DE", None),
    ],
)
def test_a_word_means_exactly_the_boundary(catalog: Catalog, text: str, word: str | None) -> None:
    assert word_for(boundary(text, catalog.atlas)) == word


def test_without_a_word_places_and_countries_are_counted(catalog: Catalog) -> None:
    two = boundary("aws:eu-central-1 + aws:eu-west-3", catalog.atlas)
    assert boundary_text(two) == "2 places in DE, FR"
    assert boundary_json(two) == {
        "word": None,
        "countries": ["DE", "FR"],
        "places": ["aws:eu-central-1", "aws:eu-west-3"],
    }
    assert boundary_text(catalog.atlas.nowhere()) == "nowhere"
    assert boundary_json(catalog.atlas.nowhere())["places"] == []


def test_countries(catalog: Catalog) -> None:
    assert countries_text(Countries.any()) == "any"
    assert countries_text(Countries.of(["DE", "FR"])) == "DE, FR"
    assert countries_text(Countries(0)) == "nobody"
