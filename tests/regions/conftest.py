import pytest

from regions.catalog import DAY, Catalog, OwnRegion, epoch


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The package's facts with three own regions."""
    return Catalog.load(
        {
            "self:fra1": OwnRegion("DE", "DE-HE", 50.11, 8.68),
            "self:lon1": OwnRegion("GB"),
            "self:mtl1": OwnRegion("CA", "CA-QC"),
        }
    )


@pytest.fixture(scope="session")
def now(catalog: Catalog) -> float:
    """The catalog's date and a day."""
    return epoch(catalog.date) + DAY
