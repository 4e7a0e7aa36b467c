from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Axis, Endpoint


def test_every_region_of_the_catalog_can_be_asked_about(catalog: Catalog, now: float) -> None:
    for region in catalog.atlas.regions:
        endpoint = Endpoint("e", "region", region.provider, "", region.id)
        found = footprint(endpoint, PLAIN_CALL, catalog, now)
        assert found.process.ids == (region.id,)
        assert found.missing_on(Axis.RETAIN) == ("the service: what is retained depends on it",)


def test_a_region_that_is_not_there_is_unknown(catalog: Catalog, now: float) -> None:
    endpoint = Endpoint("e", "region", "aws", "", "aws:eu-west-9")
    assert footprint(endpoint, PLAIN_CALL, catalog, now).process.ids == ("unknown",)
