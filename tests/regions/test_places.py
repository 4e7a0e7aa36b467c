import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.atlas import Atlas
from regions.places import (
    Area,
    Boundary,
    Elsewhere,
    Partition,
    PartitionKind,
    PlaceError,
    PlaceSet,
    Region,
    Unknown,
)

AWS = Partition("aws", "aws")
GOV = Partition("aws", "aws-us-gov", PartitionKind.GOVERNMENT)
SELF = Partition("self", "self")
ATLAS = Atlas(
    [
        Region("aws:eu-west-1", AWS, "IE"),
        Region("aws:eu-west-2", AWS, "GB"),
        Region("aws:ca-central-1", AWS, "CA", "CA-QC"),
        Region("aws:ca-west-1", AWS, "CA", "CA-AB"),
        Region("aws:us-gov-west-1", GOV, "US"),
        Region("self:fra1", SELF, "DE"),
    ],
    areas=[Area(Partition("openai", "openai"), "IE")],
    jurisdictions={"EU": frozenset({"IE", "DE"})},
)
MASKS = st.integers(min_value=0, max_value=(1 << len(ATLAS)) - 1)
BOUNDARIES = st.builds(lambda a, b: Boundary(ATLAS, a & b, a | b), MASKS, MASKS)


def test_ids() -> None:
    assert GOV.id == "aws/aws-us-gov"
    assert AWS.id == "aws"
    assert [p.is_open for p in (AWS, GOV)] == [True, False]
    region = ATLAS.region("aws:eu-west-1")
    assert (region.provider, region.code) == ("aws", "eu-west-1")
    assert Area(GOV, "US").id == "area:aws/aws-us-gov:US"
    assert Elsewhere(AWS).id == "elsewhere:aws"
    assert Unknown().id == "unknown"


def test_sets_show_their_members() -> None:
    places = ATLAS.place("self:fra1", "aws:eu-west-1", "area:openai:IE", "elsewhere:aws")
    assert places.ids == ("area:openai:IE", "aws:eu-west-1", "elsewhere:aws", "self:fra1")
    assert places.countries == {"IE", "DE"}
    assert places.is_known
    assert len(places) == 4
    assert not (places | ATLAS.unknown).is_known


def test_an_empty_set_is_inside_nothing() -> None:
    with pytest.raises(PlaceError, match="an empty set of places lies nowhere"):
        ATLAS.worldwide().contains(PlaceSet(ATLAS, 0))


def test_sets_of_two_catalogs_do_not_mix() -> None:
    other = Atlas([Region("aws:eu-west-1", AWS, "IE")])
    with pytest.raises(PlaceError, match="can't be compared; load both from one catalog"):
        ATLAS.country("IE").contains(other.place("aws:eu-west-1"))
    with pytest.raises(PlaceError, match="can't be compared"):
        _ = ATLAS.country("IE") | other.country("IE")
    twin = Atlas([Region("aws:eu-west-1", AWS, "IE")])
    assert other.country("IE").contains(twin.place("aws:eu-west-1"))


def test_a_difference_takes_what_may_be_inside() -> None:
    rest = ATLAS.worldwide() - ATLAS.country("GB")
    assert "elsewhere:aws" not in rest.places.ids
    assert "unknown" not in rest.places.ids
    assert "aws:eu-west-1" in rest.places.ids
    quebec_out = ATLAS.country("CA") - ATLAS.subdivision("CA-QC")
    assert quebec_out.places.ids == ("aws:ca-west-1",)


@given(a=BOUNDARIES, b=BOUNDARIES)
def test_sure_stays_within_possible(a: Boundary, b: Boundary) -> None:
    for made in (a | b, a & b, a - b):
        assert made.sure & ~made.possible == 0


@given(a=BOUNDARIES, b=BOUNDARIES, truth=MASKS, other=MASKS)
def test_the_algebra_is_sound_for_every_world(
    a: Boundary, b: Boundary, truth: int, other: int
) -> None:
    """Whatever `a` and `b` really are, between sure and possible, so is what is made of them."""
    real_a = a.sure | (a.possible & truth)
    real_b = b.sure | (b.possible & other)
    for made, real in (
        (a | b, real_a | real_b),
        (a & b, real_a & real_b),
        (a - b, real_a & ~real_b),
    ):
        assert made.sure & ~real == 0
        assert real & ~made.possible == 0


@given(a=BOUNDARIES, mask=MASKS.filter(bool))
def test_outside_is_what_is_not_contained(a: Boundary, mask: int) -> None:
    places = PlaceSet(ATLAS, mask)
    assert a.contains(places) is not bool(a.outside(places))
    assert a.is_empty is not bool(a.places)
