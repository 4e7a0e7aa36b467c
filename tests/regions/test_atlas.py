import pytest

from regions.atlas import Atlas
from regions.places import Area, Boundary, Partition, PartitionKind, PlaceError, Region

AWS = Partition("aws", "aws")
EUSC = Partition("aws", "aws-eusc", PartitionKind.SOVEREIGN)
GOV = Partition("aws", "aws-us-gov", PartitionKind.GOVERNMENT)
OPENAI = Partition("openai", "openai")
REGIONS = (
    Region("aws:us-east-1", AWS, "US", "US-VA"),
    Region("aws:us-far-1", AWS, "US"),
    Region("aws:eu-west-1", AWS, "IE"),
    Region("aws:eusc-de-east-1", EUSC, "DE"),
    Region("aws:us-gov-west-1", GOV, "US", "US-OR"),
)
ATLAS = Atlas(
    REGIONS,
    areas=[Area(OPENAI, "US")],
    partitions=[Partition("mistral", "mistral")],
    jurisdictions={"EU": frozenset({"IE", "DE"})},
)


def inside(boundary: Boundary) -> set[str]:
    return set(boundary.places.ids)


def test_country_words_reach_commercial_and_sovereign_partitions_only() -> None:
    assert inside(ATLAS.country("US")) == {
        "aws:us-east-1", "aws:us-far-1", "area:aws:US", "area:openai:US"}  # fmt: skip
    assert inside(ATLAS.jurisdiction("EU")) == {
        "aws:eu-west-1", "area:aws:IE", "aws:eusc-de-east-1", "area:aws/aws-eusc:DE"}  # fmt: skip
    assert inside(ATLAS.partition("aws-us-gov")) == {"aws:us-gov-west-1"}
    assert inside(ATLAS.one_region("aws:us-gov-west-1")) == {"aws:us-gov-west-1"}
    assert not any("gov" in i for i in inside(ATLAS.worldwide()))
    assert inside(ATLAS.provider("aws")) == {
        "aws:us-east-1", "aws:us-far-1", "aws:eu-west-1", "aws:eusc-de-east-1"}  # fmt: skip


def test_an_area_is_never_sure_because_its_regions_are_listed() -> None:
    every = ATLAS.one_region("aws:us-east-1") | ATLAS.one_region("aws:us-far-1")
    assert "area:aws:US" not in inside(every)
    assert "area:aws:US" not in inside(ATLAS.partition("aws"))
    assert not every.contains(ATLAS.place("area:aws:US"))


def test_elsewhere_is_sure_in_plain_worldwide_only() -> None:
    anywhere = ATLAS.place("elsewhere:mistral")
    assert ATLAS.worldwide().contains(anywhere)
    assert not (ATLAS.worldwide() - ATLAS.country("US")).contains(anywhere)
    assert not ATLAS.provider("mistral").contains(anywhere)
    assert not ATLAS.partition("mistral").contains(anywhere)


def test_a_subdivision_may_hold_what_is_not_known_to_be_elsewhere() -> None:
    virginia = ATLAS.subdivision("US-VA")
    assert inside(virginia) == {"aws:us-east-1"}
    rest = ATLAS.country("US") - virginia
    assert inside(rest) == set()
    oregon = ATLAS.subdivision("US-OR")
    assert inside(oregon) == set()
    assert inside(ATLAS.country("US") - oregon) == {"aws:us-east-1"}


def test_nowhere_is_empty() -> None:
    assert ATLAS.nowhere().is_empty
    assert ATLAS.country("FR").is_empty


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: ATLAS.region("aws:x"), "region `aws:x` is not in the catalog"),
        (lambda: ATLAS.region("area:aws:US"), "region `area:aws:US` is not in the catalog"),
        (lambda: ATLAS.one_region("elsewhere:aws"), "is not in the catalog"),
        (lambda: ATLAS.place(), "an empty set of places"),
        (lambda: ATLAS.place("aws:eu-west-1", "aws:x"), "place `aws:x` is not in the catalog"),
        (lambda: ATLAS.jurisdiction("ASEAN"), "jurisdiction `ASEAN` is not in the catalog"),
        (lambda: ATLAS.partition("aws-cn"), "known: aws, aws/aws-eusc"),
        (lambda: ATLAS.provider("ovh"), "provider `ovh` is not in the catalog"),
        (lambda: Atlas([REGIONS[0], REGIONS[0]]), "stands twice"),
        (lambda: Atlas([], jurisdictions={"DE": frozenset({"FR"})}), "is also a country code"),
        (lambda: Atlas([], jurisdictions={"X": frozenset({"UK"})}), "`UK` is not an ISO 3166-1"),
    ],
)
def test_what_is_not_there_is_an_error(ask: object, message: str) -> None:
    assert callable(ask)
    with pytest.raises(PlaceError) as caught:
        ask()
    assert message in str(caught.value)


def test_the_digest_names_all_that_matters() -> None:
    same = Atlas(reversed(REGIONS), jurisdictions={"EU": frozenset({"IE", "DE"})})
    base = Atlas(REGIONS, jurisdictions={"EU": frozenset({"IE", "DE"})})
    assert same.digest == base.digest
    others = {
        Atlas(REGIONS[1:], jurisdictions={"EU": frozenset({"IE", "DE"})}).digest,
        Atlas(REGIONS, jurisdictions={"EU": frozenset({"IE"})}).digest,
        Atlas(REGIONS, jurisdictions={"EU": frozenset({"IE", "DE"})}, seed="x").digest,
        Atlas(
            REGIONS, jurisdictions={"EU": frozenset({"IE", "DE"})}, subdivisions=["CA-QC"]
        ).digest,
        base.digest,
    }
    assert len(others) == 5


def test_reading() -> None:
    assert "aws:eu-west-1" in ATLAS
    assert "aws:eu-west-9" not in ATLAS
    assert [r.id for r in ATLAS.regions] == sorted(r.id for r in REGIONS)
    assert [p.id for p in ATLAS.partitions] == [
        "aws", "aws/aws-eusc", "aws/aws-us-gov", "mistral", "openai"]  # fmt: skip
    assert ATLAS.subdivisions == {"US-VA", "US-OR"}


def test_a_region_without_its_provider_is_told_with_it() -> None:
    with pytest.raises(PlaceError, match=r"did you mean `aws:us-east-1`\?$"):
        ATLAS.region("us-east-1")
    with pytest.raises(PlaceError, match=r"see `domicile regions list`$"):
        ATLAS.region("us-west-9")
