import datetime as dt

from regions.catalog import DAY, Catalog, epoch
from regions.footprints.draft import Draft, stated_places
from regions.model import Axis, Endpoint

DAY_CHECKED = dt.date(2026, 11, 1)


def draft(catalog: Catalog, now: float, endpoint: Endpoint | None = None) -> Draft:
    return Draft(catalog, endpoint or Endpoint("e", "x", "aws", "m"), now)


def test_nothing_said_is_unknown_on_every_axis(catalog: Catalog, now: float) -> None:
    found = draft(catalog, now).footprint()
    assert not found.process.is_known
    assert not found.retain.is_known
    assert not found.operate.is_known
    assert {axis for axis, _ in found.gaps} == set(Axis)
    assert found.missing == tuple(what for _, what in found.gaps)


def test_steps_only_add(catalog: Catalog, now: float) -> None:
    one = draft(catalog, now)
    one.processed_in(catalog.atlas.place("aws:eu-west-1"), "a", "s")
    one.processed_in(catalog.atlas.place("aws:eu-west-3"), "b", "s")
    one.retains_nothing("nothing", "s")
    one.retained_in(catalog.atlas.place("aws:eu-west-1"), "kept", "t")
    found = one.footprint()
    assert found.process.ids == ("aws:eu-west-1", "aws:eu-west-3")
    assert found.retain.places(catalog.atlas).ids == ("aws:eu-west-1",)
    assert found.retain.source == "s; t"
    one.process_unknown("x")
    assert one.footprint().process.ids == ("aws:eu-west-1", "aws:eu-west-3", "unknown")


def test_a_fact_ends_when_its_age_is_reached(catalog: Catalog) -> None:
    ends = epoch(DAY_CHECKED) + 90 * DAY
    for at, known in ((ends - 1, True), (ends, False), (float("inf"), False)):
        one = draft(catalog, at)
        one.processed_in(catalog.atlas.place("aws:eu-west-1"), "a", "s", DAY_CHECKED)
        found = one.footprint()
        assert found.process.is_known is known
        assert (found.good_until == ends) is known
        assert bool([m for m in found.missing if "(last 2026-11-01): a" in m]) is not known


def test_operators_of_places_without_a_table_are_unknown(catalog: Catalog, now: float) -> None:
    german, indonesian, lunar = (draft(catalog, now) for _ in range(3))
    german.operated_by("aws", ["DE"])
    assert german.operate.codes == ("LU", "US")
    indonesian.operated_by("aws", ["ID"])
    assert indonesian.operate.codes == ("US", "unknown")
    lunar.operated_by("moonbase", ["DE"])
    assert not lunar.operate.is_known


def test_the_operators_statement_fills_what_is_unknown_and_adds(
    catalog: Catalog, now: float
) -> None:
    stated = Endpoint("e", "x", "aws", "m", operate=("FR",), retain="aws:eu-west-1")
    one = draft(catalog, now, stated)
    one.operated_by("aws", ["ID"])
    one.processed_in(catalog.atlas.place("aws:eu-west-1"), "a", "s")
    found = one.footprint()
    assert found.operate.codes == ("FR", "US")
    assert found.retain.places(catalog.atlas).ids == ("aws:eu-west-1",)
    assert found.missing == ()


def test_a_statement_never_replaces_what_the_catalog_knows(catalog: Catalog, now: float) -> None:
    stated = Endpoint("e", "x", "aws", "m", operate=("FR",), retain="nothing")
    one = draft(catalog, now, stated)
    one.operated_by("aws", ["DE"])
    one.retained_in(catalog.atlas.place("aws:us-east-1"), "kept", "s")
    found = one.footprint()
    assert found.operate.codes == ("FR", "LU", "US")
    assert found.retain.places(catalog.atlas).ids == ("aws:us-east-1",)


def test_stated_places(catalog: Catalog) -> None:
    found = stated_places(catalog, "aws", "aws:eu-west-1 + DE")
    assert found is not None
    assert found.ids == ("area:aws:DE", "aws:eu-west-1")
    assert stated_places(catalog, "aws", "Narnia") is None
    assert stated_places(catalog, "aws", " ") is None
