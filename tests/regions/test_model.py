import pytest

from regions.atlas import Atlas
from regions.countries import Countries
from regions.model import Assurance, Axis, Footprint, Retention, Tier
from regions.places import Partition, PlaceError, PlaceSet, Region

ATLAS = Atlas([Region("aws:eu-west-1", Partition("aws", "aws"), "IE")])
HERE = ATLAS.place("aws:eu-west-1")
IRISH = Countries.of(["IE"])


def test_tiers_have_an_order_and_names() -> None:
    assert Tier.named("small") < Tier.named("large")
    assert Tier.named("medium").label == "medium"
    with pytest.raises(ValueError, match="tier `huge` is not known; use one of small, medium"):
        Tier.named("huge")


def test_retention_is_nothing_or_somewhere_or_unknown() -> None:
    nothing, kept = Retention.nothing("contract"), Retention.within(HERE, "docs")
    unknown = Retention.unknown("nobody said")
    assert [r.is_nothing for r in (nothing, kept, unknown)] == [True, False, False]
    assert [r.is_known for r in (nothing, kept, unknown)] == [True, True, False]
    assert kept.places(ATLAS) == HERE
    with pytest.raises(PlaceError, match="needs a source"):
        Retention.nothing("")
    with pytest.raises(PlaceError, match="an empty set of places retains nothing"):
        Retention.within(PlaceSet(ATLAS, 0), "docs")


def test_a_footprint_is_somewhere_and_someone_s() -> None:
    nothing = Retention.nothing("x")
    with pytest.raises(PlaceError, match="a footprint processes somewhere"):
        Footprint(PlaceSet(ATLAS, 0), nothing, IRISH)
    with pytest.raises(PlaceError, match="a footprint has an operator"):
        Footprint(HERE, nothing, Countries(0))


def test_what_is_missing_is_told_by_axis_where_it_was_noted() -> None:
    plain = Footprint(HERE, Retention.nothing("x"), IRISH, missing=("a",))
    assert plain.missing_on(Axis.RETAIN) == ("a",)
    noted = Footprint(
        HERE, Retention.nothing("x"), IRISH, missing=("a", "b"),
        gaps=((Axis.PROCESS, "a"), (Axis.OPERATE, "b")),
    )  # fmt: skip
    assert noted.missing_on(Axis.PROCESS) == ("a",)
    assert noted.missing_on(Axis.RETAIN) == ()


def test_an_assurance_lapses() -> None:
    held = Assurance("dpa", "contract.pdf", "dpo", until=10.0)
    assert held.held(9.9)
    assert not held.held(10.0)
    assert Assurance("dpa", "contract.pdf", "dpo").held(float("inf"))
