import datetime as dt

from regions.catalog import DAY, Catalog, epoch, package_data
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.draft import Draft
from regions.footprints.offers import offered
from regions.model import Axis, Endpoint

ENDPOINT = Endpoint("e", "mistral", "mistral", "m", urls=("https://api.eu.mistral.ai",))


def test_an_offer_nobody_made_is_unknown(catalog: Catalog, now: float) -> None:
    draft = Draft(catalog, ENDPOINT, now)
    assert not offered(draft, "mistral", "api.de.mistral.ai")
    (missing,) = draft.footprint().missing_on(Axis.PROCESS)
    assert missing.startswith("what mistral promises for `api.de.mistral.ai`; in the catalog: ")


def test_an_offer_has_its_own_day_and_source(catalog: Catalog, now: float) -> None:
    data = dict(package_data())
    mine = data["mistral.yaml"].replace(
        b"  api.eu.mistral.ai:\n", b"  api.eu.mistral.ai:\n    checked_on: 2026-10-01\n"
    )
    other = Catalog.load(data={**data, "mistral.yaml": mine})
    assert other.date == catalog.date
    found = footprint(ENDPOINT, PLAIN_CALL, other, now)
    assert found.good_until == epoch(dt.date(2026, 10, 1)) + 90 * DAY


def test_every_offer_of_every_vendor_can_be_applied(catalog: Catalog, now: float) -> None:
    region = catalog.atlas.region("azure:swedencentral")
    for vendor, file in catalog.offers.items():
        for key, row in file.offers.items():
            draft = Draft(catalog, Endpoint("e", "x", "x", "m", settings=row.needs), now)
            assert offered(draft, vendor, key, region)
            found = draft.footprint()
            assert found.process.is_known is not bool(row.process.unknown)
            facts = [fact for fact in found.facts if fact.axis is Axis.PROCESS]
            assert row.process.unknown or all(fact.source for fact in facts)
            if row.needs:
                bare = Draft(catalog, Endpoint("e", "x", "x", "m"), now)
                offered(bare, vendor, key, region)
                assert not bare.footprint().process.is_known
