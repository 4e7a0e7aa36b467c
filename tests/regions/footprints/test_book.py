from regions.catalog import DAY, Catalog, epoch
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.book import FootprintBook
from regions.model import Call, Endpoint

ENDPOINT = Endpoint("e", "mistral", "mistral", "m", urls=("https://api.eu.mistral.ai",))


def test_equal_movers_share_one_footprint(catalog: Catalog, now: float) -> None:
    book = FootprintBook(catalog)
    first = book.of(ENDPOINT, PLAIN_CALL, now)
    assert first == footprint(ENDPOINT, PLAIN_CALL, catalog, now)
    other = Call("responses", frozenset({"x"}), unknown=frozenset({"y"}))
    assert book.of(ENDPOINT, other, now + 1) is first
    moving = book.of(ENDPOINT, Call("responses", movers=frozenset({"url_input"})), now)
    assert first.process.is_known
    assert not moving.process.is_known


def test_a_footprint_is_made_again_when_a_fact_ends(catalog: Catalog, now: float) -> None:
    book = FootprintBook(catalog)
    ends = epoch(catalog.date) + 90 * DAY
    first = book.of(ENDPOINT, PLAIN_CALL, now)
    assert book.of(ENDPOINT, PLAIN_CALL, ends - 1) is first
    aged = book.of(ENDPOINT, PLAIN_CALL, ends)
    assert not aged.process.is_known
    # The clock was set back: what was aged is not served, nor is it remembered as fresh.
    again = book.of(ENDPOINT, PLAIN_CALL, now)
    assert again == first


def test_a_new_endpoint_of_the_same_name_is_another_one(catalog: Catalog, now: float) -> None:
    book = FootprintBook(catalog)
    book.of(ENDPOINT, PLAIN_CALL, now)
    moved = Endpoint("e", "mistral", "mistral", "m", urls=("https://api.us.mistral.ai",))
    assert book.of(moved, PLAIN_CALL, now).process.countries == {"US"}
